"""The last line of a run that measured until a precision: did it get slower?

mlp train: yes, new is 5.1 ± 1.2 % slower than old (12 rounds)
mlp train: no, new is at most 2.6 % slower than old (9 rounds)
mlp train: yes, new is 5.1 ± 1.2 % slower than old (12 rounds, all disturbed by other programs)
mlp train: not known yet, 2.2 ± 11 % slower after 3 rounds; about 14 more rounds (6 minutes) for ±3 %
mlp train: not known: between 0.3 % faster and 5.5 % slower (9 rounds)
"""

from __future__ import annotations

import math

from kit.compare.rows import Comparison, Row
from kit.report.answer import answer
from kit.report.plain import one_line
from kit.report.quantity import counted
from kit.stats.estimate import ALPHA, ROUNDS_PRELIMINARY, Estimate, rounds_for

# What an A/B differs in: other comparisons do not ask what got slower.
SIDES = ("variant", "workload", "parameters")
HALF_PCT_SHOWN = 100.0
# `kit run` ends there, and more than these are no advice.
ROUNDS_SHOWN_MAX = 200


def ab_answers(comparison: Comparison, precision_pct: float, round_s: float | None) -> list[str]:
    """Return the answer of each row that is its group's baseline in another variant, or another program.

    Args:
        comparison: of one run.
        precision_pct: that it was to reach.
        round_s: seconds that a round takes; null: not known.
    """
    lines = []
    for group in comparison.groups if comparison.kind == "cells" else ():
        base = next((row for row in group.rows if row.is_baseline), None)
        for row in group.rows:
            if base is not None and row is not base and row.cell.key_without(SIDES) == base.cell.key_without(SIDES):
                lines.append(one_line(f"{' '.join(group.title)}: {_answer(row, base.name, precision_pct, round_s)}"))
    return lines


def _answer(row: Row, baseline: str, precision_pct: float, round_s: float | None) -> str:
    versus = row.versus
    if versus is None or versus.low is None or versus.high is None or versus.modes or versus.contention_pct is not None:
        return f"not known: {answer(row)}"
    rounds = counted(versus.count, "round") + (", all disturbed by other programs" if row.value("is_disturbed") else "")
    if versus.verdict in ("faster", "slower"):
        word = "yes" if versus.verdict == "slower" else "no"
        return f"{word}, {row.name} is {answer(row)} than {baseline} ({rounds})"
    # Rounded up: what it is not to be more than.
    most_pct = max(0.1, math.ceil(1000 * (versus.high - 1)) / 10)
    is_settled = versus.verdict == "same" or versus.count >= ROUNDS_PRELIMINARY
    if is_settled and (versus.verdict == "same" or versus.high <= 1 + precision_pct / 100):
        return f"no, {row.name} is at most {most_pct:.1f} % slower than {baseline} ({rounds})"
    half_pct = 100 * math.expm1(min(10.0, versus.half_width(1 - ALPHA)))
    if is_settled and half_pct <= precision_pct:
        fast_pct = 100 * (1 / versus.low - 1)
        ends = f"between {fast_pct:.1f} % faster" if fast_pct > 0 else f"between {100 * (versus.low - 1):.1f} %"
        return f"not known: {ends} and {most_pct:.1f} % slower ({rounds})"
    shown = "more than ±100 %"
    if half_pct < HALF_PCT_SHOWN:
        apart_pct = 100 * math.expm1(abs(versus.mean_log))
        direction = "slower" if versus.mean_log >= 0 else "faster"
        shown = f"{apart_pct:.1f} ± {half_pct:.{0 if half_pct >= 10 else 1}f} % {direction}"  # noqa: PLR2004
    return f"not known yet, {shown} after {rounds}; {_more_rounds(versus, precision_pct, round_s)}"


def _more_rounds(versus: Estimate, precision_pct: float, round_s: float | None) -> str:
    """Return ``about 14 more rounds (6 minutes) for ±3 %``."""
    needed = rounds_for(versus, math.log1p(precision_pct / 100), 1 - ALPHA)
    if needed is None or needed > ROUNDS_SHOWN_MAX:
        return f"±{precision_pct:g} % needs far more rounds"
    more = max(1, needed - versus.count)
    minutes = "" if round_s is None else f" ({counted(math.ceil(more * round_s / 60), 'minute')})"
    return f"about {counted(more, 'more round')}{minutes} for ±{precision_pct:g} %"
