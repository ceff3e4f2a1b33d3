"""What this machine or container can measure: frameworks, data, clocks, sensors. Measures nothing itself."""

from __future__ import annotations

from typing import get_args

import msgspec

from kit.backends.catalog import CATALOG, FRAMEWORKS
from kit.clock import ClockError, choose_source
from kit.errors import KitError
from kit.fingerprint.container import container
from kit.profile.clock import ClockSource
from kit.profile.identity import Container
from kit.profile.sensor import SensorReport
from kit.runner.interpreters import find_backend, interpreter_for
from kit.runner.run import usable_cpus
from kit.sensors.catalog import probe_all
from kit.workloads.catalog import DATASETS
from kit.workloads.data.dataset import SPLITS, Split
from kit.workloads.data.files import DataError


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a measurement needs, whether it is here, and what would mend it."""

    subject: str
    here: bool
    detail: str


class DataFinding(Finding, frozen=True, kw_only=True):
    """One data set."""

    folder: str  # where it is, or would be
    samples: dict[Split, int] | None = None  # None: not here, or not usable
    checksum_known: bool | None = None


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `kit doctor` looks at."""

    cpus: list[int]
    container: Container
    backends: list[Finding]
    data: list[DataFinding]
    clocks: list[Finding]
    sensors: list[SensorReport]


def examine() -> Examination:
    """Look, without downloading or importing a framework."""
    return Examination(
        cpus=usable_cpus(),
        container=container(),
        backends=[_backend(name) for name in FRAMEWORKS],
        data=[examine_data(name) for name in DATASETS],
        clocks=[_clock(source) for source in get_args(ClockSource)],
        sensors=probe_all(),
    )


def _backend(name: str) -> Finding:
    python = interpreter_for(name)
    try:
        version = find_backend(name).version
    except KitError as error:
        return Finding(subject=name, here=False, detail=str(error))
    if version is None:
        mend = f"install it there, or set {CATALOG[name].interpreter_variable} to a Python that has it"
        return Finding(subject=name, here=False, detail=f"not installed for {python}; {mend}")
    return Finding(subject=name, here=True, detail=f"{version}, run by {python}")


def examine_data(name: str) -> DataFinding:
    """Look for a data set, and read and check it where it is."""
    data = DATASETS[name]
    folder = data.paths("train")[0].parent
    if missing := data.missing():
        names = ", ".join(file.name for file in missing)
        detail = f"not in {folder} yet: {names}; `kit data fetch {name}` downloads what is missing"
        return DataFinding(subject=name, here=False, detail=detail, folder=str(folder))
    try:
        samples = {split: len(data.load(split).targets) for split in SPLITS}
        known = data.checksum_known()
    except DataError as error:
        return DataFinding(subject=name, here=False, detail=str(error), folder=str(folder))
    counted = " and ".join(f"{count:,} {split}" for split, count in samples.items())
    checksum = "the checksum is right" if known else "the checksum is of no known content"
    return DataFinding(
        subject=name,
        here=True,
        detail=f"in {folder}; {counted} samples; {checksum}",
        folder=str(folder),
        samples=samples,
        checksum_known=known,
    )


def fetch_data(name: str) -> DataFinding:
    """Download what is missing of a data set; read and check it.

    Raises:
        DataError: it cannot be had, or a file that is there is wrong.
    """
    DATASETS[name].fetch()
    found = examine_data(name)
    if not found.here:
        raise DataError(found.detail)
    return found


def _clock(source: ClockSource) -> Finding:
    try:
        _, why = choose_source(source)
    except ClockError as error:
        return Finding(subject=source, here=False, detail=str(error))
    return Finding(subject=source, here=True, detail=why)
