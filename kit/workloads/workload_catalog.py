"""The networks and data sets there are, by name: those of `networks.py` and `datasets.py`, and which data a run uses.

Other distributions add theirs as entry points of the groups `steadykit.workloads` and `steadykit.datasets`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

from kit.distribution import installed
from kit.errors import KitError
from kit.profile.fields import PARAMETER_MAX, Reason, reason
from kit.profile.schema import SYNTHETIC, DataChoice
from kit.workloads.datasets import DATA_SETS, SPLITS, DataError, Dataset, DataUnavailableError
from kit.workloads.device_operations import OPERATIONS
from kit.workloads.made_data import MADE_DATA_SETS, synthetic
from kit.workloads.networks import NETWORKS
from kit.workloads.workload import NetworkFamily, Workload

WORKLOADS: dict[str, Workload | NetworkFamily] = {network.name: network for network in NETWORKS}
_added = installed("workload", (Workload, NetworkFamily), [*WORKLOADS, *OPERATIONS])
WORKLOADS |= {name: added for name, (added, _) in _added.items()}
DATASETS: dict[str, Dataset] = {data.name: data for data in (*DATA_SETS, *MADE_DATA_SETS)}
DATASETS |= {name: added for name, (added, _) in installed("dataset", (Dataset,), DATASETS).items()}


class WorkloadError(KitError):
    """A workload is not there, or has no such parameter."""


class Resolved(NamedTuple):
    """What a choice of data came to."""

    name: str  # of a data set, or SYNTHETIC
    reason: Reason | None = None  # why synthetic, where "auto" fell back


def resolve_data(choice: DataChoice, name: str) -> Resolved:
    """Fetch and prove the data of a workload before any launch, so that no launch downloads or finds a file broken.

    "auto" is the workload's own data set where it is or can be downloaded, else synthetic. A file that is there and
    wrong is an error under "auto" too: broken data is never traded for synthetic data in silence.

    Args:
        choice: "auto", SYNTHETIC, or the name of a data set.
        name: the data set that the workload is defined on.

    Raises:
        DataError: another data set than the workload's; a file that is there is wrong; or, where the data set was
            asked for by name, it cannot be had.
    """
    if choice == SYNTHETIC:
        return Resolved(SYNTHETIC)
    if choice not in ("auto", name):
        raise DataError(f"no data {choice!r} for a workload on {name}; choose from auto, synthetic, {name}")
    if DATASETS[name] in MADE_DATA_SETS:
        return Resolved(SYNTHETIC, reason("data_is_made", data=name))
    try:
        DATASETS[name].fetch()
    except DataUnavailableError as error:
        if choice == name:
            raise
        return Resolved(SYNTHETIC, error.reason)
    for split in SPLITS:
        DATASETS[name].load(split)
    return Resolved(name)


def dataset(name: str, stands_for: str) -> Dataset:
    """Return the data set called `name`; SYNTHETIC is made for the shapes of `stands_for`."""
    return synthetic(DATASETS[stands_for]) if name == SYNTHETIC else DATASETS[name]


def parameters_of(name: str) -> Mapping[str, int]:
    """Return the parameters of the workload called `name`, with their defaults; of an operation the first size."""
    if name in OPERATIONS:
        operation = OPERATIONS[name]
        return {} if operation.parameter is None else {operation.parameter: operation.sizes[0]}
    entry = WORKLOADS[name]
    return entry.defaults if isinstance(entry, NetworkFamily) else {}


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
        if not 1 <= value <= PARAMETER_MAX:
            raise WorkloadError(f"{parameter} of {name} is {value}; give 1 to {PARAMETER_MAX}")
    try:
        return entry.build(**{**known, **parameters}) if isinstance(entry, NetworkFamily) else entry
    except ValueError as error:
        raise WorkloadError(f"{name}: {error}") from None
