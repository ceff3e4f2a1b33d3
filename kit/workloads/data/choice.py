"""Which data a run uses: a data set by name, or synthetic data that says it is."""

from __future__ import annotations

from typing import NamedTuple

from kit.profile.launch import SYNTHETIC, DataChoice
from kit.profile.reason import Reason
from kit.workloads.catalog import DATASETS
from kit.workloads.data.dataset import SPLITS, Dataset
from kit.workloads.data.files import DataError, DataUnavailableError
from kit.workloads.data.synthetic import synthetic


class Resolved(NamedTuple):
    """What a choice of data came to."""

    name: str  # of a data set, or SYNTHETIC
    reason: Reason | None  # why synthetic, where "auto" fell back


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
        return Resolved(SYNTHETIC, None)
    if choice not in ("auto", name):
        raise DataError(f"no data {choice!r} for a workload on {name}; choose from auto, synthetic, {name}")
    try:
        DATASETS[name].fetch()
    except DataUnavailableError as error:
        if choice == name:
            raise
        return Resolved(SYNTHETIC, error.reason)
    for split in SPLITS:
        DATASETS[name].load(split)
    return Resolved(name, None)


def dataset(name: str, stands_for: str) -> Dataset:
    """Return the data set called `name`; SYNTHETIC is made for the shapes of `stands_for`."""
    return synthetic(DATASETS[stands_for]) if name == SYNTHETIC else DATASETS[name]
