"""A comparison as CSV: one row a cell, plain numbers with their units in the column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

import msgspec

from kit.compare.rows import Comparison, GroupRows, Numbers, Row, Versus
from kit.profile.cell import AXES
from kit.report.plain import spreadsheet
from kit.report.reasons import sentence
from kit.report.words import RenderOptions

OWN_COLUMNS = ("phases_ns", "counters", "sensors", "modes", "fit", "step_interval_ns")
NUMBERS = [name for name in Numbers.__struct_fields__ if name not in OWN_COLUMNS]
VERSUS = [name for name in Versus.__struct_fields__ if name not in OWN_COLUMNS]


def render(comparison: Comparison, _: RenderOptions) -> str:
    """Return the header and all rows. What any cell has a phase, counter or sensor of has columns of its own."""
    rows = [
        _fields(group, row) | {"rule": comparison.rule, "by": comparison.by}
        for group in comparison.groups
        for row in group.rows
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(spreadsheet, names))
    writer.writerows([_field(row.get(name)) for name in names] for row in rows)
    return written.getvalue()


def _fields(group: GroupRows, row: Row) -> dict[str, object]:
    numbers, versus = row.numbers, row.versus
    fields: dict[str, object] = {"group": group.key, "name": row.name, "profiles": " ".join(row.profiles)}
    fields |= {axis: row.cell.value(axis) for axis in [*row.cell.parameters, *AXES]}
    fields |= {name: getattr(numbers, name) for name in NUMBERS}
    fields["step_low_ns"], fields["step_high_ns"] = numbers.step_interval_ns or (None, None)
    fields |= {"baseline": group.baseline, "is_baseline": row.is_baseline}
    fields |= {name: getattr(versus, name, None) for name in VERSUS}
    fields["two_modes"] = _joined(f"{one:.6g}" for one in (versus and versus.modes) or ())
    fields["not_compared"] = _joined(one.kind for one in row.blocked)
    fields["marks"] = _joined(mark.code for mark in row.marks)
    fields["failure"] = None if row.failure is None else sentence(row.failure)
    parts = {"fit": numbers.fit, "score_difference": row.score_difference, "break_even": row.break_even}
    for prefix, own in parts.items():
        if own is not None:
            fields |= {f"{prefix}_{name}": value for name, value in msgspec.structs.asdict(own).items()}
    fields |= {f"phase {name}_ns": value for name, value in numbers.phases_ns.items()}
    fields |= {f"{name} per step": value for name, value in numbers.counters.items()}
    for name, sensor in numbers.sensors.items():
        fields |= {f"{name} mean {sensor.unit}": sensor.mean, f"{name} max {sensor.unit}": sensor.max}
    return fields


def _field(value: object) -> object:
    """Return a number as it is, nothing for null, and text that is no formula."""
    return spreadsheet(value) if isinstance(value, str) else "" if value is None else value


def _joined(words: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(words))
