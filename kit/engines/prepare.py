"""Everything that is decided and recorded before the first launch: backends found, data at hand, order, identity."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import get_args

from kit.clock import Preference
from kit.engines.energy_window import energy_answers, steady_s_min
from kit.engines.interpreters import find_backend
from kit.engines.resumable import interpreters
from kit.errors import KitError
from kit.fingerprint.accelerators import absence
from kit.fingerprint.identity import identity
from kit.fingerprint.state import state
from kit.profile.cell import Cell, Device
from kit.profile.host_band import known_band
from kit.profile.journal import JournalHeader
from kit.profile.run_plan import RunPlan
from kit.profile.schema import Skipped, SuiteUsed
from kit.sensors.catalog import probe_all
from kit.stats.precision import SEQUENTIAL_LAUNCHES_MIN
from kit.suites.suite import Suite
from kit.version import __version__
from kit.workloads.data.dataset import Resolved


class BackendMissingError(KitError):
    """A framework that was asked for by name is not installed."""


class DeviceMissingError(KitError):
    """A device that was asked for is certainly not in this machine."""


def check_devices(cells: list[Cell]) -> None:
    """Look for the devices of the cells, where their absence can be told without a framework.

    Raises:
        DeviceMissingError: one of them is not here; what may be here is left to the framework.
    """
    for device in dict.fromkeys(cell.device for cell in cells):
        why = absence(device)
        if why is None:
            continue
        here = " and ".join(other for other in get_args(Device) if other != device and absence(other) is None)
        raise DeviceMissingError(
            f"device {device} was asked for, and only {here} is here: {why}; "
            f"run where there is one, or with --device cpu (`kit doctor` says what can be measured here)"
        )


def keep_installed(cells: list[Cell], asked_for: list[str]) -> tuple[list[Cell], list[Skipped]]:
    """Leave out the cells of frameworks that are not installed.

    Raises:
        BackendMissingError: one of them was asked for by name, or none is installed.
    """
    skipped: list[Skipped] = []
    for backend in dict.fromkeys(cell.backend for cell in cells):
        if find_backend(backend).version is not None:
            continue
        reason = f"{backend} is not installed"
        if backend in asked_for:
            raise BackendMissingError(f"{reason}; install it (`make setup`), or leave out --backend {backend}")
        skipped.append(Skipped(backend=backend, reason=reason))
    missing = {entry.backend for entry in skipped}
    kept = [cell for cell in cells if cell.backend not in missing]
    if not kept:
        raise BackendMissingError(f"none of {', '.join(sorted(missing))} is installed; install them with `make setup`")
    return kept, skipped


def prepare(
    suite: Suite,
    cells: list[Cell],
    *,
    skipped: list[Skipped],
    data: Resolved,
    seed: int,
    cpus: list[int],
    clock: Preference,
    precision_pct: float | None = None,
) -> JournalHeader:
    """The header of a new run's journal."""
    sensors = probe_all()
    steps = suite.measure.plan(energy_answers=energy_answers(sensors))
    launches = suite.measure.launches if precision_pct is None else SEQUENTIAL_LAUNCHES_MIN
    machine = identity(interpreters(cells))
    return JournalHeader(
        id=str(uuid.uuid4()),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        kit=__version__,
        identity=machine,
        state_before=state(),
        sensors=sensors,
        suite=SuiteUsed(
            name=suite.name,
            sha256=suite.sha256,
            launches=launches,
            plan=steps,
            data=data.name,
            data_note=data.note,
            seed=seed,
            skipped=skipped,
            precision_pct=precision_pct,
            observer_s=suite.measure.observer_s,
        ),
        plan=RunPlan(
            cells=cells,
            steps=steps,
            steady_s_min=steady_s_min(steps, sensors),
            launches=launches,
            precision_pct=precision_pct,
            data=data.name,
            seed=seed,
            cpus=cpus,
            clock=clock,
            observer_s=suite.measure.observer_s,
        ),
        host_band=known_band(machine.hardware_sha256),
    )
