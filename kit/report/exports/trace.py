"""A run as a trace for Perfetto's page (ui.perfetto.dev) and Chrome's: the Trace Event Format, in JSON.

    process: the run          rounds
    a thread for each worker  its phases; in `steady` its blocks and, between them, when it was stopped
    counters                  power, clock, temperature and so on as the sampler saw them, and what other programs took

Stamps are on a clock that restarts with the machine, so that each round is placed by its date.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kit.compare.runs import run_of
from kit.compare.table import LaunchRow
from kit.errors import KitError
from kit.report.exports import Exported, json_bytes

Event = dict[str, Any]
ROUNDS = 0  # the thread of the rounds


def write(exported: Exported) -> dict[str, bytes]:
    """Return one JSON file.

    Raises:
        KitError: nothing ran.
    """
    table = run_of(exported.label, exported.profile).table
    launches = [launch for launch in table if launch.record.phases or launch.blocks.begin_ns]
    if not launches:
        raise KitError(f"{exported.path}: no launch recorded when it ran; measure it again with `kit run`")
    numbers = sorted({launch.round for launch in launches})
    threads = {name: index for index, name in enumerate(dict.fromkeys(launch.record.process for launch in launches), 1)}
    dates_ns = {number: min(_date_ns(launch) for launch in launches if launch.round == number) for number in numbers}
    events = [_name("process_name", ROUNDS, exported.label), _name("thread_name", ROUNDS, "rounds")]
    events += [_name("thread_name", thread, process) for process, thread in threads.items()]
    for number in numbers:
        of_round = [launch for launch in launches if launch.round == number]
        spans = [(phase.begin_ns, phase.duration_ns) for launch in of_round for phase in launch.record.phases]
        spans += [(block.begin_ns, block.span_ns) for launch in of_round for block in launch.rows()]
        begin_ns, end_ns = min(begin for begin, _ in spans), max(begin + span for begin, span in spans)
        zero_ns = begin_ns - (dates_ns[number] - dates_ns[numbers[0]])
        events.append(_slice(f"round {number + 1}", ROUNDS, begin_ns - zero_ns, end_ns - begin_ns))
        for launch in of_round:
            events += _of_launch(launch, threads[launch.record.process], zero_ns)
    return {"": json_bytes({"traceEvents": events, "displayTimeUnit": "ms"}, has_lines=False)}


def _of_launch(launch: LaunchRow, thread: int, zero_ns: int) -> Iterator[Event]:
    record = launch.record
    for phase in record.phases:
        yield _slice(f"{phase.name} {launch.cell.key}", thread, phase.begin_ns - zero_ns, phase.duration_ns)
    end_ns: int | None = None
    for block in launch.rows():
        if end_ns is not None and block.begin_ns > end_ns:
            yield _slice("stopped", thread, end_ns - zero_ns, block.begin_ns - end_ns)
        about = {"cycle": block.cycle + 1, "steps": block.steps, "step_ns": block.step_ns}
        yield _slice("block", thread, block.begin_ns - zero_ns, block.span_ns, about)
        if block.others is not None:
            yield _counter("contention", block.begin_ns - zero_ns, "%", 100 * block.others)
        end_ns = block.begin_ns + block.span_ns
    steady_ns = launch.blocks.begin_ns[0] if launch.blocks.begin_ns else record.phases[-1].begin_ns
    for sensor, summary in record.sensors.items():
        yield _counter(sensor, steady_ns - zero_ns, summary.unit, summary.mean)
    for energy in record.energy:
        if energy.joules_j is not None and energy.window_ns and energy.begin_ns is not None:
            name = " ".join(filter(None, ("power", energy.sensor, energy.device_id, energy.tier)))
            yield _counter(name, energy.begin_ns - zero_ns, "W", 1e9 * energy.joules_j / energy.window_ns)


def _date_ns(launch: LaunchRow) -> int:
    return round(1e9 * datetime.fromisoformat(launch.record.started).timestamp())


def _slice(name: str, thread: int, at_ns: float, duration_ns: int, about: Event | None = None) -> Event:
    times = {"ts": at_ns / 1e3, "dur": duration_ns / 1e3}
    return {"ph": "X", "name": name, "pid": 1, "tid": thread, **times, "args": about or {}}


def _counter(name: str, at_ns: float, unit: str, value: float) -> Event:
    return {"ph": "C", "name": name, "pid": 1, "ts": at_ns / 1e3, "args": {unit: value}}


def _name(kind: str, thread: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": 1, "tid": thread, "args": {"name": name}}
