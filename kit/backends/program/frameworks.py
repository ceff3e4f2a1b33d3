"""The frameworks of a user program: which made what its step returned, which are loaded, and their threads.

    torch.Tensor                          torch, whatever else is imported
    torch.Tensor and jax.Array            torch and jax
    numpy.ndarray, and nothing else       with Keras its backend; else numpy, though a framework may have computed it
    a number, or nothing                  what is loaded

What is asked is asked of modules that are loaded already: this file imports no framework.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from kit.backends.backend_catalog import CATALOG
from kit.backends.program.proof import imported
from kit.backends.protocol import ThreadSetting
from kit.profile.fields import reason
from kit.sensors.linux import XLA_POOL, threads_named

# The types of each framework's arrays.
_ARRAYS = {"jax": ("Array",), "torch": ("Tensor",), "tensorflow": ("Tensor", "Variable")}
_FRAMEWORKS = {entry.module: None for entry in CATALOG.values() if entry.builds_workloads}
_PACKAGES = [package.replace("-", "_") for entry in CATALOG.values() for package in entry.packages]
NUMPY = "numpy"


def framework_of(leaf: Any) -> str | None:  # noqa: ANN401 - whatever a user's step returns
    """Return the framework whose array something is; None: of none that Steadykit can wait for."""
    for name, types in _ARRAYS.items():
        if (module := sys.modules.get(name)) and isinstance(leaf, tuple(getattr(module, kind) for kind in types)):
            return name
    return None


def made_by(leaves: Iterable[Any]) -> list[str]:
    """Return the modules that what a step returned is of; where that does not say it, those of what is loaded."""
    modules = {name: None for leaf in leaves if (name := _module_of(leaf)) is not None}
    frameworks = [name for name in (*_FRAMEWORKS, *modules) if name in modules and name != NUMPY]
    if frameworks:
        return list(dict.fromkeys(frameworks))
    # Keras' own training and prediction return NumPy's arrays, whatever computed them.
    keras = sys.modules.get("keras")
    if modules and keras is not None:
        return [str(keras.config.backend())]
    return [NUMPY] if modules else [name for name in _FRAMEWORKS if name in imported()] or [NUMPY]


def versions(modules: Iterable[str]) -> str:
    """Return modules with their versions: "torch 2.13.0, jax 0.10.2"."""
    return ", ".join(f"{name} {_version(sys.modules[name]) or 'unknown'}" for name in modules)


def loaded_versions() -> dict[str, str]:
    """Return what this process has loaded of frameworks, and of the packages that belong to them, with versions."""
    names = dict.fromkeys((*_FRAMEWORKS, *_PACKAGES, NUMPY))
    modules = {name: sys.modules.get(name) for name in names}
    known = {name: _version(module) for name, module in modules.items() if module is not None}
    return {name: version for name, version in known.items() if version is not None}


def threads_of(modules: Sequence[str]) -> ThreadSetting:
    """Return the threads that these frameworks compute with now."""
    if len(modules) > 1:
        return ThreadSetting(None, reason("threads_of_several_frameworks", frameworks=", ".join(modules)))
    asked = _THREADS.get(modules[0]) if modules else None
    threads = None if asked is None else asked()
    return ThreadSetting(threads, None if threads else reason("threads_by_environment"))


def _module_of(leaf: object) -> str | None:
    if isinstance(leaf, bool | int | float | complex | str | bytes):
        return NUMPY if isinstance(leaf, np.generic) else None
    name = framework_of(leaf) or type(leaf).__module__.partition(".")[0]
    module = sys.modules.get(name)
    # A class of the user's own file has no version.
    return None if module is None or _version(module) is None else name


def _version(module: ModuleType) -> str | None:
    # A module that loads on the first access to it is not loaded here.
    version = object.__getattribute__(module, "__dict__").get("__version__")
    # PyTorch's is of a class of its own.
    return str(version) if isinstance(version, str) else None


# TensorFlow says 0 unless a program or a variable has set its pool.
_THREADS: dict[str, Callable[[], int | None]] = {
    "torch": lambda: int(sys.modules["torch"].get_num_threads()),
    "tensorflow": lambda: sys.modules["tensorflow"].config.threading.get_intra_op_parallelism_threads() or None,
    "jax": lambda: threads_named(XLA_POOL) or None,
}
