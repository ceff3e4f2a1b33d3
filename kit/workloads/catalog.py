"""The networks and data sets there are, by name: whatever stands in `networks/` and `datasets/`, one file each."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Protocol, TypeVar

from kit.workloads import datasets, networks
from kit.workloads.data.dataset import Dataset
from kit.workloads.workload import Workload


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Kind = TypeVar("_Kind", bound=_Named)


def discover(package: ModuleType, kind: type[_Kind], file: str = "") -> dict[str, _Kind]:
    """Return every object of `kind` that a module of `package` holds, by its name.

    Where each entry is a folder, `file` is the module in it that is imported, and nothing else of it.
    """
    found: dict[str, _Kind] = {}
    for entry in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if entry.ispkg or not file:
            module = import_module(f"{entry.name}.{file}" if file else entry.name)
            found |= {value.name: value for value in vars(module).values() if isinstance(value, kind)}
    return found


WORKLOADS: dict[str, Workload] = discover(networks, Workload)
DATASETS: dict[str, Dataset] = discover(datasets, Dataset)
