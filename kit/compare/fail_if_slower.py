"""`--fail-if-slower`: which rows are shown to be slower by more than allowed, which not to be, and which neither."""

from __future__ import annotations

import math
from typing import NamedTuple

from kit.compare.rows import Comparison, Row
from kit.stats.runs import SlowerBy, slower_by_more_than
from kit.stats.verdict import SAME_LEVEL, Versus, rounds_for


class Limit(NamedTuple):
    """Rows by what is shown of them, each as ``group: name``."""

    slower: list[str]
    not_slower: list[str]
    unresolved: list[str]
    more_rounds: dict[str, int]  # name of a row that is not resolved -> rounds like its own that would decide

    @property
    def exit_code(self) -> int:
        """1: a row is slower by more; 5: none is, but one is not resolved; 4: nothing was compared; 0: all passed."""
        return 1 if self.slower else 5 if self.unresolved else 0 if self.not_slower else 4


def limited_rows(comparison: Comparison, allowed_pct: float) -> list[tuple[str, Row, SlowerBy]]:
    """Return ``group: name`` of every row that is not a baseline, the row, and what is shown, adjusted over all.

    What cannot be judged, as a cell that failed or is kept apart by the gate, is unresolved: it is not shown to be as
    fast as it was.
    """
    named = [
        (f"{' · '.join(group.title)}: {row.name}", row)
        for group in comparison.groups
        for row in group.rows
        if not row.is_baseline
    ]
    allowed = 1 + allowed_pct / 100
    judged = [None if row.versus is None or _is_open(row.versus, allowed) else row.versus for _, row in named]
    shown = slower_by_more_than(judged, allowed_pct)
    return [(name, row, answer) for (name, row), answer in zip(named, shown, strict=True)]


def _is_open(versus: Versus, allowed: float) -> bool:
    """Return whether a difference cannot be held to a limit: of disturbed cells, or slower by more in one mode only."""
    is_split = versus.modes is not None and versus.modes[0] <= allowed < versus.modes[1]
    return is_split or versus.contention_pct is not None


def limit_slow_downs(comparison: Comparison, allowed_pct: float) -> Limit:
    """Return the rows by what is shown of them; baselines of cells that nothing else has are unresolved."""
    limit, allowed = Limit([], [], [], {}), math.log1p(allowed_pct / 100)
    for name, row, shown in limited_rows(comparison, allowed_pct):
        getattr(limit, shown).append(name)
        # Between runs the number of runs decides, beside a neighbour that it stops.
        versus = None if row.versus is None or row.versus.unit != "round" else row.versus
        known = None if versus is None or versus.contention_pct is not None else versus.difference
        if shown == "unresolved" and known is not None and known.mean_log != allowed:
            needed = rounds_for(known, abs(allowed - known.mean_log), SAME_LEVEL)
            if needed is not None:
                limit.more_rounds[name] = max(1, needed - known.count)
    for group in comparison.groups if comparison.kind != "cells" else ():
        compared = {row.member for row in group.rows if not row.is_baseline}
        limit.unresolved.extend(
            f"{' · '.join(group.title)}: {row.name}, which nothing is compared with"
            for row in group.rows
            if row.is_baseline and row.member not in compared
        )
        limit.unresolved.extend(
            f"{' · '.join(group.title)}: {missing.member} · {missing.side}, which has no such cell"
            for missing in group.missing
            if missing.member in compared and missing.side != group.baseline
        )
    return limit
