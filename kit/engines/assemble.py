"""From a journal's contents to a profile: group launches by cell, summarize, judge parity. Measures nothing."""

from __future__ import annotations

import msgspec

from kit.profile.cell import Cell
from kit.profile.clock import Certificate
from kit.profile.identity import State
from kit.profile.journal import JournalHeader
from kit.profile.launch import Launch
from kit.profile.run_plan import RunPlan
from kit.profile.schema import SCHEMA, CellResult, ObserverOverhead, Profile, StateSpan
from kit.profile.sensor import SensorReport
from kit.stats.cell_summary import summarize_cell
from kit.stats.launch_summary import summary_of
from kit.stats.observer_overhead import not_yet_run, observer_overhead
from kit.stats.parity_verdict import parity_verdicts


def assemble_profile(
    header: JournalHeader, launches: list[Launch], state_after: State | None, *, interrupted: bool
) -> Profile:
    """Build the profile of a run, finished or not, from what its journal holds."""
    sensors = _first_sensors(header, launches)
    # Said once for the profile; a launch repeats it only where it saw something else.
    launches = [msgspec.structs.replace(one, sensors=[]) if one.sensors == sensors else one for one in launches]
    cells = [_cell_result(header.plan, cell, launches) for cell in header.plan.cells]
    for key, verdict in parity_verdicts(cells).items():
        next(cell for cell in cells if cell.key == key).parity = verdict
    return Profile(
        schema=SCHEMA,
        id=header.id,
        created=header.created,
        kit=header.kit,
        identity=header.identity,
        state=StateSpan(before=header.state_before, after=state_after),
        clock=_first_certificate(launches),
        sensors=sensors,
        suite=header.suite,
        cells=cells,
        interrupted=interrupted,
        observer=_observer(header.plan, launches),
        host_band=header.host_band,
    )


def _cell_result(plan: RunPlan, cell: Cell, launches: list[Launch]) -> CellResult:
    own = sorted((launch for launch in launches if launch.cell_key == cell.key), key=lambda launch: launch.round)
    finished = [launch for launch in own if launch.failure is None]
    summaries = [summary for launch in finished if (summary := summary_of(launch)) is not None]
    failures = [launch.failure for launch in own if launch.failure is not None]
    return CellResult(
        key=cell.key,
        cell=cell,
        status="failed" if failures else "ok" if len(finished) >= plan.launches else "incomplete",
        launches=own,
        launch_summaries=summaries,
        summary=summarize_cell(cell, finished, summaries),
        failures=failures,
    )


def _observer(plan: RunPlan, launches: list[Launch]) -> ObserverOverhead | None:
    """Of the launch that was asked for it; null: none was."""
    if plan.observer_s <= 0:
        return None
    key = plan.cells[0].key
    asked = next((launch for launch in launches if (launch.cell_key, launch.round) == (key, 0)), None)
    return not_yet_run(key) if asked is None else observer_overhead(asked)


def _first_certificate(launches: list[Launch]) -> Certificate | None:
    return next((launch.certificate for launch in launches if launch.certificate is not None), None)


def _first_sensors(header: JournalHeader, launches: list[Launch]) -> list[SensorReport]:
    return next((launch.sensors for launch in launches if launch.sensors), header.sensors)
