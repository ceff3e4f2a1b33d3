"""Many profiles as words: a line a cell, then the profiles that are furthest from the baseline."""

from __future__ import annotations

from collections import Counter

from kit.compare.counted import counted
from kit.compare.gate import work_of
from kit.compare.overview import At, CellOverview, ProfileOverview, cell_overviews, furthest_profiles
from kit.compare.rows import Comparison
from kit.report.layout import Column, Group, Line, Table, group_title
from kit.report.plain import NONE, one_line
from kit.report.quantity import duration_estimate, times
from kit.stats.verdict import Verdict

COUNTED_VERDICTS: tuple[Verdict, ...] = ("faster", "same", "slower", "unresolved")
VERDICT_COLUMNS = [Column("", verdict, True) for verdict in COUNTED_VERDICTS]
DIGITS = 4


def overview_headline(comparison: Comparison) -> list[str]:
    """The baseline's own line, how many stand against it, and where each row is."""
    own = [line for line in comparison.headline if line.startswith(f"{comparison.baseline}: ")]
    others = counted(len(comparison.headline) - 1, "other profile")
    return [*own[:1], f"{others} against it; `--format csv` and `--format json` have a row for each cell of each."]


def overview_tables(comparison: Comparison) -> list[Table]:
    """Time ratios are step time over the baseline's step time: below 1 is faster."""
    return [_of_cells(comparison), _of_profiles(comparison)]


def _of_cells(comparison: Comparison) -> Table:
    columns = [
        Column("", "backend", False),
        Column("", "profiles", True),
        Column("baseline's step", "median [95 % interval]", True),
        Column("time ratio", "lowest (in)", True),
        Column("", "median", True),
        Column("", "highest (in)", True),
        *VERDICT_COLUMNS,
        Column("no", "verdict", True),
    ]
    groups: dict[object, Group] = {}
    for found in cell_overviews(comparison):
        group = groups.setdefault(work_of(found.cell), Group(group_title(found.cell), []))
        group.lines.append(Line(_cell(found)))
    return Table(columns, [*groups.values()], [])


def _of_profiles(comparison: Comparison) -> Table:
    columns = [
        Column("", "profile", False),
        Column("", "cells", True),
        Column("time ratio", "geometric mean", True),
        *VERDICT_COLUMNS,
    ]
    lines = [Line(_profile(found)) for found in furthest_profiles(comparison)]
    return Table(columns, [Group("furthest from the baseline", lines)] if lines else [], [])


def _cell(found: CellOverview) -> list[str]:
    step = found.baseline.summary.step_ns
    return [
        one_line(f"{found.cell.backend}/{found.cell.compile_mode}"),
        f"{found.others:,}",
        NONE if step is None else duration_estimate(step),
        _at(found.lowest),
        NONE if found.median is None else times(found.median, DIGITS),
        _at(found.highest),
        *_counts(found.verdicts),
        f"{found.no_verdict:,}",
    ]


def _profile(found: ProfileOverview) -> list[str]:
    return [one_line(found.profile), f"{found.cells:,}", times(found.ratio, DIGITS), *_counts(found.verdicts)]


def _at(found: At | None) -> str:
    return NONE if found is None else f"{times(found.ratio, DIGITS)} ({one_line(found.profile)})"


def _counts(verdicts: Counter[Verdict]) -> list[str]:
    return [f"{verdicts[verdict]:,}" for verdict in COUNTED_VERDICTS]
