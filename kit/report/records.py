"""Profiles and comparisons for programs: plain numbers, with their units in the names.

document   a comparison as JSON
records    a record of CSV for each row of a comparison, or for each launch of a profile
cases      a test case of a CI server for each row of a comparison:
             slower by more than allowed       failed
             failed cell, nothing comparable   error
             unresolved, not compared          skipped, with what is known
             all others, baselines too         passed
columns    what profiles hold, the values of each name in a list, as data frames take them:
             level      a row is                       its numbers are
             cells      one cell of one profile        those of `kit compare --format csv`
             launches   one process that measured it   those of `kit show --format csv`
             blocks     one block of a launch          when it ran, its steps and times, and what its counters grew by
             steps      one raw step                   its time

Rounds and cycles are counted from 1. What was not measured is None. Times are in nanoseconds, as the names say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from kit.compare.clean import count_blocks
from kit.compare.compare import row_of
from kit.compare.fail_if_slower import limited_rows
from kit.compare.metrics import METRICS, counters_per_step, phases_ns, short_name, value
from kit.compare.notes import read_run
from kit.compare.rows import Comparison, GroupRows, Row
from kit.compare.runs import launch_marks, launch_sample, run_of
from kit.compare.table import LaunchRow
from kit.distribution import install_command
from kit.errors import KitError
from kit.profile.cell import AXES, Cell
from kit.profile.schema import Profile
from kit.profile.store import labeled_steps, launch_id, read_steps
from kit.report.reasons_in_words import sentence
from kit.report.report_table import Case, Column, record_field, record_of
from kit.report.values_in_words import BY_UNIT, duration
from kit.report.verdicts_in_words import answer, says_unresolved
from kit.stats.estimate import Estimate, SlowerBy

# fmt: off
ROW = (
    "name", "member", "side", "cell", "profiles", "numbers", "is_baseline", "versus", "energy_versus",
    "score_difference", "scaling", "break_even", "blocked", "marks", "failure",
)
# fmt: on
GROUP = ("key", "title", "baseline", "rows", "leaders", "recommendation", "findings", "best", "missing")
WHOLE = ("kind", "groups", "headlines", "mismatches", "notes", "by", "rule")
VERSUS = [name for name in Estimate.__struct_fields__ if name not in ("modes", "difference")]
SCORE = ("verdict", "difference", "low", "high", "level", "p_adjusted", "comparisons", "count")
# The ratios of a row that has two; the verdict is then this word, as tables say it.
MODES, BIMODAL = ("fast", "slow"), "bimodal"
# What a row of a data frame is, and the lists of blocks that it shows as they are.
Level = Literal["cells", "launches", "blocks", "steps"]
# Of columns that are no metric's. A block's others are whole numbers: nanoseconds, steps, and what counters grew by.
OTHER_TYPES: dict[str, dict[str, type]] = {
    "cells": {"profile": str, "cell": str, "failure": str},
    "launches": {"round": int}
    | dict.fromkeys(("profile", "cell", "group", "device", "marks", "failure", "device_ids"), str),
    "blocks": dict.fromkeys(("profile", "cell", "group", "disturbed_by"), str)
    | dict.fromkeys(("clean", "counts", "slow"), bool)
    | dict.fromkeys(("step_ns", "others"), float),
    "steps": dict.fromkeys(("profile", "cell", "group", "kind"), str)
    | dict.fromkeys(("round", "cycle", "step_ns"), int),
}
OF_A_BLOCK = ("step_ns", "others", "disturbed_by", "clean", "counts", "slow")


def document(comparison: Comparison) -> dict[str, object]:
    """Return the comparison for JSON: groups with their rows, whose numbers have the names of CSV's columns."""
    groups = [
        {name: getattr(group, name) for name in GROUP}
        | {"rows": [{name: getattr(row, name, None) for name in ROW} | {"numbers": numbers(row)} for row in group.rows]}
        for group in comparison.groups
    ]
    return {name: getattr(comparison, name) for name in WHOLE} | {"groups": groups, "by": short_name(comparison.by)}


def numbers(row: Row) -> dict[str, Any]:
    """Return the metrics of a row, and what was counted and sampled."""
    return _part(row, "", "rare", "sustained", "energy", "fit", "reach") | row.details


def _part(row: Row, *parts: str) -> dict[str, Any]:
    """Return the metrics of some parts: those of a named part where the row has any of the part."""
    kept = dict[str, Any]()
    for part in parts:
        known = {name: row.value(name) for name, metric in METRICS.items() if metric.part == part}
        if part == "rare":
            known = {name: value for name, value in known.items() if value is not None}
        kept |= known if not part or any(value is not None for value in known.values()) else {}
    return kept


def coordinates(cell: Cell) -> dict[str, Any]:
    """Return the parameters and the axes of a cell."""
    return {axis: cell.value(axis) for axis in [*cell.parameters, *AXES]}


def _struct(prefix: str, read: Callable[[Row], Any], names: Iterable[str] = (), *, always: bool = False) -> Column:
    """Return the fields of a part of a row, of all its attributes or of `names`; `always`: without the part, too."""

    def fields(row: Row) -> dict[str, object]:
        part = read(row)
        listed = (names or part.__struct_fields__) if part is not None or always else ()
        return {f"{prefix}{name}": _known(getattr(part, name, None)) for name in listed}

    return record_field("", fields)


def _known(value: object) -> object:
    """Return a value as programs take it: what one round alone does not say is null, and no NaN that JSON lacks."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _modes(row: Row) -> tuple[float | None, float | None]:
    """Return the ratios in the fast and in the slow mode."""
    return (row.versus.modes if row.versus is not None else None) or (None, None)


def _joined(words: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(words))


FIELDS = (
    record_field("group"),
    _struct("", lambda row: row, ("name", "member", "side")),
    record_field("profiles", lambda row: " ".join(row.profiles)),
    record_field("", lambda row: coordinates(row.cell)),
    record_field("", lambda row: _part(row, "")),
    record_field("baseline"),
    record_field("is_baseline", lambda row: row.is_baseline),
    _struct("", lambda row: row.versus, VERSUS, always=True),
    record_field("", lambda row: {"verdict": BIMODAL} if row.versus is not None and row.versus.is_bimodal else {}),
    _struct("energy_", lambda row: row.energy_versus, VERSUS, always=True),
    record_field("", lambda row: _part(row, "energy")),
    record_field("", lambda row: {f"{mode}_mode_ratio": ratio for mode, ratio in zip(MODES, _modes(row), strict=True)}),
    record_field("not_compared", lambda row: _joined(mismatch.kind for mismatch in row.blocked)),
    record_field("marks", lambda row: _joined(mark.code for mark in row.marks)),
    record_field("failure", lambda row: None if row.failure is None else sentence(row.failure)),
    record_field("", lambda row: _part(row, "rare", "sustained", "fit", "reach")),
    _struct("score_difference_", lambda row: row.score_difference, SCORE),
    _struct("break_even_", lambda row: row.break_even),
    _struct("efficiency_", lambda row: row.scaling and row.scaling.efficiency),
    _struct("all_reduce_", lambda row: row.scaling and row.scaling.all_reduce),
    record_field("", lambda row: row.details),
    record_field("rule"),
    record_field("by"),
)


def records(comparison: Comparison) -> list[dict[str, object]]:
    """Return a record a row."""
    whole = {"rule": comparison.rule, "by": short_name(comparison.by)}
    return [
        record_of(FIELDS, row, whole | {"group": group.key, "baseline": group.baseline})
        for group in comparison.groups
        for row in group.rows
    ]


def launch_record(row: LaunchRow) -> dict[str, object]:
    """Return the numbers of a launch; rounds are counted from 1."""
    sample, launch = launch_sample(row), row.record
    record: dict[str, object] = {"cell": row.cell.key, "group": launch.group, "round": launch.round + 1}
    record |= {name: value(sample, name) for name in ("step_ns", "latency_ns", "samples_per_s", "peak_memory_b")}
    device = " ".join(launch.device_ids) or row.cell.device
    record |= {"device": device, "p95_ns": launch.p95_ns, "p99_ns": launch.p99_ns}
    record["marks"] = " ".join(note.code for note in launch_marks(row))
    record["failure"] = None if launch.failure is None else sentence(launch.failure.reason)
    record |= {f"phase {name}_ns": median_ns for name, median_ns in phases_ns(sample.good).items()}
    return record | {f"{name} per step": grown for name, grown in counters_per_step(sample.good).items()}


def cases(comparison: Comparison, allowed_pct: float | None) -> list[Case]:
    """Return a case a row; without a limit a verdict "slower" fails."""
    limited = () if allowed_pct is None else limited_rows(comparison, allowed_pct)
    shown = {id(row): slower_by for _, row, slower_by in limited}
    return [_case(comparison, group, row, shown.get(id(row))) for group in comparison.groups for row in group.rows]


def _case(comparison: Comparison, group: GroupRows, row: Row, limited: SlowerBy | None) -> Case:
    """Return the case of a row; `limited`: its verdict against the limit, if there is a limit."""
    metric, words = METRICS[comparison.by], answer(row)
    name = metric.name if row.cell.in_blocks or not metric.is_time else "step_ns"
    known = row.value(name)
    case = Case(f"{row.name} {row.cell.key}", " · ".join(group.title), words=words)
    if known is not None:
        output = duration(known, 4) if metric.is_time else f"{BY_UNIT[metric.unit](known)} {metric.title}".rstrip()
        output += {"step_ns": " a step", "latency_ns": " latency"}.get(name, "")
        output += "" if row.is_baseline else f", {words}"
        case = case._replace(output=output, time_s=known / 1e9 if name.endswith("_ns") else None)
    if not row.has_number:
        return case._replace(outcome="error", kind="failed")
    if row.is_baseline:
        others = [other for other in group.rows if other is not row and other.member == row.member]
        is_alone = comparison.kind != "cells" and not others
        return case._replace(outcome="skipped", words="nothing is compared with it") if is_alone else case
    if row.versus is None:  # CI servers show what is skipped in green
        kind = row.kept_apart.replace("_", " ")
        return case._replace(outcome="error", kind=kind) if kind else case._replace(outcome="skipped")
    shown = limited or ("slower" if row.versus.verdict == metric.words[1] else row.versus.verdict)
    if shown == "slower":
        return case._replace(outcome="failed", kind=metric.words[1])
    if shown == "unresolved":
        return case._replace(outcome="skipped", words=words if says_unresolved(row.versus) else f"{shown}: {words}")
    return case


class Columns(dict[str, list[Any]]):
    """Lists of one length by name, which pandas.DataFrame, polars.DataFrame and, with pyarrow, pyarrow.table take.

    Attributes:
        types: of each column's values that are known, the same whatever a profile has.
    """

    types: dict[str, type]

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]], type_of: Callable[[str], type] | None = None) -> Columns:
        """Return the columns of rows: every name that any row has, None where a row lacks it.

        `type_of` returns the type of a column; null: its values show it.
        """
        listed = list(rows)
        columns, columns.types = cls(), {}
        for name in dict.fromkeys(name for row in listed for name in row):
            values = [row.get(name) for row in listed]
            kinds = {type(value) for value in values if value is not None}
            kind = type_of(name) if type_of is not None else float if float in kinds else next(iter(kinds), str)
            # polars takes no column of whole numbers and others.
            columns[name] = [None if value is None else float(value) for value in values] if kind is float else values
            columns.types[name] = kind
        return columns

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of pyarrow's table
        # Readers ask for this name and take the lists where it is missing.
        if name == "__arrow_c_stream__" and find_spec("pyarrow") is not None:
            return self.to_arrow().__arrow_c_stream__
        raise AttributeError(name)

    def to_arrow(self) -> Any:  # noqa: ANN401 - of pyarrow
        """Return a pyarrow.Table, in which a column without a value has its type, too; pyarrow is installed."""
        import pyarrow

        arrow = {float: pyarrow.float64(), int: pyarrow.int64(), bool: pyarrow.bool_(), str: pyarrow.string()}
        arrays = {name: pyarrow.array(values, arrow[self.types[name]]) for name, values in self.items()}
        return pyarrow.table(arrays)

    def to_dataframe(self) -> Any:  # noqa: ANN401 - of whichever library is installed
        """Return a pandas.DataFrame, or a polars.DataFrame where pandas is not installed.

        Raises:
            KitError: neither is installed.
        """
        for module in ("pandas", "polars"):
            if find_spec(module) is not None:
                from importlib import import_module

                return import_module(module).DataFrame(dict(self))
        raise KitError(f"pandas and polars are not installed; {install_command('notebook')}, or take to_columns()")


def columns_of(files: Iterable[tuple[str, Path, Profile]], level: Level) -> Columns:
    """Return the columns of profiles, each with its label and file.

    Raises:
        KitError: there is no such level, or raw steps are missing beside a profile.
    """
    if level == "steps":
        return _steps(files)
    if level not in _ROWS:
        raise KitError(f"{level!r} is not a level; give {', '.join([*_ROWS, 'steps'])}")
    listed = list(files)
    known = dict.fromkeys(AXES, str) | {"batch": int, "devices": int, "threads": int} | OTHER_TYPES[level]
    known |= {name: int for *_, profile in listed for result in profile.cells for name in result.cell.parameters}
    usual = int if level == "blocks" else float
    rows = ((label, row) for label, _, profile in listed for row in _ROWS[level](label, profile))
    return Columns.of_rows(
        ({"profile": label} | row for label, row in rows),
        lambda name: known.get(name) or (METRICS[name].holds if name in METRICS and level != "blocks" else usual),
    )


def _cells(label: str, profile: Profile) -> Iterator[dict[str, Any]]:
    for sample in read_run(label, profile).samples.values():
        row = row_of(sample.name, [sample], "step_ns")
        failure = None if row.failure is None else row.failure.code
        yield {"cell": sample.cell_key, **coordinates(sample.cell), **numbers(row), "failure": failure}


def _launches(_label: str, profile: Profile) -> Iterator[dict[str, Any]]:
    table, _ = count_blocks(profile.cells, profile.suite.plan.cycles, all_cycles=True)
    for launch in table:
        ids = " ".join(launch.record.device_ids) or None
        yield launch_record(launch) | coordinates(launch.cell) | {"device_ids": ids}


def _blocks(label: str, profile: Profile) -> Iterator[dict[str, Any]]:
    for launch in run_of(label, profile).complete_table():
        head = {"cell": launch.cell.key, **coordinates(launch.cell), "group": launch.group, "round": launch.round + 1}
        for block in launch.rows():
            known = {name: getattr(block, name) for name in OF_A_BLOCK}
            yield head | {"cycle": block.cycle + 1} | known | block.recorded


_ROWS: dict[str, Callable[[str, Profile], Iterator[dict[str, Any]]]] = {
    "cells": _cells,
    "launches": _launches,
    "blocks": _blocks,
}


def _steps(files: Iterable[tuple[str, Path, Profile]]) -> Columns:
    """Return raw steps, of which a profile has millions: whole lists are joined, and no row is made."""
    columns = Columns({name: [] for name in ("profile", "cell", "group", "round", "cycle", "kind", "step_ns")})
    columns.types = OTHER_TYPES["steps"]
    for label, path, profile in files:
        steps = read_steps(path, profile)
        for result in profile.cells:
            for launch in result.launches:
                raw = steps.get(launch_id(launch))
                for cycle, kind, part in () if raw is None else labeled_steps(launch, raw):
                    number = None if cycle is None else cycle + 1
                    alike = (label, result.key, launch.group, launch.round + 1, number, kind)
                    for name, repeated in zip(columns, alike, strict=False):
                        columns[name].extend([repeated] * part.size)
                    columns["step_ns"].extend(part.tolist())
    return columns
