"""A comparison for programs: each row is a record of CSV and a test case of a CI server.

slower by more than allowed       failed
failed cell, nothing comparable   error
unresolved, not compared          skipped, with what is known
all others, baselines too         passed
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kit.compare.fail_if_slower import limited_rows
from kit.compare.rows import Comparison, GroupRows, Numbers, Row
from kit.profile.cell import AXES
from kit.report.answer import answer
from kit.report.quantity import duration
from kit.report.sentences import sentence
from kit.report.table import Case
from kit.stats.runs import SlowerBy
from kit.stats.verdict import Versus

# These are more than a number: they have columns of their own, or none.
STRUCTURES = ("phases_ns", "counters", "sensors", "modes", "fit", "reach", "step_interval_ns", "energy")
NUMBERS = [name for name in Numbers.__struct_fields__ if name not in STRUCTURES]
VERSUS = [name for name in Versus.__struct_fields__ if name not in STRUCTURES]


def records(comparison: Comparison) -> list[dict[str, object]]:
    """Return a record a row. Each phase, counter and sensor has a column."""
    return [
        _record(group, row) | {"rule": comparison.rule, "by": comparison.by}
        for group in comparison.groups
        for row in group.rows
    ]


def cases(comparison: Comparison, allowed_pct: float | None) -> list[Case]:
    """Return a case a row; without a limit a verdict "slower" fails."""
    limited = () if allowed_pct is None else limited_rows(comparison, allowed_pct)
    shown = {id(row): slower_by for _, row, slower_by in limited}
    return [_case(comparison, group, row, shown.get(id(row))) for group in comparison.groups for row in group.rows]


def _record(group: GroupRows, row: Row) -> dict[str, object]:
    numbers, versus = row.numbers, row.versus
    record: dict[str, object] = {"group": group.key, "name": row.name, "member": row.member, "side": row.side}
    record["profiles"] = " ".join(row.profiles)
    record |= {axis: row.cell.value(axis) for axis in [*row.cell.parameters, *AXES]}
    record |= {name: getattr(numbers, name) for name in NUMBERS}
    record["step_low_ns"], record["step_high_ns"] = numbers.step_interval_ns or (None, None)
    record |= {"baseline": group.baseline, "is_baseline": row.is_baseline}
    record |= {name: getattr(versus, name, None) for name in VERSUS}
    record |= {f"energy_{name}": getattr(row.energy_versus, name, None) for name in VERSUS}
    if numbers.energy is not None:
        record |= {f"energy_{name}": value for name, value in msgspec.structs.asdict(numbers.energy).items()}
        record["energy_sensors"] = " ".join(numbers.energy.sensors)
    record["two_modes"] = _joined(f"{ratio:.6g}" for ratio in (versus and versus.modes) or ())
    record["not_compared"] = _joined(mismatch.kind for mismatch in row.blocked)
    record["marks"] = _joined(mark.code for mark in row.marks)
    record["failure"] = None if row.failure is None else sentence(row.failure)
    parts = {
        "fit": numbers.fit,
        "reach": numbers.reach,
        "score_difference": row.score_difference,
        "break_even": row.break_even,
        "cost": row.cost,
        "efficiency": row.scaling and row.scaling.efficiency,
        "all_reduce": row.scaling and row.scaling.all_reduce,
    }
    for prefix, part in parts.items():
        if part is not None:
            record |= {f"{prefix}_{name}": value for name, value in msgspec.structs.asdict(part).items()}
    record |= {f"phase {name}_ns": value for name, value in numbers.phases_ns.items()}
    record |= {f"{name} per step": value for name, value in numbers.counters.items()}
    for name, sensor in numbers.sensors.items():
        record |= {f"{name} mean {sensor.unit}": sensor.mean, f"{name} max {sensor.unit}": sensor.max}
    return record


def _joined(words: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(words))


def _case(comparison: Comparison, group: GroupRows, row: Row, limited: SlowerBy | None) -> Case:
    """Return the case of a row; `limited`: its verdict against the limit, if there is a limit."""
    by_latency = comparison.by == "latency" and row.cell.task != "fit"
    time_ns = row.numbers.latency_ns if by_latency else row.numbers.step_ns
    case, words = Case(f"{row.name} {row.cell.key}", " · ".join(group.title)), answer(row)
    if time_ns is not None:
        output = f"{duration(time_ns, 4)} {'latency' if by_latency else 'a step'}"
        case = case._replace(time_s=time_ns / 1e9, output=output if row.is_baseline else f"{output}, {words}")
    if row.numbers.step_ns is None:
        return case._replace(outcome="error", words=words, kind="failed")
    if row.is_baseline:
        is_alone = comparison.kind != "cells" and all(
            other is row for other in group.rows if other.member == row.member
        )
        return case._replace(outcome="skipped", words="nothing is compared with it") if is_alone else case
    if row.versus is None:
        return case._replace(outcome="skipped", words=words)
    shown = limited or row.versus.verdict
    if shown == "slower":
        return case._replace(outcome="failed", words=words, kind="slower")
    if shown == "unresolved":
        return case._replace(outcome="skipped", words=words if words.startswith(shown) else f"{shown}: {words}")
    return case
