"""One profile as a report: the machine, what was requested, and every launch with its blocks, counters and sensors."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TypeVar, get_args

from kit.compare.blocks import block_times_ns, pipeline_ratio
from kit.compare.metrics import counters_per_step, phases_ns, value
from kit.compare.notes import deduplicated, parity_notes, run_notes
from kit.compare.sample import launch_marks, launch_sample
from kit.profile.launch import Fit, Launch, PhaseName
from kit.profile.schema import CellResult, Profile
from kit.profile.sensor import Energy
from kit.profile.store import Steps, labeled_steps, launch_id
from kit.report.machine import clock_facts, facts_of, sensor_table
from kit.report.notes import note_line
from kit.report.plain import NONE, one_line, spreadsheet
from kit.report.quantity import by_name, duration, energy, hundredths, known, moment, number, percent, size
from kit.report.sentences import sentence
from kit.report.table import Report, Table, facts_table, plain_table, words_table
from kit.stats.scores import scores as scores_of

Value = TypeVar("Value")


def profile_report(profile: Profile) -> Report:
    """Return every section of one profile."""
    report = _measured(profile) if profile.measured else _published(profile)
    tables = [table for table in report.tables if table.rows]
    return report._replace(tables=tables, document=profile, is_wide=True)


def steps_document(profile: Profile, steps: Mapping[str, Steps]) -> dict[str, object]:
    """Return the JSON document of a profile with the raw steps of each launch; rounds are counted from 1."""
    launches = [
        {"cell": launch.cell_key, "group": launch.group, "round": launch.round + 1, "step_ns": raw.tolist()}
        for launch, raw in _with_steps(profile, steps)
    ]
    return {"profile": profile, "steps": launches}


def write_steps_csv(profile: Profile, steps: Mapping[str, Steps], stream: IO[str]) -> None:
    """Write a line for each raw step; rounds and cycles are counted from 1, and steps before the first have none."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("cell", "round", "cycle", "kind", "step_ns"))
    for launch, raw in _with_steps(profile, steps):
        cell = spreadsheet(launch.cell_key)
        for cycle, kind, part in labeled_steps(launch, raw):
            number = "" if cycle is None else cycle + 1
            writer.writerows((cell, launch.round + 1, number, kind, step_ns) for step_ns in part.tolist())


def _with_steps(profile: Profile, steps: Mapping[str, Steps]) -> Iterator[tuple[Launch, Steps]]:
    launches = (launch for result in profile.cells for launch in result.launches)
    return ((launch, steps[launch_id(launch)]) for launch in launches if launch_id(launch) in steps)


def _measured(profile: Profile) -> Report:
    parts = (profile.label, profile.id, moment(profile.created), f"kit {profile.kit.version}", profile.schema)
    launches = [(result, launch) for result in profile.cells for launch in result.launches]
    # Rounds are counted from 1.
    heads = [([result.key, str(launch.round + 1)], launch) for result, launch in launches]
    rows = [[*head, *_launch(*measured)] for (head, _), measured in zip(heads, launches, strict=True)]
    groups = [[f"{group.key}: {', '.join(group.cells)}; baseline {group.baseline}"] for group in profile.groups]
    phases = [([result.key], phases_ns(result.launches)) for result in profile.cells]
    counters = [(head, counters_per_step([launch])) for head, launch in heads]
    events = [
        [*head, duration(launch.device_events.host_ns, 4), duration(launch.device_events.device_ns, 4)]
        for head, launch in heads
        if launch.device_events is not None
    ]
    left_out = [[*head, name, sentence(why)] for head, launch in heads for name, why in launch.sensor_reasons.items()]
    joules = [
        [*head, reading.kind, reading.sensor, *_joules(reading)] for head, launch in heads for reading in launch.energy
    ]
    energy_titles = ("cell", "round", "of", "sensor", "joules", "W, peak", "idle W", "updates", "by")
    launch_titles = (
        "cell", "round", "device", "step", "median", "p95", "p99", "blocks sd", "samples/s", "memory", "notes",
    )  # fmt: skip
    tables = [
        facts_table("Machine", facts_of(profile.identity)),
        facts_table("State", facts_of(profile.state.before, profile.state.after)),
        facts_table("Clock", clock_facts(profile.clock)),
        sensor_table(profile.sensors),
        facts_table("Suite", _suite(profile)),
        words_table("Groups", groups),
        _table("Phases, median over rounds", phases, lambda _, value_ns: duration(value_ns), get_args(PhaseName)),
        words_table("Workers", map(_member, profile.cells)),
        plain_table("Launches", launch_titles, rows, left=3),
        plain_table(
            "Fits",
            ("cell", "round", "epochs", "updates", "time", "pipeline", "test pass", "score"),
            [[*head, *_fit(launch, launch.fit)] for head, launch in heads if launch.fit is not None],
        ),
        plain_table(
            "Classes, over the repeats of a fit",
            ("cell", "class", "precision %", "recall %", "F1 %"),
            _classes(profile),
            left=2,
            last_right=True,
        ),
        _table("Counters per step", counters, by_name),
        plain_table("Step by the host's clock and by device events", ("",) * 4, events),
        _table(
            "Sampled, mean and max",
            [(head, launch.sensors) for head, launch in heads],
            lambda _, seen: f"{number(seen.mean)} / {number(seen.max)} {seen.unit}",
        ),
        words_table("Sensors left out", left_out),
        plain_table("Energy", energy_titles, joules, left=4) if joules else words_table("Energy", [["not measured"]]),
    ]
    notes = deduplicated([*run_notes(profile.id, profile), *parity_notes(profile.cells)])
    return Report(
        name="kit show",
        headline=[one_line(" · ".join(part for part in parts if part))],
        tables=tables,
        notes=[one_line(note_line(note)) for note in notes],
        records=[_record(result, launch) for result, launch in launches],
    )


def _published(profile: Profile) -> Report:
    figures = [(result.key, given.figure, given.value) for result in profile.cells for given in result.published]
    rows = [[key, name, number(value)] for key, name, value in figures]
    heading = one_line(f"{profile.id} · published in {profile.source}, not measured here · {profile.schema}")
    table = plain_table("Published", ("", "", ""), rows, left=2, last_right=True)
    records: list[dict[str, object]] = [{"cell": key, "figure": name, "value": value} for key, name, value in figures]
    return Report(name="kit show", headline=[heading], tables=[table], records=records)


def _suite(profile: Profile) -> dict[str, str]:
    suite, plan = profile.suite, profile.suite.plan
    facts = {
        "name": f"{suite.name} · {suite.sha256[:8]}",
        "compares": ", ".join(suite.compare),
        "one process measures all": ", ".join(suite.process_axes) or "nothing: each cell has its own process",
        "rounds": f"{suite.rounds}" + (f", until ±{suite.precision_pct:g} %" if suite.precision_pct else ""),
        "plan": f"{plan.cycles} blocks of {plan.block_s:g} s, lead-in {plan.lead_in_s:g} s, "
        f"warm-up {plan.warmup_s:g} s and {plan.warmup_steps} steps, energy {plan.energy_s:g} s",
        "data": (", ".join(f"{name}: {used}" for name, used in suite.data.items()) or "the programs' own")
        + f" · seed {suite.seed}",
    }
    for name, source in suite.programs.items():
        facts[f"program {name}"] = f"{source.function} of {source.path} · {source.sha256[:8]}"
    for variant in suite.variants:
        env = " ".join(f"{name}={value}" for name, value in variant.env.items())
        injected = f" {variant.slowdown_pct:g} % slower on purpose" if variant.slowdown_pct else ""
        image = f"{variant.image} ({variant.image_digest})" if variant.image else ""
        facts[f"variant {variant.name}"] = f"{variant.python or image} {env}{injected}".strip() or "default settings"
    return facts


def _member(result: CellResult) -> list[str]:
    """Return what ran a cell's launches, each value once."""
    values: list[list[str]] = [[], [], [], []]
    for launch in result.launches:
        versions, threads, settings, kernels = values
        framework = f"{launch.backend_version} on " if launch.backend_version else ""
        versions.append(f"{framework}Python {launch.python}" if launch.python else "")
        if (compute := launch.threads) is not None:
            cpus = f" in {len(launch.ranks)} ranks: " if launch.ranks else ""
            parts = [rank.cpus for rank in launch.ranks] or [compute.cpus]
            cpus += " | ".join(",".join(map(str, part)) for part in parts)
            used = "" if compute.used is None else f", {compute.used} used"
            requested = f"({compute.requested} requested{used})"
            threads.append(f"{compute.reported or 'unknown'} threads {requested} on CPUs {cpus}")
        waits = {} if launch.empty_wait_ns is None else {"empty wait": by_name("empty_wait_ns", launch.empty_wait_ns)}
        settings.append(", ".join(f"{name} {value}" for name, value in (launch.settings | waits).items()))
        kernels.append(", ".join(launch.kernels))
    return [result.key, *(" / ".join(dict.fromkeys(map(one_line, filter(None, each)))) or NONE for each in values)]


def _table(
    title: str,
    rows: Sequence[tuple[list[str], Mapping[str, Value]]],
    show: Callable[[str, Value], str],
    order: Sequence[str] = (),
) -> Table:
    """Return a row for each that has values, a column for each name, in `order` or as they come."""
    rows = [(head, values) for head, values in rows if values]
    names = list(dict.fromkeys(name for _, values in rows for name in values))
    if order:
        names.sort(key=order.index)
    words = [
        [*head, *(show(name, values[name]) if name in values else NONE for name in names)] for head, values in rows
    ]
    heads = ["cell", "round"][: len(rows[0][0])] if rows else []
    return plain_table(title, [*heads, *map(one_line, names)], words, last_right=True)


def _launch(result: CellResult, launch: Launch) -> list[str]:
    device = ", ".join(launch.device_ids) or result.cell.device
    if launch.failure is not None:
        # An exception's last line there is the exception.
        tail = "" if "type" in launch.failure.reason.values else launch.failure.stderr_tail
        words = f"failed in {launch.failure.phase}: {sentence(launch.failure.reason)}"
        return [device, *[NONE] * 7, ": ".join([words, *tail.strip().splitlines()[-1:]])]
    if not launch.gave_number:
        return [device, *[NONE] * 7, "no blocks"]
    sample = launch_sample(result, launch)
    steps_ns = block_times_ns(launch)
    values = [
        duration(value(sample, "step_ns") or 0, 4),
        *(known(value_ns, duration) for value_ns in (value(sample, "latency_ns"), launch.p95_ns, launch.p99_ns)),
        f"{100 * statistics.stdev(steps_ns) / statistics.mean(steps_ns):.1f} %" if len(steps_ns) > 1 else NONE,
        known(value(sample, "samples_per_s"), number),
        known(value(sample, "peak_memory_b"), size),
    ]
    return [device, *values, ", ".join(sentence(note) for note in launch_marks(result.cell, launch))]


def _record(result: CellResult, launch: Launch) -> dict[str, object]:
    """Return the numbers of a launch; rounds are counted from 1."""
    sample = launch_sample(result, launch)
    record: dict[str, object] = {"cell": result.key, "group": launch.group, "round": launch.round + 1}
    record |= {name: value(sample, name) for name in ("step_ns", "latency_ns", "samples_per_s", "peak_memory_b")}
    device = " ".join(launch.device_ids) or result.cell.device
    record |= {"device": device, "p95_ns": launch.p95_ns, "p99_ns": launch.p99_ns}
    record["marks"] = " ".join(note.code for note in launch_marks(result.cell, launch))
    record["failure"] = None if launch.failure is None else sentence(launch.failure.reason)
    record |= {f"phase {name}_ns": median_ns for name, median_ns in phases_ns(sample.good).items()}
    return record | {f"{name} per step": grown for name, grown in counters_per_step(sample.good).items()}


def _joules(reading: Energy) -> list[str]:
    """Return joules with their error, power, idle before and after, and by what; or why there are none."""
    by = " ".join(part.replace("_", " ") for part in (reading.tier, reading.method) if part)
    if reading.joules_j is None or not reading.window_ns:
        return [*[NONE] * 4, "unknown" if reading.reason is None else sentence(reading.reason)]
    error = "" if reading.error_fraction is None else f" ±{100 * reading.error_fraction:.1f} %"
    idles = (known(watts, number) for watts in (reading.idle_before_w, reading.idle_after_w))
    why = "" if reading.idle_reason is None else f"; idle: {sentence(reading.idle_reason)}"
    power_w = reading.joules_j / reading.window_ns * 1e9
    return [
        f"{energy(reading.joules_j)}{error} in {duration(reading.window_ns)}",
        f"{number(power_w)} / {known(reading.power_max_w, number)}",
        " / ".join(idles),
        known(reading.updates, str),
        f"{by}{why}",
    ]


def _fit(launch: Launch, fit: Fit) -> list[str]:
    if fit.confusion is not None:
        score = f"accuracy {hundredths(scores_of(fit.confusion).accuracy)} %"
    elif fit.mean_squared_error is not None:
        score = f"mean squared error {number(fit.mean_squared_error)}"
    else:
        score = known(fit.reason, sentence)
    return [
        str(fit.epochs),
        f"{fit.updates} of {fit.all_updates}" if fit.is_part else str(fit.updates),
        duration(sum(launch.blocks.duration_ns)),
        known(pipeline_ratio(launch, fit), percent),
        known(fit.test_ns, duration),
        score,
    ]


def _classes(profile: Profile) -> list[list[str]]:
    """Return precision, recall and F1 of each class, over all repeats of a cell, and their plain means."""
    rows = []
    for result in profile.cells:
        confusions = [launch.fit.confusion for launch in result.launches if launch.fit and launch.fit.confusion]
        if confusions:
            # Repeats of one size weigh alike: their counts may be added.
            total = [[sum(cells) for cells in zip(*each, strict=True)] for each in zip(*confusions, strict=True)]
            scores = scores_of(total)
            shares = list(zip(scores.precision, scores.recall, scores.f1, strict=True))
            shares.append((scores.macro_precision, scores.macro_recall, scores.macro_f1))
            names = [*map(str, range(len(shares) - 1)), "macro"]
            rows += [[result.key, name, *map(hundredths, share)] for name, share in zip(names, shares, strict=True)]
    return rows
