"""The last line of a run that measured until a precision: did it get slower?

mlp train: yes, new is 5.1 ± 1.2 % slower than old (12 rounds)
mlp train: no, new and old are within ±2.6 % of each other (9 rounds)
mlp train: not known yet, ±11 % after 3 rounds; about 14 more rounds (6 minutes) for ±3 %
"""

from __future__ import annotations

import math

from kit.compare.rows import Comparison, Row
from kit.report.answer import answer
from kit.report.plain import one_line
from kit.report.quantity import counted
from kit.stats.verdict import ALPHA, ROUNDS_PRELIMINARY, Versus, rounds_for


def ab_answers(comparison: Comparison, precision_pct: float, round_s: float | None) -> list[str]:
    """Return the answer of each row that was compared with its group's baseline.

    Args:
        comparison: of one run.
        precision_pct: that it was to reach.
        round_s: seconds that a round takes; null: not known.
    """
    return [
        one_line(f"{' '.join(group.title)}: {_answer(row, group.baseline or 'the baseline', precision_pct, round_s)}")
        for group in comparison.groups
        for row in group.rows
        if not row.is_baseline
    ]


def more_rounds(versus: Versus, half_pct: float, level: float, round_s: float | None = None) -> str:
    """Return ``about 14 more rounds (6 minutes)``: until half of the interval at `level` is `half_pct`."""
    known = versus.difference
    needed = None if known is None else rounds_for(known, math.log1p(half_pct / 100), level)
    if known is None or needed is None:
        return "more rounds than anybody waits for"
    more = max(1, needed - known.count)
    minutes = "" if round_s is None else f" ({counted(math.ceil(more * round_s / 60), 'minute')})"
    return f"about {counted(more, 'more round')}{minutes}"


def _answer(row: Row, baseline: str, precision_pct: float, round_s: float | None) -> str:
    versus = row.versus
    if versus is None or versus.low is None or versus.high is None or versus.modes or versus.contention_pct is not None:
        return f"not known: {answer(row)}"
    rounds = counted(versus.count, "round")
    if versus.verdict in ("faster", "slower"):
        word = "yes" if versus.verdict == "slower" else "no"
        return f"{word}, {row.name} is {answer(row)} than {baseline} ({rounds})"
    known = versus.difference
    half_pct = math.inf if known is None else 100 * math.expm1(known.half_width(1 - ALPHA))
    if half_pct <= precision_pct and versus.count >= ROUNDS_PRELIMINARY:
        most_pct = max(0.1, math.ceil(1000 * (versus.high - 1)) / 10)  # rounded up: what it is not to be more than
        return f"no, {row.name} is at most {most_pct:.1f} % slower than {baseline} ({rounds})"
    wanted = f"{more_rounds(versus, precision_pct, 1 - ALPHA, round_s)} for ±{precision_pct:g} %"
    return f"not known yet, ±{half_pct:.{0 if half_pct >= 10 else 1}f} % after {rounds}; {wanted}"  # noqa: PLR2004
