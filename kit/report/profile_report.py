"""One profile as a report: the machine, what was requested, and every launch with its blocks, counters and sensors."""

from __future__ import annotations

import csv
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any, get_args

from kit.audit.variables import USER_PROGRAM
from kit.compare.bound_threads import bound_threads
from kit.compare.clean import count_blocks
from kit.compare.metrics import counters_per_step, phases_ns, value
from kit.compare.notes import deduplicated, parity_notes, run_notes
from kit.compare.runs import launch_marks, launch_sample
from kit.compare.table import LaunchRow
from kit.profile.instruments import Energy
from kit.profile.schema import CellResult, Fit, Launch, PhaseName, Profile
from kit.profile.store import Steps, labeled_steps, launch_id
from kit.report.formats import no_formula
from kit.report.headline_and_notes import note_line
from kit.report.machine_report import clock_facts, facts_of, sensor_table
from kit.report.reasons_in_words import sentence
from kit.report.records import launch_record
from kit.report.report_table import Report, Table, plain_table, words_table
from kit.report.values_in_words import (
    NONE,
    by_name,
    duration,
    energy,
    hundredths,
    known,
    moment,
    number,
    one_line,
    percent,
    size,
)
from kit.stats.scores import scores as scores_of

# Tables of cells and launches by their titles: the titles of their columns, how many of these are aligned at the left
# (0: those after the listed ones are named by the values), and whether the last one is aligned at the right.
TABLES: Mapping[str, tuple[Sequence[str], int, bool]] = {
    "Phases, median over rounds": (("cell",), 0, True),
    "Workers": (("",) * 6, 6, False),
    "Launches": (
        ("cell", "round", "device", "step", "median", "p95", "p99", "blocks sd", "samples/s", "memory", "notes"),
        3,
        False,
    ),
    "Fits": (("cell", "round", "epochs", "updates", "time", "pipeline", "test pass", "score"), 1, False),
    "Classes, over the repeats of a fit": (("cell", "class", "precision %", "recall %", "F1 %"), 2, True),
    "Counters per step": (("cell", "round"), 0, True),
    "Step by the host's clock and by device events": (("",) * 4, 1, False),
    "Sampled, mean and max": (("cell", "round"), 0, True),
    "Sensors left out": (("",) * 4, 4, False),
    "Energy": (("cell", "round", "of", "sensor", "joules", "W, peak", "idle W", "updates", "by"), 4, False),
}


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
        head = no_formula(launch.cell_key), launch.round + 1
        for cycle, kind, part in labeled_steps(launch, raw):
            number = "" if cycle is None else cycle + 1
            writer.writerows((*head, number, kind, step_ns) for step_ns in part.tolist())


def _with_steps(profile: Profile, steps: Mapping[str, Steps]) -> Iterator[tuple[Launch, Steps]]:
    launches = (launch for result in profile.cells for launch in result.launches)
    return ((launch, steps[launch_id(launch)]) for launch in launches if launch_id(launch) in steps)


def _measured(profile: Profile) -> Report:
    parts = (profile.label, profile.id, moment(profile.created), f"kit {profile.kit.version}", profile.schema)
    rows: dict[str, list[list[Any]]] = {title: [] for title in TABLES}
    records = []
    table, _ = count_blocks(profile.cells, profile.suite.plan.cycles, all_cycles=True)
    for result in profile.cells:
        medians_ns = phases_ns(table.by_cell[result.key])
        phases = {name: duration(medians_ns[name]) if name in medians_ns else "" for name in get_args(PhaseName)}
        rows["Phases, median over rounds"].append([result.key, phases])
        rows["Workers"].append([result.key, *_worker(result)])
        rows["Classes, over the repeats of a fit"] += _classes(result)
        for row in table.by_cell[result.key]:
            records.append(launch_record(row))
            # What one that failed had measured is shown, too.
            launch, whole = row.record, replace(row, counting=row.blocks)
            head = [result.key, str(launch.round + 1)]  # rounds are counted from 1
            rows["Launches"].append([*head, *_launch(row)])
            rows["Fits"] += [[*head, *_fit(whole, launch.fit)]] if launch.fit is not None else []
            grown = {name: by_name(name, value) for name, value in counters_per_step([whole]).items()}
            rows["Counters per step"].append([*head, grown])
            if (events := launch.device_events) is not None:
                times = duration(events.host_ns, 4), duration(events.device_ns, 4)
                rows["Step by the host's clock and by device events"].append([*head, *times])
            gauges = launch.sensors.items()
            seen = {name: f"{number(gauge.mean)} / {number(gauge.max)} {gauge.unit}" for name, gauge in gauges}
            rows["Sampled, mean and max"].append([*head, seen])
            rows["Sensors left out"] += ([*head, name, sentence(why)] for name, why in launch.sensor_reasons.items())
            rows["Energy"] += ([*head, *_energy(reading)] for reading in launch.energy)
    groups = [[f"{group.key}: {', '.join(group.cells)}; baseline {group.baseline}"] for group in profile.groups]
    tables = [
        words_table("Machine", facts_of(profile.identity).items()),
        words_table("State", facts_of(profile.state.before, profile.state.after).items()),
        words_table("Clock", clock_facts(profile.clock).items()),
        sensor_table(profile.sensors),
        words_table("Suite", _suite(profile).items()),
        words_table("Groups", groups),
        *(_table(title, listed) for title, listed in rows.items()),
        *([] if rows["Energy"] else [words_table("Energy", [["not measured"]])]),
    ]
    notes = deduplicated([*run_notes(profile.id, profile), *parity_notes(profile.cells)])
    return Report(
        name="kit show",
        headline=[one_line(" · ".join(filter(None, parts)))],
        tables=tables,
        notes=[one_line(note_line(note)) for note in notes],
        records=records,
    )


def _table(title: str, rows: Sequence[Sequence[Any]]) -> Table:
    """Return one of TABLES. Where the last value of a row has names, each name that has words is a column."""
    titles, left, last_right = TABLES[title]
    if left == 0:
        rows = [row for row in rows if any(row[-1].values())]
        every = dict.fromkeys(name for row in rows for name in row[-1])
        names = [name for name in every if any(row[-1].get(name) for row in rows)]
        titles = [*titles, *map(one_line, names)]
        rows = [[*row[:-1], *(row[-1].get(name) or NONE for name in names)] for row in rows]
    return plain_table(title, titles, rows, left=left or 1, last_right=last_right)


def _published(profile: Profile) -> Report:
    figures = [(result.key, given.figure, given.value) for result in profile.cells for given in result.published]
    rows = [[key, name, number(value)] for key, name, value in figures]
    heading = one_line(f"{profile.id} · published in {profile.source}, not measured here · {profile.schema}")
    table = plain_table("Published", ("", "", ""), rows, left=2, last_right=True)
    records: list[dict[str, object]] = [{"cell": key, "figure": name, "value": value} for key, name, value in figures]
    return Report(name="kit show", headline=[heading], tables=[table], records=records)


def _suite(profile: Profile) -> dict[str, str]:
    suite, plan = profile.suite, profile.suite.plan
    turns = f", of like variants in turns of {plan.turn_s:g} s" if plan.turn_s else ""
    least = "" if plan.warmup_least_s is None else f"{min(plan.warmup_least_s, plan.warmup_s):g} to "
    facts = {
        "name": f"{suite.name} · {suite.sha256[:8]}",
        "compares": ", ".join(suite.compare),
        "one process measures all": ", ".join(suite.process_axes) or "nothing: each cell has its own process",
        "rounds": f"{suite.rounds}" + (f", until ±{suite.precision_pct:g} %" if suite.precision_pct else ""),
        "plan": f"{plan.cycles} blocks of {plan.block_s:g} s{turns}, lead-in {plan.lead_in_s:g} s, "
        f"warm-up {least}{plan.warmup_s:g} s and {plan.warmup_steps} steps, energy {plan.energy_s:g} s",
        "data": (", ".join(f"{name}: {used}" for name, used in suite.data.items()) or "the programs' own")
        + f" · seed {suite.seed}",
    }
    for name, source in suite.programs.items():
        what = f"{source.function} of {source.path}" if source.command is None else shlex.join(source.command.words)
        facts[f"program {name}"] = f"{what} · {source.sha256[:8]}"
    for variant in suite.variants:
        env = " ".join(f"{name}={value}" for name, value in variant.env.items())
        injected = f" {variant.slowdown_pct:g} % slower on purpose" if variant.slowdown_pct else ""
        image = f"{variant.image} ({variant.image_digest})" if variant.image else ""
        facts[f"variant {variant.name}"] = f"{variant.python or image} {env}{injected}".strip() or "default settings"
    return facts


def _worker(result: CellResult) -> list[str]:
    """Return versions, threads, settings, kernels and the proof of what ran a cell's launches, each value once."""
    workers = []
    for launch in result.launches:
        framework = f"{launch.backend_version} on " if launch.backend_version else ""
        threads = ""
        if (compute := launch.threads) is not None:
            cpus = [",".join(map(str, part)) for part in [rank.cpus for rank in launch.ranks] or [compute.cpus]]
            used = "" if compute.used is None else f", {compute.used} used"
            used += "" if (bound := bound_threads(compute)) is None else f", {bound}"
            threads = f"{compute.reported or 'unknown'} threads ({compute.requested} requested{used}) on CPUs"
            threads += f" in {len(cpus)} ranks: {' | '.join(cpus)}" if launch.ranks else f" {cpus[0]}"
            threads += f" ({sentence(launch.who_reaches)})" if launch.who_reaches is not None else ""
        waits = {} if launch.empty_wait_ns is None else {"empty wait": by_name("empty_wait_ns", launch.empty_wait_ns)}
        settings = ", ".join(f"{name} {value}" for name, value in (launch.settings | waits).items())
        version = f"{framework}Python {launch.python}" if launch.python else ""
        # Which of several that are loaded a program computed with is not always plain.
        loaded = [f"{name} {number}" for name, number in launch.frameworks.items() if f"{name} " not in framework]
        version += f" (loaded too: {', '.join(loaded)})" if loaded and result.cell.backend == USER_PROGRAM else ""
        ran = {} if launch.ran is None else launch.ran.runs
        kernels = ", ".join(launch.kernels) or (sentence(launch.kernels_unnamed) if launch.kernels_unnamed else "")
        runs = ", ".join(f"{name} {count:,}" for name, count in ran.items())
        workers.append((version, threads, settings, kernels, runs and f"a step ran {runs}"))
    columns = zip(*workers, strict=True) if workers else [()] * 5
    return [" / ".join(dict.fromkeys(map(one_line, filter(None, column)))) or NONE for column in columns]


def _launch(row: LaunchRow) -> list[str]:
    launch = row.record
    device, values = ", ".join(launch.device_ids) or row.cell.device, [NONE] * 7
    if (failure := launch.failure) is not None:
        # An exception's last line there is the exception.
        tail = "" if "type" in failure.reason.values else failure.stderr_tail
        notes = [": ".join([f"failed in {failure.phase}: {sentence(failure.reason)}", *tail.strip().splitlines()[-1:]])]
    elif not row.has_counting:
        notes = ["no blocks"]
    else:
        sample, steps_ns = launch_sample(row), row.times_ns()
        times_ns = (value(sample, "latency_ns"), launch.p95_ns, launch.p99_ns)
        values = [
            duration(value(sample, "step_ns") or 0, 4),
            *(known(time_ns, duration) for time_ns in times_ns),
            f"{100 * statistics.stdev(steps_ns) / statistics.mean(steps_ns):.1f} %" if len(steps_ns) > 1 else NONE,
            known(value(sample, "samples_per_s"), number),
            known(value(sample, "peak_memory_b"), size),
        ]
        notes = [sentence(note) for note in launch_marks(row)]
    return [device, *values, ", ".join(notes)]


def _energy(reading: Energy) -> list[str]:
    """Return joules with their error, power, idle before and after, and by what; or why there are none."""
    head = [reading.kind, reading.sensor]
    if reading.joules_j is None or not reading.window_ns:
        return [*head, *[NONE] * 4, "unknown" if reading.reason is None else sentence(reading.reason)]
    by = " ".join(part.replace("_", " ") for part in (reading.tier, reading.method) if part)
    error = "" if reading.error_fraction is None else f" ±{100 * reading.error_fraction:.1f} %"
    why = "" if reading.idle_reason is None else f"; idle: {sentence(reading.idle_reason)}"
    return [
        *head,
        f"{energy(reading.joules_j)}{error} in {duration(reading.window_ns)}",
        f"{number(reading.joules_j / reading.window_ns * 1e9)} / {known(reading.power_max_w, number)}",
        f"{known(reading.idle_before_w, number)} / {known(reading.idle_after_w, number)}",
        known(reading.updates, str),
        f"{by}{why}",
    ]


def _fit(launch: LaunchRow, fit: Fit) -> list[str]:
    if fit.confusion is not None:
        score = f"accuracy {hundredths(scores_of(fit.confusion).accuracy)} %"
    elif fit.mean_squared_error is not None:
        score = f"mean squared error {number(fit.mean_squared_error)}"
    else:
        score = known(fit.reason, sentence)
    return [
        str(fit.epochs),
        f"{fit.updates} of {fit.all_updates}" if fit.is_part else str(fit.updates),
        duration(sum(launch.counting.duration_ns)),
        known(launch.pipeline_ratio, percent),
        known(fit.test_ns, duration),
        score,
    ]


def _classes(result: CellResult) -> list[list[str]]:
    """Return precision, recall and F1 of each class, over all repeats of a cell, and their plain means."""
    confusions = [launch.fit.confusion for launch in result.launches if launch.fit and launch.fit.confusion]
    if not confusions:
        return []
    # Repeats of one size weigh alike: their counts may be added.
    total = [[sum(counts) for counts in zip(*rows, strict=True)] for rows in zip(*confusions, strict=True)]
    scores = scores_of(total)
    classes = list(enumerate(zip(scores.precision, scores.recall, scores.f1, strict=True)))
    means = ("macro", (scores.macro_precision, scores.macro_recall, scores.macro_f1))
    return [[result.key, str(name), *map(hundredths, fractions)] for name, fractions in [*classes, means]]
