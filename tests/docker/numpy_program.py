"""A program that starts in the time of NumPy, for tests of containers in which the framework proves nothing."""

PROGRAM = """
import numpy as np

def program(batch, device):
    x = np.ones((batch, 512))
    return lambda: x @ x.T
"""
# A run that is resumed measures a program only where the command names it.
RESUMED = ("--program", "numpy_step.py")


def numpy_program(folder, rounds):
    """Write the program into the folder from which `kit` starts; return the words that measure it in so many rounds."""
    (folder / "numpy_step.py").write_text(PROGRAM)
    return "--quick", *RESUMED, "--rounds", str(rounds)
