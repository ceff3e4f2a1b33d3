"""Which package belongs to what: a framework, the arithmetic below it, or the kit."""

from __future__ import annotations

from collections.abc import Collection

FRAMEWORKS = {
    "tensorflow": ("tensorflow", "tf-", "keras"),
    "torch": ("torch", "triton", "pytorch-"),
    "jax": ("jax", "flax", "optax", "orbax-", "libtpu"),
}
# What no measured step runs through: the kit's profiles, sensors and statistics.
OF_THE_KIT = frozenset({"cffi", "msgspec", "psutil", "ruptures", "scipy", "nvidia-ml-py"})


def kind_of_package(distribution: str, backends: Collection[str]) -> str:
    """Its kind of fact (`kit.compare.grades.GRADES`), where cells of `backends` are compared."""
    if distribution in OF_THE_KIT:
        return "library of the kit"
    for backend, beginnings in FRAMEWORKS.items():
        if distribution.startswith(beginnings):
            return "framework" if backend in backends else "framework not compared"
    return "numerical library"
