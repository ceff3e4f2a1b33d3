"""Which backends there are, named without importing any of them."""

from __future__ import annotations

from typing import NamedTuple


class BackendEntry(NamedTuple):
    """What can be said of a framework before it is imported."""

    name: str  # as in cells and in the module kit.backends.<name>
    title: str  # as in tables
    module: str  # what is imported
    distributions: tuple[str, ...]  # any of these provides it
    compile_modes: tuple[str, ...]  # first: the default
    interpreter_variable: str


CATALOG: dict[str, BackendEntry] = {
    "tensorflow": BackendEntry(
        "tensorflow",
        "TensorFlow",
        "tensorflow",
        ("tensorflow", "tensorflow-cpu", "tensorflow_cpu"),
        ("graph", "xla"),
        "KIT_PYTHON_TENSORFLOW",
    ),
    "torch": BackendEntry("torch", "PyTorch", "torch", ("torch",), ("eager", "compile"), "KIT_PYTHON_TORCH"),
    "jax": BackendEntry("jax", "JAX", "jax", ("jax",), ("jit",), "KIT_PYTHON_JAX"),
}
