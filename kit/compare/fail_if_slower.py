"""`--fail-if-slower`: which rows are shown to be slower by more than allowed, which are not, and the exit code.

A row passes when it is shown, at 95 %, not to be slower by more. What is not shown either way is unresolved.

    screen ─► rows that are slower, or that as many rounds again would decide ─► confirm: a second run

A run has its own luck: of rows that are at the limit one in twenty is called slower. Twice in a row one in 400 is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from kit.compare.rows import Comparison, Row
from kit.stats.estimate import SAME_LEVEL, Estimate, SlowerBy, rounds_for, slower_by_more_than

# The first screens, the second confirms.
RUNS_OF_A_GATE = 2


class Limit(NamedTuple):
    """What `--fail-if-slower` comes to: rows by what is shown of them, each as ``group: name``."""

    slower: list[str]
    not_slower: list[str]
    unresolved: list[str]
    kept_apart: dict[str, list[str]]  # by kind
    more_rounds: dict[str, int]  # name of a row that is not resolved -> rounds like its own that would decide
    slower_in: dict[str, int]  # of rows that were measured in two runs: in how many of them they are slower

    @property
    def exit_code(self) -> int:
        """1: a row is slower by more; 4: nothing was compared, or what must not be; 5: not resolved; 0: all passed."""
        if self.slower:
            return 1
        # 5 is let pass where a machine is too noisy, which these are not.
        if self.kept_apart:
            return 4
        return 5 if self.unresolved else 0 if self.not_slower else 4

    def open_rows(self, rounds: int) -> list[str]:
        """Return the rows that a second run of so many rounds may decide otherwise."""
        return [*self.slower, *(row for row in self.unresolved if self.more_rounds.get(row, math.inf) <= rounds)]

    def confirmed_by(self, second: Limit, rows: Sequence[str]) -> Limit:
        """Return what both runs come to for `rows`: a row is slower if it is in both, and passes if it does in either.

        Whichever run shows that a row is not slower by more, the row is not: chance may only have made it slower.
        """
        slower_in = {row: (row in self.slower) + (row in second.slower) for row in rows}
        passed = [row for row in rows if row in second.not_slower]
        slower = [row for row, count in slower_in.items() if count == RUNS_OF_A_GATE]
        known = {*passed, *slower}
        unresolved = [row for row in self.unresolved if row not in known]
        return self._replace(
            slower=slower,
            not_slower=[*self.not_slower, *passed],
            kept_apart={**self.kept_apart, **second.kept_apart},
            unresolved=[*unresolved, *(row for row in self.slower if row not in known)],
            more_rounds={row: more for row, more in second.more_rounds.items() if row not in known},
            slower_in=slower_in,
        )


def limited_rows(comparison: Comparison, allowed_pct: float) -> list[tuple[str, Row, SlowerBy]]:
    """Return ``group: name`` of every row that is not a baseline, the row, and what is shown, adjusted over all.

    A cell that failed, or that the gate keeps apart, is unresolved: it is not shown to be as fast as it was. A row is
    also unresolved if other programs disturbed both cells, or if it is slower by more in only one of two modes.
    """
    allowed, named = 1 + allowed_pct / 100, list[tuple[str, Row]]()
    judged: list[Estimate | None] = []
    for group in comparison.groups:
        for row in (row for row in group.rows if not row.is_baseline):
            versus = row.versus
            is_split = versus is not None and versus.modes is not None and versus.modes[0] <= allowed < versus.modes[1]
            is_open = versus is None or is_split or versus.contention_pct is not None
            named.append((f"{' · '.join(group.title)}: {row.name}", row))
            judged.append(None if is_open else versus)
    shown = slower_by_more_than(judged, allowed_pct)
    return [(name, row, answer) for (name, row), answer in zip(named, shown, strict=True)]


def limit_slow_downs(comparison: Comparison, allowed_pct: float) -> Limit:
    """Return the rows by what is shown of them; baselines of cells that nothing else has are unresolved."""
    limit, allowed = Limit([], [], [], {}, {}, {}), math.log1p(allowed_pct / 100)
    for name, row, shown in limited_rows(comparison, allowed_pct):
        names = limit.kept_apart.setdefault(row.kept_apart, []) if row.kept_apart else getattr(limit, shown)
        names.append(name)
        # Between runs the number of runs decides, beside a neighbor that it stops; no round unites two modes.
        versus = row.versus
        if versus is None or versus.unit != "round" or versus.modes is not None or not versus.has_interval:
            continue
        if shown == "unresolved" and versus.contention_pct is None and versus.mean_log != allowed:
            needed = rounds_for(versus, abs(allowed - versus.mean_log), SAME_LEVEL)
            if needed is not None:
                limit.more_rounds[name] = max(1, needed - versus.count)
    for group in comparison.groups if comparison.kind != "cells" else ():
        compared, title = {row.member for row in group.rows if not row.is_baseline}, " · ".join(group.title)
        limit.unresolved.extend(
            f"{title}: {row.name}, which nothing is compared with"
            for row in group.rows
            if row.is_baseline and row.member not in compared
        )
        limit.unresolved.extend(
            f"{title}: {missing.member} · {missing.side}, which has no such cell"
            for missing in group.missing
            if missing.member in compared and missing.side != group.baseline
        )
    return limit
