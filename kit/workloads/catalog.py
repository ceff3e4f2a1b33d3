"""The networks and data sets there are, by name: those of `networks.py`, and one file each in `datasets/`.

Other distributions add theirs as entry points of the groups `steadykit.workloads` and `steadykit.datasets`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from kit.workloads import datasets
from kit.workloads.data.dataset import Dataset
from kit.workloads.installed import WorkloadError, discover, installed
from kit.workloads.networks import NETWORKS
from kit.workloads.operations import OPERATIONS
from kit.workloads.workload import Family, Workload

WORKLOADS: dict[str, Workload | Family] = {network.name: network for network in NETWORKS}
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
