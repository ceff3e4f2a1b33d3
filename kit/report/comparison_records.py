"""A comparison for programs: JSON, a record of CSV for each row, and a test case of a CI server for each row.

slower by more than allowed       failed
failed cell, nothing comparable   error
unresolved, not compared          skipped, with what is known
all others, baselines too         passed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kit.compare.conclusions import limited_rows
from kit.compare.metrics import METRICS, details, short_name
from kit.compare.rows import Comparison, GroupRows, Row
from kit.profile.cell import AXES
from kit.report.answer import answer
from kit.report.quantity import duration
from kit.report.sentences import sentence
from kit.report.table import Case
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
        | {
            "rows": [
                {name: numbers(row) if name == "numbers" else getattr(row, name) for name in ROW} for row in group.rows
            ]
        }
        for group in comparison.groups
    ]
    by = short_name(comparison.by)
    return {name: getattr(comparison, name) for name in WHOLE} | {"groups": groups, "by": by}


def numbers(row: Row) -> dict[str, Any]:
    """Return the metrics of a row; those of a part, as a fit, where it has that part."""
    known = {name: row.value(name) for name in METRICS}
    parts = {metric.part for name, metric in METRICS.items() if metric.part and known[name] is not None}
    kept = {
        name: of
        for name, of in known.items()
        if of is not None or not (part := METRICS[name].part) or (part in parts and part != "rare")
    }
    return kept | (details(row.samples[0]) if len(row.samples) == 1 else {})


def records(comparison: Comparison) -> list[dict[str, object]]:
    """Return a record a row."""
    return [
        _record(group, row) | {"rule": comparison.rule, "by": short_name(comparison.by)}
        for group in comparison.groups
        for row in group.rows
    ]


def cases(comparison: Comparison, allowed_pct: float | None) -> list[Case]:
    """Return a case a row; without a limit a verdict "slower" fails."""
    limited = () if allowed_pct is None else limited_rows(comparison, allowed_pct)
    shown = {id(row): slower_by for _, row, slower_by in limited}
    return [_case(comparison, group, row, shown.get(id(row))) for group in comparison.groups for row in group.rows]


def _record(group: GroupRows, row: Row) -> dict[str, object]:
    known = numbers(row)

    def metrics(*parts: str) -> dict[str, object]:
        return {name: value for name, value in known.items() if name in METRICS and METRICS[name].part in parts}

    record: dict[str, object] = {"group": group.key, "name": row.name, "member": row.member, "side": row.side}
    record["profiles"] = " ".join(row.profiles)
    record |= {axis: row.cell.value(axis) for axis in [*row.cell.parameters, *AXES]}
    record |= metrics("") | {"baseline": group.baseline, "is_baseline": row.is_baseline}
    record |= {name: getattr(row.versus, name, None) for name in VERSUS}
    record |= {f"energy_{name}": getattr(row.energy_versus, name, None) for name in VERSUS}
    record |= metrics("energy")
    record["two_modes"] = _joined(f"{ratio:.6g}" for ratio in (row.versus and row.versus.modes) or ())
    record["not_compared"] = _joined(mismatch.kind for mismatch in row.blocked)
    record["marks"] = _joined(mark.code for mark in row.marks)
    record["failure"] = None if row.failure is None else sentence(row.failure)
    record |= metrics("fit", "reach", "rare")
    if row.score_difference is not None:
        record |= {f"score_difference_{name}": getattr(row.score_difference, name) for name in SCORE}
    parts = {
        "break_even": row.break_even,
        "efficiency": row.scaling and row.scaling.efficiency,
        "all_reduce": row.scaling and row.scaling.all_reduce,
    }
    for prefix, part in parts.items():
        if part is not None:
            record |= {f"{prefix}_{name}": value for name, value in msgspec.structs.asdict(part).items()}
    return record | {name: value for name, value in known.items() if name not in METRICS}


def _joined(words: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(words))


def _case(comparison: Comparison, group: GroupRows, row: Row, limited: SlowerBy | None) -> Case:
    """Return the case of a row; `limited`: its verdict against the limit, if there is a limit."""
    name = "step_ns" if row.cell.task == "fit" else comparison.by
    metric, known = METRICS[name], row.value(name)
    case, words = Case(f"{row.name} {row.cell.key}", " · ".join(group.title)), answer(row)
    if known is not None:
        output = f"{known:.4g} {metric.title}" if not metric.is_time else duration(known, 4)
        output += {"step_ns": " a step", "latency_ns": " latency"}.get(name, "")
        case = case._replace(output=output if row.is_baseline else f"{output}, {words}")
        case = case._replace(time_s=known / 1e9 if name.endswith("_ns") else None)
    if not row.has_number:
        return case._replace(outcome="error", words=words, kind="failed")
    if row.is_baseline:
        is_alone = comparison.kind != "cells" and all(
            other is row for other in group.rows if other.member == row.member
        )
        return case._replace(outcome="skipped", words="nothing is compared with it") if is_alone else case
    if row.versus is None:
        return case._replace(outcome="skipped", words=words)
    shown = limited or ("slower" if row.versus.verdict == metric.words[1] else row.versus.verdict)
    if shown == "slower":
        return case._replace(outcome="failed", words=words, kind=metric.words[1])
    if shown == "unresolved":
        return case._replace(outcome="skipped", words=words if words.startswith(shown) else f"{shown}: {words}")
    return case
