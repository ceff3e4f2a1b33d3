"""What this machine or container can measure: frameworks, data, clocks, sensors. Measures nothing itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import get_args

from kit.backends.backend_catalog import CATALOG, FRAMEWORKS
from kit.clock import ClockError, choose_source
from kit.compare.clean import OTHERS_MOST
from kit.devices import DEVICES
from kit.errors import KitError
from kit.fingerprint.doctor_checks import conditions
from kit.fingerprint.this_machine import CpuInfo, container, processor
from kit.profile.facts import Facts
from kit.profile.fields import Reason, reason
from kit.profile.instruments import ClockSource
from kit.report.machine_report import Examination, Examined, ExaminedBackend, ExaminedData
from kit.report.reasons_in_words import sentence
from kit.runner.target import find_backend, interpreter_for
from kit.runner.worker_spec import threads_here, usable_cpus
from kit.sensors.sources import probe_all
from kit.workloads.datasets import SPLITS, DataError, data_folder
from kit.workloads.workload_catalog import DATASETS


def examine() -> Examination:
    """Look, without downloading; each framework is imported by its own interpreter, all at once: it takes seconds.

    One after the other where only one process may hold a device of this machine.
    """
    reasons: dict[str, Reason] = {}
    # Whether other programs run is seen before this one keeps the CPUs busy.
    checked = list(conditions(usable_cpus(), threads_here(), OTHERS_MOST))
    cpu_info = CpuInfo()
    one_by_one = any(device.is_exclusive(1) and device.is_listed() for device in DEVICES.values())
    with ThreadPoolExecutor(max_workers=1 if one_by_one else None) as together:
        backends = together.map(_backend, FRAMEWORKS)
        return Examination(
            cpus=usable_cpus(),
            container=container(),
            data=[_data(name) for name in DATASETS],
            conditions=checked,
            clocks=[_clock(source) for source in get_args(ClockSource)],
            sensors=probe_all(),
            processor=Facts(facts=processor(reasons, cpu_info.answer()), reasons=reasons),
            backends=list(backends),
        )


def _backend(name: str) -> ExaminedBackend:
    python = interpreter_for(name)
    try:
        probe = find_backend(name, devices=True)
    except KitError as error:
        return ExaminedBackend(subject=name, here=False, detail=str(error))
    if probe.version is None:
        remedy = f"install it there, or set {CATALOG[name].interpreter_variable} to a Python that has it"
        return ExaminedBackend(subject=name, here=False, detail=f"not installed for {python}; {remedy}")
    if probe.devices is None:
        detail = f"{probe.version}, run by {python}, cannot be imported: {probe.why_no_devices}"
        return ExaminedBackend(subject=name, here=False, detail=detail)
    kinds = {kind: count for kind, count in probe.devices.items() if count}
    runs_on = ", ".join(kind if count == 1 else f"{kind} × {count}" for kind, count in kinds.items()) or "no device"
    detail = f"{probe.version}, run by {python}; runs on: {runs_on}"
    return ExaminedBackend(subject=name, here=True, detail=detail, devices=probe.devices)


def _data(name: str) -> ExaminedData:
    try:
        return examine_data(name)
    except DataError as error:  # KIT_DATA is wrong: everything else is to be told all the same
        return ExaminedData(subject=name, here=False, detail=str(error), folder="")


def examine_data(name: str) -> ExaminedData:
    """Look for a data set, and read and check it where it is."""
    data = DATASETS[name]
    # Data that is drawn has no file.
    folder = next((data.path(file).parent for file in data.files["train"]), data.folder)
    if missing := data.missing():
        names = ", ".join(file.name for file in missing)
        detail = f"not in {folder} yet: {names}; download with `kit data fetch {name}`"
        if container().text("container.image"):
            detail = sentence(reason("data_not_mounted", data=name, folder=str(data_folder())))
        return ExaminedData(subject=name, here=False, detail=detail, folder=str(folder))
    try:
        samples = {split: len(data.load(split).targets) for split in SPLITS}
        known = data.checksum_known()
    except DataError as error:
        return ExaminedData(subject=name, here=False, detail=str(error), folder=str(folder))
    counted = " and ".join(f"{count:,} {split}" for split, count in samples.items())
    checksum = "the checksum is right" if known else "the checksum is unknown"
    return ExaminedData(
        subject=name,
        here=True,
        detail=f"in {folder}; {counted} samples; {checksum}",
        folder=str(folder),
        samples=samples,
        checksum_known=known,
    )


def fetch_data(name: str) -> ExaminedData:
    """Download what is missing of a data set; read and check it.

    Raises:
        DataError: it cannot be had, or a file that is there is wrong.
    """
    DATASETS[name].fetch()
    finding = examine_data(name)
    if not finding.here:
        raise DataError(finding.detail)
    return finding


def _clock(source: ClockSource) -> Examined:
    try:
        _, why = choose_source(source)
    except ClockError as error:
        return Examined(subject=source, here=False, detail=str(error))
    return Examined(subject=source, here=True, detail=why)
