"""The version of the kit, kept apart so that reading it imports nothing else."""

__version__ = "0.3.0"
