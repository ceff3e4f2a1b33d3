"""What this machine or container can measure: frameworks, data, sensors, clock. Measures nothing itself."""

from __future__ import annotations

from kit.backends.catalog import CATALOG
from kit.clock import ClockError, choose_source
from kit.engines.interpreters import find_backend, interpreter_for
from kit.engines.run import usable_cpus
from kit.errors import KitError
from kit.fingerprint.container import container
from kit.profile.examination import Examination, Finding
from kit.sensors.catalog import probe_all
from kit.workloads.data import mnist
from kit.workloads.data.split import SPLITS


def examine() -> Examination:
    """Look, without downloading or importing a framework."""
    return Examination(
        cpus=usable_cpus(),
        container=container(),
        backends=[_backend(name) for name in CATALOG],
        data=_data(),
        clocks=[_clock_source("monotonic_raw"), _clock_source("tsc"), _clock_source("cntvct")],
        sensors=probe_all(),
    )


def _backend(name: str) -> Finding:
    try:
        version = find_backend(name).version
    except KitError as error:
        return Finding(subject=name, here=False, detail=str(error))
    if version is None:
        return Finding(subject=name, here=False, detail=f"not installed for {interpreter_for(name)}; `make setup`")
    return Finding(subject=name, here=True, detail=f"{version}, run by {interpreter_for(name)}")


def _data() -> Finding:
    try:
        missing = mnist.missing_files(SPLITS)
        if missing:
            names = ", ".join(file.name for file in missing)
            detail = f"not in {mnist.mnist_folder()} yet: {names}; `kit run --data mnist` downloads what is missing"
            return Finding(subject="mnist", here=False, detail=detail)
        samples = sum(len(mnist.read_split(split)[1]) for split in SPLITS)
    except KitError as error:
        return Finding(subject="mnist", here=False, detail=str(error))
    return Finding(subject="mnist", here=True, detail=f"in {mnist.mnist_folder()}; {samples} samples read and checked")


def _clock_source(source: str) -> Finding:
    try:
        _, reason = choose_source(source)  # type: ignore[arg-type]
    except ClockError as error:
        return Finding(subject=source, here=False, detail=str(error))
    return Finding(subject=source, here=True, detail=reason)
