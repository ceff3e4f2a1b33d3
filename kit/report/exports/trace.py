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

from kit.compare.clean_cycles import fractions_taken
from kit.errors import KitError
from kit.profile.schema import CellResult, Launch
from kit.report.exports import Exported, json_bytes

Event = dict[str, Any]
ROUNDS = 0  # the thread of the rounds


def write(exported: Exported) -> dict[str, bytes]:
    """Return one JSON file.

    Raises:
        KitError: nothing ran.
    """
    launches = [
        (result, launch)
        for result in exported.profile.cells
        for launch in result.launches
        if launch.phases or launch.blocks.begin_ns
    ]
    if not launches:
        raise KitError(f"{exported.path}: no launch recorded when it ran; measure it again with `kit run`")
    numbers = sorted({launch.round for _, launch in launches})
    threads = {name: index for index, name in enumerate(dict.fromkeys(launch.process for _, launch in launches), 1)}
    dates_ns = {number: min(_date_ns(launch) for _, launch in launches if launch.round == number) for number in numbers}
    events = [_name("process_name", ROUNDS, exported.label), _name("thread_name", ROUNDS, "rounds")]
    events += [_name("thread_name", thread, process) for process, thread in threads.items()]
    for number in numbers:
        of_round = [(result, launch) for result, launch in launches if launch.round == number]
        spans = [(phase.begin_ns, phase.duration_ns) for _, launch in of_round for phase in launch.phases]
        spans += [
            span for _, launch in of_round for span in zip(launch.blocks.begin_ns, launch.blocks.span_ns, strict=True)
        ]
        begin_ns, end_ns = min(begin for begin, _ in spans), max(begin + span for begin, span in spans)
        zero_ns = begin_ns - (dates_ns[number] - dates_ns[numbers[0]])
        events.append(_slice(f"round {number + 1}", ROUNDS, begin_ns - zero_ns, end_ns - begin_ns))
        for result, launch in of_round:
            events += _of_launch(result, launch, threads[launch.process], zero_ns)
    return {"": json_bytes({"traceEvents": events, "displayTimeUnit": "ms"}, has_lines=False)}


def _of_launch(result: CellResult, launch: Launch, thread: int, zero_ns: int) -> Iterator[Event]:
    for phase in launch.phases:
        yield _slice(f"{phase.name} {result.key}", thread, phase.begin_ns - zero_ns, phase.duration_ns)
    blocks, end_ns = launch.blocks, None
    taken = fractions_taken(result.cell, launch, blocks)
    for index, begin_ns in enumerate(blocks.begin_ns):
        if end_ns is not None and begin_ns > end_ns:
            yield _slice("stopped", thread, end_ns - zero_ns, begin_ns - end_ns)
        step_ns = blocks.duration_ns[index] / blocks.steps[index]
        about = {"cycle": blocks.cycle[index] + 1, "steps": blocks.steps[index], "step_ns": step_ns}
        yield _slice("block", thread, begin_ns - zero_ns, blocks.span_ns[index], about)
        if (fraction := taken[index]) is not None:
            yield _counter("contention", begin_ns - zero_ns, "%", 100 * fraction)
        end_ns = begin_ns + blocks.span_ns[index]
    steady_ns = blocks.begin_ns[0] if blocks.begin_ns else launch.phases[-1].begin_ns
    for sensor, summary in launch.sensors.items():
        yield _counter(sensor, steady_ns - zero_ns, summary.unit, summary.mean)
    for energy in launch.energy:
        if energy.joules_j is not None and energy.window_ns and energy.begin_ns is not None:
            name = " ".join(filter(None, ("power", energy.sensor, energy.device_id, energy.tier)))
            yield _counter(name, energy.begin_ns - zero_ns, "W", 1e9 * energy.joules_j / energy.window_ns)


def _date_ns(launch: Launch) -> int:
    return round(1e9 * datetime.fromisoformat(launch.started).timestamp())


def _slice(name: str, thread: int, at_ns: float, duration_ns: int, about: Event | None = None) -> Event:
    times = {"ts": at_ns / 1e3, "dur": duration_ns / 1e3}
    return {"ph": "X", "name": name, "pid": 1, "tid": thread, **times, "args": about or {}}


def _counter(name: str, at_ns: float, unit: str, value: float) -> Event:
    return {"ph": "C", "name": name, "pid": 1, "ts": at_ns / 1e3, "args": {unit: value}}


def _name(kind: str, thread: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": 1, "tid": thread, "args": {"name": name}}
