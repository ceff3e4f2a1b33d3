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

from kit.errors import KitError
from kit.workloads import datasets, networks
from kit.workloads.data.dataset import Dataset
from kit.workloads.installed import installed
from kit.workloads.workload import Family, Workload


class MissingWorkloadError(KitError):
    """This interpreter lacks the distribution that adds a workload."""


class ClashError(KitError):
    """Two files of the kit hold something of one name."""


class ParameterError(KitError):
    """A workload has no such parameter, or not with this value."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Kind = TypeVar("_Kind", bound=_Named)


def discover(package: ModuleType, kind: type[_Kind], file: str = "") -> dict[str, _Kind]:
    """Return every object of `kind` that a module of `package` holds, by its name.

    Where each entry is a folder, `file` is the module in it that is imported, and nothing else of it.

    Raises:
        ClashError: two objects have one name.
    """
    found: dict[str, _Kind] = {}
    modules: dict[str, str] = {}
    for entry in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if entry.ispkg or not file:
            module = import_module(f"{entry.name}.{file}" if file else entry.name)
            for value in (value for value in vars(module).values() if isinstance(value, kind)):
                # What a module imports from another is the same object.
                if found.setdefault(value.name, value) is not value:
                    places = f"{modules[value.name]} and {module.__name__}"
                    raise ClashError(f"{places} both have a {kind.__name__} {value.name!r}; rename one")
                modules.setdefault(value.name, module.__name__)
    return found


WORKLOADS: dict[str, Workload | Family] = {**discover(networks, Workload), **discover(networks, Family)}
WORKLOADS |= {name: found for name, (found, _) in installed("workload", (Workload, Family), WORKLOADS).items()}
DATASETS: dict[str, Dataset] = discover(datasets, Dataset)
DATASETS |= {name: found for name, (found, _) in installed("dataset", (Dataset,), DATASETS).items()}


def parameters_of(name: str) -> Mapping[str, int]:
    """Return the parameters of the workload called `name`, with their defaults."""
    found = WORKLOADS[name]
    return found.defaults if isinstance(found, Family) else {}


def workload(name: str, parameters: Mapping[str, int]) -> Workload:
    """Return the workload called `name`; parameters that are not given have their defaults.

    Raises:
        MissingWorkloadError: there is none of that name.
        ParameterError: it has no such parameter, or is no network with this value.
    """
    if name not in WORKLOADS:
        raise MissingWorkloadError(f"{sys.executable} has no workload {name!r}; install what adds it there, too")
    found, known = WORKLOADS[name], parameters_of(name)
    for parameter, value in parameters.items():
        if parameter not in known:
            raise ParameterError(f"{name} has no parameter {parameter!r}; it has {', '.join(known) or 'none'}")
        if value < 1:
            raise ParameterError(f"{parameter} of {name} is {value}; give 1 or more")
    try:
        return found.build(**{**known, **parameters}) if isinstance(found, Family) else found
    except ValueError as error:
        raise ParameterError(f"{name}: {error}") from None
