"""Many profiles in a few lines: each cell over all of them, and the profiles that are furthest from the baseline."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kit.compare.rows import Comparison, Row
from kit.compare.unpaired import paired_rows
from kit.profile.cell import Cell
from kit.stats.verdict import Verdict

# More profiles than these make tables that nobody reads to their end.
PROFILES_IN_FULL_MAX = 12
# Of those furthest from the baseline.
FURTHEST_SHOWN = 10


class At(NamedTuple):
    """A time ratio, and the profile that has it."""

    ratio: float
    profile: str


class CellOverview(NamedTuple):
    """One cell in all profiles that have it.

    Attributes:
        baseline: its row in the baseline profile.
        others: how many other profiles have it.
        lowest, median, highest: time ratios against the baseline; null where no row has one.
        verdicts: how many rows have which; those without any are in `no_verdict`.
    """

    cell: Cell
    baseline: Row
    others: int
    lowest: At | None
    median: float | None
    highest: At | None
    verdicts: Counter[Verdict]
    no_verdict: int


class ProfileOverview(NamedTuple):
    """One profile over all of its cells that have a ratio; `ratio` is their geometric mean."""

    profile: str
    ratio: float
    cells: int
    verdicts: Counter[Verdict]


def many(comparison: Comparison) -> bool:
    """Whether there are too many profiles to show each row."""
    return comparison.kind == "profiles" and len(comparison.headline) > PROFILES_IN_FULL_MAX


def cell_overviews(comparison: Comparison) -> list[CellOverview]:
    """One for each cell that the baseline and another profile have, in the order of the rows."""
    rows_of: dict[Cell, list[Row]] = {}
    for row in paired_rows(comparison.rows):
        rows_of.setdefault(row.cell, []).append(row)
    return [_overview(cell, rows) for cell, rows in rows_of.items()]


def furthest_profiles(comparison: Comparison) -> list[ProfileOverview]:
    """At most `FURTHEST_SHOWN`, the furthest first, whichever way."""
    rows_of: dict[str, list[Row]] = {}
    for row in comparison.rows:
        if _ratio(row) is not None:
            rows_of.setdefault(row.profile, []).append(row)
    found = [_profile(profile, rows) for profile, rows in rows_of.items()]
    return sorted(found, key=lambda one: -abs(math.log(one.ratio)))[:FURTHEST_SHOWN]


def _overview(cell: Cell, rows: Sequence[Row]) -> CellOverview:
    others = [row for row in rows if not row.is_baseline]
    ratios = [At(ratio, row.profile) for row in others if (ratio := _ratio(row)) is not None]
    return CellOverview(
        cell=cell,
        baseline=next(row for row in rows if row.is_baseline),
        others=len(others),
        lowest=min(ratios, default=None),
        median=statistics.median(at.ratio for at in ratios) if ratios else None,
        highest=max(ratios, default=None),
        verdicts=_verdicts(others),
        no_verdict=sum(row.versus is None for row in others),
    )


def _profile(profile: str, rows: Sequence[Row]) -> ProfileOverview:
    ratios = [ratio for row in rows if (ratio := _ratio(row)) is not None]
    return ProfileOverview(profile, statistics.geometric_mean(ratios), len(rows), _verdicts(rows))


def _ratio(row: Row) -> float | None:
    return None if row.versus is None else row.versus.time_ratio


def _verdicts(rows: Sequence[Row]) -> Counter[Verdict]:
    return Counter(row.versus.verdict for row in rows if row.versus is not None)
