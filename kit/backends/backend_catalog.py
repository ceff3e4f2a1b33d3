"""The backends by name, known without importing any framework; and loading one.

A backend is a folder in `kit/backends/`: `about.py` with its `BackendEntry` imports no framework, `backend.py` with
`BACKEND` imports it, and `operations.py` with `build(cell)` is there if the backend has operations. Other distributions
add such packages as entry points of the group `steadykit.backends`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from kit.backends.entry import BackendEntry, BackendError, keeps_defaults, kit_entries
from kit.distribution import installed

if TYPE_CHECKING:
    from kit.backends.protocol import Backend, Runnable
    from kit.profile.cell import Cell

_entries = kit_entries()
_packages = {name: f"{__package__}.{name}" for name in _entries}
_added = installed("backend", (BackendEntry,), _entries, lambda point: import_module(f"{point.value}.about").ENTRY)
for _name, (_entry, _point) in _added.items():
    _entries[_name], _packages[_name] = _entry, _point.value
CATALOG: dict[str, BackendEntry] = dict(sorted(_entries.items(), key=lambda item: (item[1].rank, item[0])))
ENVIRONMENT_PREFIXES = [prefix for entry in CATALOG.values() for prefix in entry.environment_prefixes]
# User programs bring their own workload.
FRAMEWORKS = [name for name, entry in CATALOG.items() if entry.builds_workloads]
# The extra of the same name installs the framework of each.
WITH_EXTRA = [name for name in FRAMEWORKS if name not in _added]


def load(name: str) -> Backend:
    """Import the framework of the backend `name`, and return that backend.

    Raises:
        BackendError: there is no such backend, or its framework or a part of it is not installed.
    """
    if name not in CATALOG:
        raise BackendError(f"no backend {name!r}; choose from {', '.join(FRAMEWORKS)}")
    entry = CATALOG[name]
    for variable, value in {**entry.environment, **({} if keeps_defaults() else entry.sharing)}.items():
        os.environ.setdefault(variable, value)
    try:
        module = import_module(f"{_packages[name]}.backend")
    except ImportError as error:
        raise BackendError(f"{entry.title} cannot be imported ({error}); install it or leave it out") from error
    return cast("Backend", module.BACKEND)


def has_operations(name: str) -> bool:
    """Return whether ceilings can be measured in a backend."""
    return find_spec(f"{_packages[name]}.operations") is not None


def load_operations(name: str) -> Callable[[Cell], Runnable]:
    """Import a backend's framework, and return the function that builds the operation of a cell."""
    return cast("Callable[[Cell], Runnable]", import_module(f"{_packages[name]}.operations").build)
