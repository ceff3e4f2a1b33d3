"""What a comparison holds: rows to print, whoever prints them. Encodes to JSON as it is."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.compare.graded import GradedDifference
from kit.profile.cell import Cell
from kit.profile.schema import CellSummary, ParityVerdict
from kit.stats.verdict import Verdict


class Versus(msgspec.Struct, frozen=True, kw_only=True):
    """A row against its baseline row.

    Attributes:
        time_ratio, time_ratio_low, time_ratio_high: step time over the baseline's step time with its 95 % interval;
            below 1 is faster. Null with fewer than two launches a side.
        p, p_adjusted: of no difference; adjusted for the other rows of the table (Benjamini-Hochberg).
        launches: a side that counted; rounds that both have when `paired`.
        paired: launches of one run are compared by round, those of two runs as independent groups.
        launches_to_settle: of an unresolved row, about how many launches a side would resolve it, if as many of them
            count as until now; null: not known.
    """

    verdict: Verdict
    time_ratio: float | None = None
    time_ratio_low: float | None = None
    time_ratio_high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    launches: int = 0
    paired: bool = False
    launches_to_settle: int | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of one profile."""

    profile: str  # label
    cell: Cell
    status: Literal["ok", "failed", "incomplete"]
    problem: str | None  # in place of the step time: why there is none
    summary: CellSummary
    launches: int  # that gave a steady number
    launches_seen: int  # finished or failed
    data: str | None  # "mnist", "synthetic"
    parity: ParityVerdict | None
    accuracy_updates: int | None  # optimizer updates before scoring; null: not known, or launches differ
    is_baseline: bool
    versus: Versus | None
    no_verdict: str | None  # why `versus` is null, for a row that is not the baseline
    forced: str | None = None  # what blocks the comparison that `--force` made all the same: "threads 1 against 2"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Rows in the order to print them, and what has to be said below them."""

    kind: Literal["backends", "profiles"]  # what the baseline is one of
    baseline: str | None  # a backend or a profile's label; null: there are no rows
    band: float  # relative difference below which nothing is called faster or slower
    headline: list[str]  # one line a profile: what ran where
    rows: list[Row]
    notes: list[str]
    differences: list[GradedDifference] = []  # of several profiles: what is not the same in all, gravest first
