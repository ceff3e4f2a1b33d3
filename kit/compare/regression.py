"""`--fail-if-slower`: which rows are shown to be slower by more than allowed, which not to be, and which neither."""

from __future__ import annotations

from typing import NamedTuple

from kit.compare.rows import Comparison, Row
from kit.stats.runs import SlowerBy, slower_by_more_than


class Limit(NamedTuple):
    """Rows by what is shown of them, each as ``group: name``."""

    slower: list[str]
    not_slower: list[str]
    unresolved: list[str]

    @property
    def exit_code(self) -> int:
        """1: a row is slower by more; 5: none is, but one is not resolved; 4: nothing was compared; 0: all passed."""
        return 1 if self.slower else 5 if self.unresolved else 0 if self.not_slower else 4


def limit_slow_downs(comparison: Comparison, allowed_pct: float) -> Limit:
    """Return every row that is not a baseline by what is shown of it, and baselines of cells that nothing else has.

    What cannot be judged, as a cell that failed, is kept apart by the gate or is in one profile only, is unresolved:
    it is not shown to be as fast as it was.
    """
    limit = Limit([], [], [])
    for group in comparison.groups:
        compared = {row.cell.key for row in group.rows if not row.is_baseline}
        for row in group.rows:
            name = f"{' · '.join(group.title)}: {row.name}"
            if not row.is_baseline:
                getattr(limit, judged(row, allowed_pct)).append(name)
            elif comparison.kind == "runs" and row.cell.key not in compared:
                limit.unresolved.append(f"{name}, which nothing is compared with")
    return limit


def judged(row: Row, allowed_pct: float) -> SlowerBy:
    """Return what is shown of a row."""
    versus = row.versus
    if versus is None or versus.mean_log is None:
        return "unresolved"
    return slower_by_more_than(versus.mean_log, versus.se_log, versus.df, allowed_pct)
