"""A comparison for programs: JSON, a record of CSV for each row, and a test case of a CI server for each row.

slower by more than allowed       failed
failed cell, nothing comparable   error
unresolved, not compared          skipped, with what is known
all others, baselines too         passed
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from kit.compare.comparison import Comparison, GroupRows, Row
from kit.compare.fail_if_slower import limited_rows
from kit.compare.metrics import METRICS, details, short_name
from kit.profile.cell import AXES
from kit.report.columns import WORDS
from kit.report.quantity import duration
from kit.report.sentences import sentence
from kit.report.table import Case, Column, field, record_of
from kit.report.verdict_words import answer, says_unresolved
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
    return _part(row, "", "rare", "energy", "fit", "reach") | _details(row)


def _part(row: Row, *parts: str) -> dict[str, Any]:
    """Return the metrics of some parts: those of a fit, of energy or of reach where the row has any of the part."""
    kept = dict[str, Any]()
    for part in parts:
        known = {name: row.value(name) for name, metric in METRICS.items() if metric.part == part}
        if part == "rare":
            known = {name: value for name, value in known.items() if value is not None}
        kept |= known if not part or any(value is not None for value in known.values()) else {}
    return kept


def _details(row: Row) -> dict[str, Any]:
    return details(row.samples[0]) if len(row.samples) == 1 else {}


def _struct(prefix: str, read: Callable[[Row], Any], names: Iterable[str] = (), *, always: bool = False) -> Column:
    """Return the fields of a part of a row, of all its attributes or of `names`; `always`: without the part, too."""

    def fields(row: Row) -> dict[str, object]:
        part = read(row)
        listed = (names or part.__struct_fields__) if part is not None or always else ()
        return {f"{prefix}{name}": _known(getattr(part, name, None)) for name in listed}

    return field("", fields)


def _known(value: object) -> object:
    """Return a value as programs take it: what one round alone does not say is null, and no NaN that JSON lacks."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _joined(words: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(words))


FIELDS = (
    field("group"),
    _struct("", lambda row: row, ("name", "member", "side")),
    field("profiles", lambda row: " ".join(row.profiles)),
    field("", lambda row: {axis: row.cell.value(axis) for axis in [*row.cell.parameters, *AXES]}),
    field("", lambda row: _part(row, "")),
    field("baseline"),
    field("is_baseline", lambda row: row.is_baseline),
    _struct("", lambda row: row.versus, VERSUS, always=True),
    _struct("energy_", lambda row: row.energy_versus, VERSUS, always=True),
    field("", lambda row: _part(row, "energy")),
    field("two_modes", lambda row: _joined(f"{ratio:.6g}" for ratio in (row.versus and row.versus.modes) or ())),
    field("not_compared", lambda row: _joined(mismatch.kind for mismatch in row.blocked)),
    field("marks", lambda row: _joined(mark.code for mark in row.marks)),
    field("failure", lambda row: None if row.failure is None else sentence(row.failure)),
    field("", lambda row: _part(row, "rare", "fit", "reach")),
    _struct("score_difference_", lambda row: row.score_difference, SCORE),
    _struct("break_even_", lambda row: row.break_even),
    _struct("efficiency_", lambda row: row.scaling and row.scaling.efficiency),
    _struct("all_reduce_", lambda row: row.scaling and row.scaling.all_reduce),
    field("", _details),
    field("rule"),
    field("by"),
)


def records(comparison: Comparison) -> list[dict[str, object]]:
    """Return a record a row."""
    whole = {"rule": comparison.rule, "by": short_name(comparison.by)}
    return [
        record_of(FIELDS, row, whole | {"group": group.key, "baseline": group.baseline})
        for group in comparison.groups
        for row in group.rows
    ]


def cases(comparison: Comparison, allowed_pct: float | None) -> list[Case]:
    """Return a case a row; without a limit a verdict "slower" fails."""
    limited = () if allowed_pct is None else limited_rows(comparison, allowed_pct)
    shown = {id(row): slower_by for _, row, slower_by in limited}
    return [_case(comparison, group, row, shown.get(id(row))) for group in comparison.groups for row in group.rows]


def _case(comparison: Comparison, group: GroupRows, row: Row, limited: SlowerBy | None) -> Case:
    """Return the case of a row; `limited`: its verdict against the limit, if there is a limit."""
    metric, words = METRICS[comparison.by], answer(row)
    name = "step_ns" if row.cell.task == "fit" and metric.is_time else metric.name
    known = row.value(name)
    case = Case(f"{row.name} {row.cell.key}", " · ".join(group.title), words=words)
    if known is not None:
        output = duration(known, 4) if metric.is_time else f"{WORDS[metric.unit](known)} {metric.title}".rstrip()
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
        return (
            case._replace(outcome="error", kind="same code") if row.has_same_code else case._replace(outcome="skipped")
        )
    shown = limited or ("slower" if row.versus.verdict == metric.words[1] else row.versus.verdict)
    if shown == "slower":
        return case._replace(outcome="failed", kind=metric.words[1])
    if shown == "unresolved":
        return case._replace(outcome="skipped", words=words if says_unresolved(row.versus) else f"{shown}: {words}")
    return case
