"""The column that answers: ``1.42 ± 0.03 × slower``, ``within ±4 %``.

1.42 ± 0.03 × slower        how many times as long (slower) or as short (faster), with the interval's half
1.56 [1.23, 1.96] × faster  the same, where the interval is lopsided
3.1 ± 0.5 % slower          near 1, as a percentage
same, within ±0.8 %         shown to be less apart than what matters
same, 0.5 ± 0.2 % slower    the same, with a difference that was found
within ±4 %                 not resolved: what the interval says
unresolved: 2.6 × faster to 1.1 × slower   the same, where that is much
unresolved: rounds disagree (1.5 × slower)    the same, where that is no answer
unresolved: contended       others disturbed both, and fell on them unlike: their ratio is of the neighbour, too
1.5 × faster, not significant (3 tests)   its interval leaves out 1, the adjusted p says it may be chance
1.5 × faster, not significant (2 rounds)  its interval leaves out 1, and rounds are too few for a verdict
"""

from __future__ import annotations

import math

from kit.compare.rows import Row
from kit.report.plain import NONE
from kit.report.quantity import counted, decimals
from kit.report.sentences import sentence
from kit.stats.verdict import ALPHA, SMALLEST_DIFFERENCE, Versus

# A ratio this close to 1 is read as a percentage, a larger one as "times".
PERCENT_BELOW = 0.1
# Halves of an interval that differ by more than this are both shown.
LOPSIDED = 1.3
# Ends that lie further apart say nothing of the difference: some round was disturbed, or a cell has another mode.
DISAGREEING = 10.0
# Of "31 [24, 39] × faster" nobody needs decimals, unless the interval is as narrow.
DECIMALS_BELOW = 10
# A difference that may be larger than this in percent is read as "times", in both directions.
PERCENT_UNWIELDY = 30.0


def answer(row: Row) -> str:
    """Return what stands in the answering column of a row."""
    if row.is_baseline and (row.failure is None or row.numbers.step_ns is not None):
        return NONE
    if row.blocked and row.versus is None:
        return f"not compared: {', '.join(dict.fromkeys(mismatch.kind.replace('_', ' ') for mismatch in row.blocked))}"
    if row.numbers.step_ns is None:
        return f"failed: {sentence(row.failure)}" if row.failure is not None else "no rounds"
    if row.versus is None:
        return "no baseline to compare with"
    words = in_words(row.versus)
    return f"{words} (forced)" if row.blocked else words


def in_words(versus: Versus) -> str:
    """Return a difference as people say it."""
    if versus.ratio is None or versus.contention_pct is not None:
        return "no common round" if versus.ratio is None else "unresolved: contended"
    if versus.modes is not None:
        return _modes(*versus.modes)
    if versus.low is None or versus.high is None:
        return f"unresolved ({_point(versus.ratio)}, {counted(versus.count, versus.unit)})"
    if versus.verdict in ("faster", "slower"):
        return _changed(versus.verdict, versus.ratio, versus.low, versus.high)
    if versus.verdict == "same":
        return f"same, {_same(versus, versus.ratio, versus.low, versus.high)}"
    return _unresolved(versus, versus.ratio, versus.low, versus.high)


def less_or_more(versus: Versus) -> str:
    """Return a difference of joules: ``1.80 ± 0.10 × less``, ``within ±4 %``, ``1.80 × more (1 round)``."""
    if versus.ratio is not None and versus.low is None:
        words = f"{_point(versus.ratio)} ({counted(versus.count, versus.unit)})"
    else:
        words = in_words(versus)
    return words.replace("slower", "more").replace("faster", "less")


def times(ratio: float) -> str:
    """Return ``1.8`` of a ratio above 1; more digits near 1."""
    places = 2 if ratio < 1 + PERCENT_BELOW else 1 if ratio < DECIMALS_BELOW else 0
    return f"{ratio:,.{places}f}"


def _modes(fast: float, slow: float) -> str:
    if fast > 1:
        return f"two modes: {times(fast)} and {times(slow)} × slower"
    if slow < 1:
        return f"two modes: {times(1 / slow)} and {times(1 / fast)} × faster"
    return f"two modes: {times(1 / fast)} × faster, {times(slow)} × slower"


def _end(ratio: float) -> str:
    return f"{times(ratio)} × slower" if ratio >= 1 else f"{times(1 / ratio)} × faster"


def _point(ratio: float) -> str:
    """Return a difference without its interval."""
    direction, size = ("slower", ratio) if ratio >= 1 else ("faster", 1 / ratio)
    if size < 1 + PERCENT_BELOW:
        return f"{100 * (size - 1):.1f} % {direction}"
    return f"{size:,.{2 if size < DECIMALS_BELOW else 0}f} × {direction}"


def _changed(verdict: str, ratio: float, low: float, high: float) -> str:
    if verdict == "faster":
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    if ratio < 1 + PERCENT_BELOW:
        return f"{_with_ends(100 * (ratio - 1), 100 * (low - 1), 100 * (high - 1), 1, nothing=0)} % {verdict}"
    return f"{_with_ends(ratio, low, high, 2, nothing=1)} × {verdict}"


def _with_ends(point: float, low: float, high: float, places: int, *, nothing: float) -> str:
    """Return ``1.42 ± 0.03``, or ``1.56 [1.23, 1.96]`` where one half is much longer or would reach `nothing`."""
    halves = point - low, high - point
    places = 0 if point >= DECIMALS_BELOW else places
    places = min(3, max(places, decimals(max(halves), 1))) if max(halves) > 0 else places
    if max(halves) > min(LOPSIDED * max(min(halves), 10.0**-places), point - nothing):
        return f"{point:,.{places}f} [{low:,.{places}f}, {high:,.{places}f}]"
    return f"{point:.{places}f} ± {max(halves):.{places}f}"


def _same(versus: Versus, ratio: float, low: float, high: float) -> str:
    # Shown at the level of the test, whose interval is narrower than the one at hand.
    matters = 1 + SMALLEST_DIFFERENCE
    low, high = max(low, 1 / matters), min(high, matters)
    if (versus.p_adjusted or 0.0) <= ALPHA:
        return _changed("slower" if ratio > 1 else "faster", ratio, low, high)
    return _within(low, high)


def _unresolved(versus: Versus, ratio: float, low: float, high: float) -> str:
    if low <= 1 <= high or (versus.p_adjusted is not None and versus.p_adjusted <= ALPHA):
        if high / low > DISAGREEING and versus.unit != "round":
            # It is wide by what is assumed of sessions, or by what others took.
            return f"unresolved ({_point(ratio)}, {counted(versus.count, versus.unit)})"
        if high / low > DISAGREEING and versus.count > 1:
            return f"unresolved: {versus.unit}s disagree ({_point(ratio)})"
        return _within(low, high)
    # Such an interval beside "unresolved" reads as a contradiction: what is missing is said instead.
    few = counted(versus.count, versus.unit) if versus.p_adjusted is None else counted(versus.comparisons, "test")
    return f"{_point(ratio)}, not significant ({few})"


def _within(low: float, high: float) -> str:
    """Return ``within ±4 %``, rounded away from zero: what it is not to be more than."""
    widest = round(100 * (max(high, 1 / low) - 1), 9) if low > 0 else math.inf
    if widest > PERCENT_UNWIELDY:
        return f"unresolved: {_end(low)} to {_end(high)}"
    shown = math.ceil(10 * widest) / 10 if widest < 3 else math.ceil(widest)  # noqa: PLR2004 - a digit more when small
    return f"within ±{shown:g} %"
