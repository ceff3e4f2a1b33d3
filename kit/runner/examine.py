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
from kit.workloads.data.dataset import SPLITS


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a measurement needs, whether it is here, and what would mend it."""

    subject: str
    here: bool
    detail: str


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `kit doctor` looks at."""

    cpus: list[int]
    container: Container
    backends: list[Finding]
    data: list[Finding]
    clocks: list[Finding]
    sensors: list[SensorReport]


def examine() -> Examination:
    """Look, without downloading or importing a framework."""
    return Examination(
        cpus=usable_cpus(),
        container=container(),
        backends=[_backend(name) for name in FRAMEWORKS],
        data=[_data(name) for name in DATASETS],
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


def _data(name: str) -> Finding:
    data = DATASETS[name]
    try:
        missing = data.missing()
        if missing:
            names = ", ".join(file.name for file in missing)
            detail = f"not in {data.folder()} yet: {names}; `kit run --data {name}` downloads what is missing"
            return Finding(subject=name, here=False, detail=detail)
        samples = sum(len(data.load(split).targets) for split in SPLITS)
    except KitError as error:
        return Finding(subject=name, here=False, detail=str(error))
    return Finding(subject=name, here=True, detail=f"in {data.folder()}; {samples:,} samples read and checked")


def _clock(source: ClockSource) -> Finding:
    try:
        _, why = choose_source(source)
    except ClockError as error:
        return Finding(subject=source, here=False, detail=str(error))
    return Finding(subject=source, here=True, detail=why)
