"""Who set an environment variable: the image, whoever started the container, a launcher of jobs, or the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

# What an image had when it was built, written by its Dockerfile; entries end with a zero byte, as the kernel's do.
BAKED = "etc/steadykit-environment"
# Launchers, by a variable that each of them gives its processes, and what it sets of those that decide speed. PyTorch's
# torchrun (torch/distributed/run.py) sets OMP_NUM_THREADS to 1 for more than one process a node, Ray to the CPUs of a
# task. Slurm and
# mpirun set none for threads by themselves: that is their users' script.
LAUNCHERS = {
    "torchrun": ("TORCHELASTIC_RUN_ID", ("OMP_NUM_THREADS", "TORCH_NCCL_ASYNC_ERROR_HANDLING")),
    "Ray": ("RAY_RAYLET_PID", ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")),
    "Slurm": ("SLURM_JOB_ID", ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")),
}


def set_by(names: Iterable[str], variables: Mapping[str, str], engine: str | None, root: Path) -> dict[str, str]:
    """Return who set each of these names.

    Args:
        names: in `variables`.
        variables: of this process.
        engine: of the container that it runs in; null: in none.
        root: where /proc and /etc are looked for.
    """
    image = _entries(root / BAKED) if engine else {}
    started_with = _entries(root / "proc/1/environ") if engine else {}

    def of(name: str) -> str:
        value = variables[name]
        if image.get(name) == value:
            return "image"
        if started_with.get(name) == value:
            return "container"
        marked = (who for who, (marker, sets) in LAUNCHERS.items() if marker in variables and name in sets)
        return next(marked, "user")

    return {name: of(name) for name in names}


def _entries(file: Path) -> dict[str, str]:
    """Return the variables in a file; none where it cannot be read, as of a first process that is somebody else's."""
    try:
        text = file.read_bytes().decode(errors="replace")
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in text.split("\0") if entry)
    return {name: value for name, _, value in pairs}
