"""One profile in words: the machine, what was asked for, and every launch with its blocks, counters and sensors."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TypeVar, get_args

from kit.audit.member import block_arrays
from kit.compare.measured import NOTHING_SHARED, counters_per_step, launch_marks, numbers_of, phases_ns
from kit.compare.notes import deduplicated, parity_notes, run_notes
from kit.profile.launch import Launch, PhaseName
from kit.profile.schema import CellResult, Profile
from kit.profile.sensor import Energy
from kit.report.machine import clock_lines, identity_lines, sensor_lines, state_lines
from kit.report.plain import NONE, one_line
from kit.report.quantity import by_name, duration, energy, moment, number, size
from kit.report.reasons import sentence
from kit.report.sections import facts, grid, render
from kit.report.show_fits import class_lines, fit_lines
from kit.report.words import note_line

LAUNCH_TITLES = ("cell", "round", "step", "median", "p95", "p99", "blocks ±", "samples/s", "memory", "marks")

Value = TypeVar("Value")


def render_profile(profile: Profile, stream: IO[str], *, parity_tolerance: float) -> str:
    """Return every section of one profile for `stream`."""
    if not profile.measured:
        return _render_published(profile, stream)
    parts = (profile.label, profile.id, moment(profile.created), f"kit {profile.kit.version}", profile.schema)
    heading = " · ".join(part for part in parts if part)
    notes = [*run_notes(profile.id, profile), *parity_notes(profile.cells, parity_tolerance)]
    launches = [(result, launch) for result in profile.cells for launch in result.launches]
    sections = {
        one_line(heading): [one_line(note_line(note)) for note in deduplicated(notes)],
        "Machine": identity_lines(profile.identity),
        "State": state_lines(profile.state),
        "Clock": clock_lines(profile.clock),
        "Sensors": sensor_lines(profile.sensors),
        "Suite": _suite(profile),
        "Groups": [one_line(f"{one.key}: {', '.join(one.cells)}; baseline {one.baseline}") for one in profile.groups],
        "Phases, median over rounds": _table(
            [([result.key], phases_ns(result.launches)) for result in profile.cells],
            lambda _, value_ns: duration(value_ns),
            get_args(PhaseName),
        ),
        "Members": grid([_member(result) for result in profile.cells]),
        "Launches": grid([LAUNCH_TITLES, *(_launch(*one) for one in launches)], [False, *[True] * 8]),
        "Fits": fit_lines(profile),
        "Classes, over the repeats of a fit": class_lines(profile),
        "Counters per step": _table([(_head(*one), counters_per_step([one[1]])) for one in launches], by_name),
        "Median step by the host's clock and by the device's events": grid(
            [
                [*_head(*one), duration(own.host_ns, 4), duration(own.device_ns, 4)]
                for one in launches
                if (own := one[1].device_events) is not None
            ]
        ),
        "Sampled, mean and max": _table(
            [(_head(*one), one[1].sensors) for one in launches],
            lambda _, own: f"{number(own.mean)} / {number(own.max)} {own.unit}",
        ),
        "Energy": grid([[*_head(*one), of.sensor, _joules(of)] for one in launches for of in one[1].energy])
        or ["not measured"],
    }
    return render({title: lines for title, lines in sections.items() if lines}, stream)


def _render_published(profile: Profile, stream: IO[str]) -> str:
    rows = [[one.key, own.figure, number(own.value)] for one in profile.cells for own in one.published]
    heading = one_line(f"{profile.id} · not measured: published in {profile.source} · {profile.schema}")
    return render({heading: [], "Published": grid(rows, [False, False, True])}, stream)


def _suite(profile: Profile) -> list[str]:
    suite, plan = profile.suite, profile.suite.plan
    found = {
        "name": f"{suite.name} · {suite.sha256[:8]}",
        "compares": ", ".join(suite.compare),
        "processes hold cells over": ", ".join(suite.share) or "nothing: one cell a process",
        "rounds": f"{suite.rounds}" + (f", until ±{suite.precision_pct:g} %" if suite.precision_pct else ""),
        "plan": f"{plan.cycles} blocks of {plan.block_s:g} s, lead-in {plan.lead_in_s:g} s, "
        f"warm-up {plan.warmup_s:g} s and {plan.warmup_steps} steps, energy {plan.energy_s:g} s",
        "data": (", ".join(f"{name}: {used}" for name, used in suite.data.items()) or "the programs' own")
        + f" · seed {suite.seed}",
    }
    for name, source in suite.programs.items():
        found[f"program {name}"] = f"{source.function} of {source.path} · {source.sha256[:8]}"
    for one in suite.variants:
        env = " ".join(f"{name}={value}" for name, value in one.env.items())
        planted = f" {one.slowdown_pct:g} % slower on purpose" if one.slowdown_pct else ""
        image = f"{one.image} ({one.image_digest})" if one.image else ""
        found[f"variant {one.name}"] = f"{one.python or image} {env}{planted}".strip() or "as it comes"
    return facts(found)


def _member(result: CellResult) -> list[str]:
    """Return what ran a cell's launches, each value once."""
    versions = {
        f"{one.backend_version} on Python {one.python}" if one.backend_version else f"Python {one.python}": None
        for one in result.launches
        if one.python
    }
    threads = {
        f"{one.threads.reported or 'unknown'} threads ({one.threads.requested} asked for) on CPUs "
        f"{','.join(map(str, one.threads.cpus))}": None
        for one in result.launches
        if one.threads is not None
    }
    settings = {
        one_line(", ".join(f"{name} {value}" for name, value in one.settings.items())): None
        for one in result.launches
        if one.settings
    }
    kernels = {one_line(", ".join(one.kernels)): None for one in result.launches if one.kernels}
    return [result.key, *(" / ".join(each) or NONE for each in (versions, threads, settings, kernels))]


def _head(result: CellResult, launch: Launch) -> list[str]:
    return [result.key, str(launch.round)]


def _table(
    rows: Sequence[tuple[list[str], Mapping[str, Value]]], show: Callable[[str, Value], str], order: Sequence[str] = ()
) -> list[str]:
    """Return a row for each that has values, a column for each name, in `order` or as they come."""
    rows = [(head, own) for head, own in rows if own]
    known = dict.fromkeys(name for _, own in rows for name in own)
    names = sorted(known, key=order.index) if order else list(known)
    shown = [[*head, *(show(name, own[name]) if name in own else NONE for name in names)] for head, own in rows]
    titles = [["cell", "round"][: len(head)] + names for head, _ in rows[:1]]
    return grid([*titles, *shown], [False, *[True] * (len(names) + 1)])


def _launch(result: CellResult, launch: Launch) -> list[str]:
    if launch.failure is not None:
        # An exception's last line there is the exception.
        tail = "" if "type" in launch.failure.reason.values else launch.failure.stderr_tail
        stderr = tail.strip().splitlines()[-1:]
        said = f"failed in {launch.failure.phase}: {sentence(launch.failure.reason)}"
        return [*_head(result, launch), *[NONE] * 7, ": ".join([said, *stderr])]
    if not launch.gave_number:
        return [*_head(result, launch), *[NONE] * 7, "no blocks"]
    numbers = numbers_of(result, [launch], NOTHING_SHARED, details=False)
    steps_ns = block_arrays(launch).times_ns("step").tolist()
    spread = statistics.stdev(steps_ns) / statistics.mean(steps_ns) if len(steps_ns) > 1 else None
    values = [
        duration(numbers.step_ns or 0, 4),
        NONE if numbers.latency_ns is None else duration(numbers.latency_ns),
        NONE if launch.p95_ns is None else duration(launch.p95_ns),
        NONE if launch.p99_ns is None else duration(launch.p99_ns),
        NONE if spread is None else f"{100 * spread:.1f} %",
        NONE if numbers.samples_per_s is None else number(numbers.samples_per_s),
        NONE if numbers.peak_memory_b is None else size(numbers.peak_memory_b),
    ]
    return [*_head(result, launch), *values, ", ".join(sentence(mark) for mark in launch_marks(launch))]


def _joules(one: Energy) -> str:
    if one.joules_j is None or one.window_ns is None:
        return "unknown" if one.reason is None else sentence(one.reason)
    return f"{energy(one.joules_j)} in {duration(one.window_ns)}"
