"""A profile for other tools: a function for each format of `kit export`, named in EXPORTS.

To add a format, write its function and its line in EXPORTS. It returns files by name, or a single one named "".
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kit.compare.rows import Comparison, GroupRows, Row
from kit.compare.runs import run_of
from kit.compare.table import LaunchRow
from kit.distribution import need
from kit.errors import KitError
from kit.files import inside, name_of, read_limited
from kit.profile.schema import Profile
from kit.report.records import columns_of
from kit.report.verdicts_in_words import answer

TraceEvent = dict[str, Any]

# What formats with one number a benchmark are given: what they call it, the metric, its ends and its unit.
FIGURES = (
    ("latency", "step_ns", ("step_low_ns", "step_high_ns"), "ns"),
    ("throughput", "samples_per_s", None, "samples/s"),
    ("energy", "energy_per_sample_j", None, "J/sample"),
    ("memory", "peak_memory_b", None, "B"),
)
HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # whole: asv finds no commit by a part of its hash
ASV_COLUMNS = ("result", "params", "version", "started_at", "duration")
ASV_FACTS = {
    "os": "os",
    "arch": "cpu.architecture",
    "cpu": "cpu.model",
    "num_cpu": "cpu.cores_logical",
    "ram": "memory_b",
}
# asv keeps the results of all commits in files of their own; benchmarks.json grows with the number of groups alone.
ASV_FILE_MAX_B = 64 << 20
# Of a benchmark, in Bencher's schema. What is longer ends with so many digits of its SHA-256.
BMF_NAME_MAX, HASH_SHOWN = 1024, 8
SMALLER_IS_BETTER = ("latency", "energy", "memory")
# The thread of the rounds in a trace. Perfetto takes thread 0 for the thread whose number is that of the process.
ROUNDS = 1


class Exported(NamedTuple):
    """What is exported."""

    label: str
    path: Path
    profile: Profile
    comparison: Comparison  # of its cells
    commit: str | None = None  # that was measured
    level: str = "cells"  # of rows, where the format has rows
    into: Path | None = None  # folder that has files of earlier exports


class Benchmark(NamedTuple):
    """A row that has a number, for a tool that keeps a history by name."""

    name: str  # no other row has it, and no row that is added changes it
    group: GroupRows
    row: Row


def benchmarks_of(exported: Exported) -> Iterator[Benchmark]:
    """Yield each row that has a number. It is called by its cell's whole key, and by its group where two have the cell.

    Raises:
        KitError: no row has one.
    """
    names = set[str]()
    for group in exported.comparison.groups:
        for row in group.rows:
            if row.has_number:
                name = row.cell.key if row.cell.key not in names else f"{row.cell.key} in {group.key}"
                names.add(name)
                yield Benchmark(name, group, row)
    if not names:
        raise KitError(f"{exported.path}: no cell has a step time to export; measure it again with `kit run`")


def json_bytes(document: Any, *, has_lines: bool = True) -> bytes:  # noqa: ANN401 - any JSON value
    """Return JSON in which nothing controls a terminal: names with such a character are written in ASCII."""
    encoded = msgspec.json.encode(document)
    if not encoded.decode().isprintable():
        encoded = json.dumps(msgspec.json.decode(encoded)).replace("\x7f", "\\u007f").encode()
    return msgspec.json.format(encoded) + b"\n" if has_lines else encoded


def bmf(exported: Exported) -> dict[str, bytes]:
    """Return Bencher Metric Format: by benchmark and figure a value and, where it is known, its 95 % interval.

    Times are in nanoseconds. https://bencher.dev/docs/reference/bmf/
    """
    benchmarks = {}
    for name, _, row in benchmarks_of(exported):
        figures = {}
        for measure, metric, ends, _ in FIGURES:
            value, low, high = (row.value(known) if known else None for known in (metric, *(ends or (None, None))))
            if value is not None:
                interval = {"lower_value": low, "upper_value": high}
                figures[measure] = {"value": value} | {end: at for end, at in interval.items() if at is not None}
        sha256 = hashlib.sha256(name.encode()).hexdigest()[:HASH_SHOWN]
        benchmarks[name if len(name) <= BMF_NAME_MAX else f"{name[: BMF_NAME_MAX - HASH_SHOWN - 1]}-{sha256}"] = figures
    return {"": json_bytes(benchmarks)}


def github_benchmark(exported: Exported) -> dict[str, bytes]:
    """Return github-action-benchmark's `customSmallerIsBetter`, with half of the 95 % interval as the range.

    Its reader takes null for 0 and a missing unit for "undefined": what has no number is left out here.
    https://github.com/benchmark-action/github-action-benchmark
    """
    benchmarks = []
    for name, _, row in benchmarks_of(exported):
        for measure, metric, ends, unit in FIGURES:
            if measure not in SMALLER_IS_BETTER or (value := row.value(metric)) is None:
                continue
            title = name if measure == "latency" else f"{name} {measure}"
            low, high = (row.value(end) for end in ends) if ends else (None, None)
            # Its charts show plain numbers.
            shown, divisor = ("ms", 1e6) if unit == "ns" else (unit, 1)
            benchmark = {"name": title, "unit": shown, "value": value / divisor}
            if measure == "latency":  # the verdict is on the step
                benchmark["extra"] = answer(row)
            if low is not None and high is not None:
                benchmark["range"] = f"± {(high - low) / 2 / divisor:.4g}"
            benchmarks.append(benchmark)
    return {"": json_bytes(benchmarks)}


def asv(exported: Exported) -> dict[str, bytes]:
    """Return airspeed velocity's results, which `asv publish` shows without benchmark code.

        results/benchmarks.json            what was measured: a benchmark a group, its rows as values of a parameter
        results/MACHINE/machine.json
        results/MACHINE/COMMIT-ENV.json    the times

    https://asv.readthedocs.io/en/latest/dev.html, versions 2, 1 and 2. Earlier exports into the same folder are
    kept, but for the same groups at the same commit.

    Raises:
        KitError: the commit that was measured is not known.
    """
    commit = (exported.commit or "").lower()
    if not HASH.fullmatch(commit):
        wrong = (
            f"{exported.commit!r} is no commit" if commit else "asv shows results by commit, and this profile has none"
        )
        raise KitError(
            f"{exported.path}: {wrong}; give --commit HASH of what was measured, whole as `git rev-parse` prints it"
        )
    profile, identity = exported.profile, exported.profile.identity
    machine, environment = name_of(identity.host[:8] or identity.hardware_sha256[:8]), "steadykit"
    date_ms = round(1000 * datetime.fromisoformat(profile.created).timestamp())
    result_name = f"{machine}/{commit[:8]}-{environment}.json"
    benchmarks = _written_before(exported, "benchmarks.json") or {"version": 2}
    results = dict(_written_before(exported, result_name).get("results", {}))
    for (key, title), members in groupby(benchmarks_of(exported), lambda known: (known.group.key, known.group.title)):
        listed = {member.row.cell.key: member.row for member in members}
        # asv makes names of folders from it.
        name = re.sub(r"[^A-Za-z0-9_]+", "_", key.replace("*", "any")).strip("_")
        known = benchmarks.get(name, {}).get("params", [[]])[0]
        values = list(dict.fromkeys([*known, *map(repr, listed)]))
        version = hashlib.sha256(name.encode()).hexdigest()
        benchmarks[name] = {
            "code": key, "name": name, "param_names": ["cell"], "params": [values], "pretty_name": " ".join(title),
            "timeout": 60.0, "type": "time", "unit": "seconds", "version": version,
        }  # fmt: skip
        # What an export has no row of is null; asv shows nothing there.
        steps = [listed[row].value(FIGURES[0][1]) if (row := value[1:-1]) in listed else None for value in values]
        results[name] = [[None if ns is None else ns / 1e9 for ns in steps], [values], version, date_ms, None]
    about: dict[str, object] = {"machine": machine, "version": 1}
    about |= {key: str(identity.facts.get(fact) or "") for key, fact in ASV_FACTS.items()}
    document = {
        "commit_hash": commit, "env_name": environment, "date": date_ms, "params": about, "python": "",
        "requirements": {}, "env_vars": {}, "result_columns": ASV_COLUMNS, "results": results, "durations": {},
        "version": 2,
    }  # fmt: skip
    files = {"benchmarks.json": benchmarks, f"{machine}/machine.json": about, result_name: document}
    return {name: json_bytes(content) for name, content in files.items()}


def _written_before(exported: Exported, name: str) -> dict[str, Any]:
    """Return what an earlier export wrote into a file; nothing if there is none."""
    file = None if exported.into is None else inside(exported.into, name)
    if file is None or not file.exists():
        return {}
    try:
        return msgspec.json.decode(read_limited(file, ASV_FILE_MAX_B), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise KitError(f"{file} is no file of asv's: {error}; choose another --out") from None


def parquet(exported: Exported) -> dict[str, bytes]:
    """Return a row for each cell, launch, block or step, as `to_dataframe` has them.

    Raises:
        KitError: pyarrow is not installed.
    """
    need("pyarrow", "notebook")
    import pyarrow.parquet

    columns = columns_of([(exported.label, exported.path, exported.profile)], exported.level)  # type: ignore[arg-type]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(columns.to_arrow(), stream)
    return {"": stream.getvalue()}


def trace(exported: Exported) -> dict[str, bytes]:
    """Return a trace for Perfetto's page (ui.perfetto.dev) and Chrome's: the Trace Event Format, in JSON.

        process: the run          rounds
        a thread for each worker  its phases and blocks; between two blocks the worker was stopped
        counters                  power, clock, temperature and so on as the sampler saw them, and other programs

    Stamps are on a clock that restarts with the machine, so that each round is placed by its date.

    Raises:
        KitError: nothing ran.
    """
    table = run_of(exported.label, exported.profile).table
    launches = [launch for launch in table if launch.record.phases or launch.blocks.begin_ns]
    if not launches:
        raise KitError(f"{exported.path}: no launch recorded when it ran; measure it again with `kit run`")
    numbers = sorted({launch.round for launch in launches})
    processes = dict.fromkeys(launch.record.process for launch in launches)
    threads = {name: index for index, name in enumerate(processes, ROUNDS + 1)}
    dates_ns = {number: min(_date_ns(launch) for launch in launches if launch.round == number) for number in numbers}
    events = [_trace_name("process_name", ROUNDS, exported.label), _trace_name("thread_name", ROUNDS, "rounds")]
    events += [_trace_name("thread_name", thread, process) for process, thread in threads.items()]
    for number in numbers:
        of_round = [launch for launch in launches if launch.round == number]
        slices = {process: [*_trace_slices(of_round, process)] for process in processes}
        all_slices = [piece for of_process in slices.values() for piece in of_process]
        begin_ns, end_ns = min(piece.begin_ns for piece in all_slices), max(piece.end_ns for piece in all_slices)
        zero_ns = begin_ns - (dates_ns[number] - dates_ns[numbers[0]])
        events.append(_trace_slice(TraceSlice(begin_ns, end_ns, f"round {number + 1}"), ROUNDS, zero_ns))
        for process, of_process in slices.items():
            events += [_trace_slice(piece, threads[process], zero_ns) for piece in _nested(of_process)]
        for launch in of_round:
            events += _trace_counters(launch, zero_ns)
    return {"": json_bytes({"traceEvents": events, "displayTimeUnit": "ms"}, has_lines=False)}


class TraceSlice(NamedTuple):
    """A part of a worker's time. Stamps are those of its profile."""

    begin_ns: int
    end_ns: int
    name: str
    about: TraceEvent | None = None


def _trace_slices(launches: Sequence[LaunchRow], process: str) -> Iterator[TraceSlice]:
    """Yield the phases and blocks of a worker in a round, and when it was stopped."""
    worked, blocks = list[TraceSlice](), list[TraceSlice]()
    for launch in (launch for launch in launches if launch.record.process == process):
        for phase in launch.record.phases:
            name = f"{phase.name} {launch.cell.key}"
            worked.append(TraceSlice(phase.begin_ns, phase.begin_ns + phase.duration_ns, name))
        rows = [*launch.rows()]
        for index, window in zip(launch.blocks.block_of_windows(), launch.blocks.windows(), strict=True):
            block = rows[index]
            about = {"cycle": block.cycle + 1, "steps": block.steps, "step_ns": block.step_ns}
            blocks.append(TraceSlice(*window, "block", about))
    yield from worked
    yield from blocks
    # A long block for joules has no slice of its own, but the worker was not stopped in it.
    long_blocks = [
        TraceSlice(energy.begin_ns, energy.begin_ns + energy.block_ns, energy.kind)
        for launch in launches
        if launch.record.process == process
        for energy in launch.record.energy
        if energy.begin_ns is not None
    ]
    for before, after in pairwise(sorted([*worked, *blocks, *long_blocks], key=itemgetter(0, 1))):
        if before.name == after.name == "block" and before.end_ns < after.begin_ns:
            yield TraceSlice(before.end_ns, after.begin_ns, "stopped")


def _nested(slices: Iterable[TraceSlice]) -> list[TraceSlice]:
    """Return slices in order, none of which overlaps another in part: Perfetto drops such a slice.

    Where several ranks are one worker, a span begins when rank 0 began, and lasts as long as the slowest rank took. It
    may end after the next one's beginning, and is cut there.
    """
    kept, open_at = list[TraceSlice](), list[int]()
    for piece in sorted(slices, key=lambda piece: (piece.begin_ns, -piece.end_ns)):
        while open_at and kept[open_at[-1]].end_ns < piece.end_ns:
            index = open_at.pop()
            kept[index] = kept[index]._replace(end_ns=min(kept[index].end_ns, piece.begin_ns))
        open_at.append(len(kept))
        kept.append(piece)
    return kept


def _trace_counters(launch: LaunchRow, zero_ns: int) -> Iterator[TraceEvent]:
    record = launch.record
    for block in launch.rows():
        if block.others is not None:
            yield _trace_counter("contention", block.begin_ns - zero_ns, "%", 100 * block.others)
    steady_ns = launch.blocks.begin_ns[0] if launch.blocks.begin_ns else record.phases[-1].begin_ns
    for sensor, summary in record.sensors.items():
        yield _trace_counter(sensor, steady_ns - zero_ns, summary.unit, summary.mean)
    for energy in record.energy:
        if energy.joules_j is not None and energy.window_ns and energy.begin_ns is not None:
            name = " ".join(filter(None, ("power", energy.sensor, energy.device_id, energy.tier)))
            yield _trace_counter(name, energy.begin_ns - zero_ns, "W", 1e9 * energy.joules_j / energy.window_ns)


def _date_ns(launch: LaunchRow) -> int:
    return round(1e9 * datetime.fromisoformat(launch.record.started).timestamp())


def _trace_slice(piece: TraceSlice, thread: int, zero_ns: int) -> TraceEvent:
    times = {"ts": (piece.begin_ns - zero_ns) / 1e3, "dur": (piece.end_ns - piece.begin_ns) / 1e3}
    return {"ph": "X", "name": piece.name, "pid": 1, "tid": thread, **times, "args": piece.about or {}}


def _trace_counter(name: str, at_ns: float, unit: str, value: float) -> TraceEvent:
    return {"ph": "C", "name": name, "pid": 1, "ts": at_ns / 1e3, "args": {unit: value}}


def _trace_name(kind: str, thread: int, name: str) -> TraceEvent:
    return {"ph": "M", "name": kind, "pid": 1, "tid": thread, "args": {"name": name}}


EXPORTS: dict[str, Callable[[Exported], dict[str, bytes]]] = {
    "asv": asv,
    "bmf": bmf,
    "github-benchmark": github_benchmark,
    "parquet": parquet,
    "trace": trace,
}
