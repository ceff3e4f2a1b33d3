"""Caches of compilations that outlive a process: a launch does without them, so that every round compiles anew.

the user's variables ─► left out            `compile_anew`, before the framework is imported
the program's code   ─► said of the launch  `kept_by`, after its blocks
a variant's variable ─► kept, and said
--reuse-compiled     ─► kept in a folder of the run (`kit.runner.worker_spec`)
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from kit.backends.entry import BackendEntry

# Of JAX: its variable, the setting that this becomes, and the switch without which the folder is not used.
JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
JAX_FOLDER, JAX_SWITCH = "jax_compilation_cache_dir", "jax_enable_compilation_cache"
# Variable of a folder -> the module that uses it, where a program imports that at all.
USED_BY = {"TORCHINDUCTOR_CACHE_DIR": "torch._inductor", "TRITON_CACHE_DIR": "triton"}


def compile_anew(entry: BackendEntry) -> None:
    """Leave out what a framework has compiled in an earlier process. Call this before it is imported."""
    for name, setting in entry.compile_anew.items():
        if name.endswith("_FLAGS"):
            if name in os.environ:
                os.environ[name] = " ".join(flag for flag in os.environ[name].split() if not _is_flag(flag, setting))
        elif setting is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = setting.replace("FOLDER", tempfile.gettempdir())


def is_as_given(name: str, value: str, given: Mapping[str, str]) -> bool:
    """Return whether a variable is the user's, after `compile_anew`: whole, or some flags of it."""
    return value == given.get(name) or (name.endswith("_FLAGS") and name in given and value != "")


def set_caches(entry: BackendEntry, variables: Mapping[str, str]) -> list[str]:
    """Return the names of those variables that set a cache of compilations of a framework."""
    return [
        name for name, setting in entry.compile_cache.items() if "FOLDER" in setting and _is_set(name, variables, entry)
    ]


def kept_by(entry: BackendEntry) -> str | None:
    """Return the settings by which this process keeps compilations for later ones; None: it keeps none."""
    return ", ".join(_kept(entry)) or None


def _kept(entry: BackendEntry) -> Iterator[str]:
    for name in set_caches(entry, os.environ):
        # A framework makes its default, below the process's own folder, a variable for its children.
        module = USED_BY.get(name)
        if name.endswith("_FLAGS") or (module in sys.modules and not _is_temporary(os.environ[name])):
            yield name
    config: Any = getattr(sys.modules.get("jax"), "config", None)
    folder, is_on = getattr(config, JAX_FOLDER, None), getattr(config, JAX_SWITCH, False)
    if JAX_VARIABLE in entry.compile_cache and folder and is_on and not _is_temporary(folder):
        yield JAX_FOLDER


def _is_set(name: str, variables: Mapping[str, str], entry: BackendEntry) -> bool:
    if name.endswith("_FLAGS"):
        return any(_is_flag(flag, entry.compile_anew.get(name)) for flag in variables.get(name, "").split())
    return bool(variables.get(name))


def _is_flag(flag: str, names: str | None) -> bool:
    return flag.partition("=")[0] in (names or "").split()


def _is_temporary(folder: str) -> bool:
    return os.path.abspath(folder).startswith(f"{tempfile.gettempdir()}{os.sep}")  # noqa: PTH100 - it may not be there
