"""The networks and data sets there are, by name: whatever stands in `networks/` and `datasets/`, one file each.

Other distributions add theirs as entry points of the groups `steadykit.workloads` and `steadykit.datasets`.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Protocol, TypeVar

from kit.workloads import datasets, networks
from kit.workloads.data.dataset import Dataset
from kit.workloads.installed import WorkloadError, installed
from kit.workloads.operations import OPERATIONS
from kit.workloads.workload import Family, Workload


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Kind = TypeVar("_Kind", bound=_Named)


def discover(package: ModuleType, kind: type[_Kind], file: str = "") -> dict[str, _Kind]:
    """Return every object of `kind` that a module of `package` holds, by its name.

    Where each entry is a folder, `file` is the module in it that is imported, and nothing else of it.

    Raises:
        WorkloadError: two objects have one name.
    """
    objects: dict[str, _Kind] = {}
    modules: dict[str, str] = {}
    for entry in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if entry.ispkg or not file:
            module = import_module(f"{entry.name}.{file}" if file else entry.name)
            for value in (value for value in vars(module).values() if isinstance(value, kind)):
                # What a module imports from another is the same object.
                if objects.setdefault(value.name, value) is not value:
                    places = f"{modules[value.name]} and {module.__name__}"
                    raise WorkloadError(f"{places} both have a {kind.__name__} {value.name!r}; rename one")
                modules.setdefault(value.name, module.__name__)
    return objects


WORKLOADS: dict[str, Workload | Family] = {**discover(networks, Workload), **discover(networks, Family)}
_added = installed("workload", (Workload, Family), [*WORKLOADS, *OPERATIONS])
WORKLOADS |= {name: added for name, (added, _) in _added.items()}
DATASETS: dict[str, Dataset] = discover(datasets, Dataset)
DATASETS |= {name: added for name, (added, _) in installed("dataset", (Dataset,), DATASETS).items()}


def parameters_of(name: str) -> Mapping[str, int]:
    """Return the parameters of the workload called `name`, with their defaults; of an operation the first size."""
    if name in OPERATIONS:
        operation = OPERATIONS[name]
        return {} if operation.parameter is None else {operation.parameter: operation.sizes[0]}
    entry = WORKLOADS[name]
    return entry.defaults if isinstance(entry, Family) else {}


def workload(name: str, parameters: Mapping[str, int]) -> Workload:
    """Return the workload called `name`; parameters that are not given have their defaults.

    Raises:
        WorkloadError: there is none of that name, it has no such parameter, or is no network with this value.
    """
    if name not in WORKLOADS:
        raise WorkloadError(f"{sys.executable} has no workload {name!r}; install the package that adds it there, too")
    entry, known = WORKLOADS[name], parameters_of(name)
    for parameter, value in parameters.items():
        if parameter not in known:
            raise WorkloadError(f"{name} has no parameter {parameter!r}; it has {', '.join(known) or 'none'}")
        if value < 1:
            raise WorkloadError(f"{parameter} of {name} is {value}; give 1 or more")
    try:
        return entry.build(**{**known, **parameters}) if isinstance(entry, Family) else entry
    except ValueError as error:
        raise WorkloadError(f"{name}: {error}") from None
