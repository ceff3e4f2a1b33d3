"""The column that answers: ``1.42 ± 0.03 × slower``, ``unresolved (within ±4 %)``.

1.42 ± 0.03 × slower              its step takes 1.42 times as long; ± is half of the 95 % interval
1.56 [1.23, 1.96] × faster        the interval is lopsided
3.1 ± 0.5 % slower                near 1 a ratio is a percentage
same (within 0.8 %)               the difference is shown to be smaller than 1 %
same (0.5 ± 0.2 % slower)         the same, and a difference was found
bimodal: 1.3 and 2.4 × slower     this row or the baseline has two step times
unresolved (within ±4 %)          the interval holds 1
unresolved (2.6 × faster to 1.1 × slower)          the interval holds 1 and is wide
unresolved (rounds disagree: 1.50 × slower)        the interval is so wide that it says nothing
unresolved (1.50 × slower, not significant in 3 tests)   the interval leaves out 1, the adjusted p does not
unresolved (1.50 × slower in 2 rounds)             a verdict needs more rounds
unresolved (contended)            other programs disturbed both cells, and not equally
"""

from __future__ import annotations

import math

from kit.compare.contrast import Metric
from kit.compare.metrics import METRICS
from kit.compare.rows import Row
from kit.report.quantity import counted, decimals
from kit.report.sentences import sentence
from kit.stats.estimate import ALPHA, SMALLEST_DIFFERENCE, TIME_WORDS, Estimate

# A ratio this close to 1 is read as a percentage, a larger one as "times".
PERCENT_BELOW = 0.1
# Halves of an interval that differ by more than this are both shown.
LOPSIDED = 1.3
# Ends further apart say nothing about the difference: a round was disturbed, or a cell is bimodal.
DISAGREEING = 10.0
# From here on a ratio has no decimals, unless its interval is narrow: "31 [24, 39] × faster".
DECIMALS_BELOW = 10
# An interval that reaches beyond this is shown as "times", in both directions.
PERCENT_UNWIELDY = 30.0


def answer(row: Row) -> str:
    """Return the words of a row in the last column."""
    if row.is_baseline and row.has_number:
        return "baseline"
    if row.blocked and row.versus is None:
        return f"not compared: {', '.join(dict.fromkeys(mismatch.kind.replace('_', ' ') for mismatch in row.blocked))}"
    if not row.has_number:
        return f"failed: {sentence(row.failure)}" if row.failure is not None else "no rounds"
    if row.versus is None:
        return "no baseline to compare with"
    words = in_words(row.versus, METRICS[row.metric].words)
    return f"{words} (forced)" if row.blocked else words


def with_words(known: Estimate, metric: Metric) -> str:
    """Return a difference beside a value: ``1.80 ± 0.10 × less``, ``1.80 × more (1 round)``."""
    if known.ratio is not None and known.low is None:
        return f"{_point(known.ratio or math.nan, metric.words)} ({counted(known.count, known.unit)})"
    return in_words(known, metric.words)


def in_words(known: Estimate, words: tuple[str, str] = TIME_WORDS) -> str:
    """Return the verdict on a difference, in words; `words` are the metric's, of less and of more."""
    if isinstance(known.difference, float):
        if known.low is None or known.high is None:
            return f"unresolved ({known.difference:+.3g} in {counted(known.count, known.unit)})"
        ends = f"{known.difference:+.3g} [{known.low:+.3g}, {known.high:+.3g}]"
        return f"{known.verdict} ({ends})" if known.verdict in ("same", "unresolved") else f"{ends} {known.verdict}"
    if known.ratio is None or known.contention_pct is not None:
        return "no common round" if known.ratio is None else "unresolved (contended)"
    return _verdict(known, known.ratio or math.nan, words)


def times(ratio: float) -> str:
    """Return ``1.8`` of a ratio above 1; more digits near 1."""
    places = 2 if ratio < 1 + PERCENT_BELOW else 1 if ratio < DECIMALS_BELOW else 0
    return f"{ratio:,.{places}f}"


def _verdict(known: Estimate, ratio: float, words: tuple[str, str]) -> str:  # noqa: PLR0911 - a kind of answer each
    """Return the verdict on a ratio, with what is known of it."""
    less, more = words
    low, high = known.low, known.high
    too_few = f"unresolved ({_point(ratio, words)} in {counted(known.count, known.unit)})"
    if known.modes is not None:
        fast, slow = known.modes
        if fast > 1:
            return f"bimodal: {times(fast)} and {times(slow)} × {more}"
        if slow < 1:
            return f"bimodal: {times(1 / slow)} and {times(1 / fast)} × {less}"
        return f"bimodal: {times(1 / fast)} × {less}, {times(slow)} × {more}"
    if low is None or high is None:
        return too_few
    low, high = low or math.nan, high or math.nan
    if known.verdict in words:
        return _changed(known.verdict == less, ratio, low, high, words)
    if known.verdict == "same":
        # Shown at the level of the test, whose interval is narrower than the one at hand.
        matters = 1 + SMALLEST_DIFFERENCE
        low, high = max(low, 1 / matters), min(high, matters)
        is_found = (known.p_adjusted or 0.0) <= ALPHA
        within = f"within {_widest(low, high):g} %"
        return f"same ({_changed(ratio <= 1, ratio, low, high, words) if is_found else within})"
    if low <= 1 <= high or (known.p_adjusted is not None and known.p_adjusted <= ALPHA):
        if high / low > DISAGREEING and known.unit != "round":
            # The interval is that wide because the spread of sessions is assumed, or because others took CPUs.
            return too_few
        if high / low > DISAGREEING and known.count > 1:
            return f"unresolved ({known.unit}s disagree: {_point(ratio, words)})"
        widest = _widest(low, high)
        ends = [f"{times(end)} × {more}" if end >= 1 else f"{times(1 / end)} × {less}" for end in (low, high)]
        return f"unresolved ({f'within ±{widest:g} %' if widest <= PERCENT_UNWIELDY else ' to '.join(ends)})"
    # An interval that leaves out 1 would contradict "unresolved": the words say what is missing instead.
    if known.p_adjusted is None:
        return too_few
    return f"unresolved ({_point(ratio, words)}, not significant in {counted(known.comparisons, 'test')})"


def _point(ratio: float, words: tuple[str, str]) -> str:
    """Return a difference without its interval."""
    direction, factor = (words[1], ratio) if ratio >= 1 else (words[0], 1 / ratio)
    if factor < 1 + PERCENT_BELOW:
        return f"{100 * (factor - 1):.1f} % {direction}"
    return f"{factor:,.{2 if factor < DECIMALS_BELOW else 0}f} × {direction}"


def _changed(is_less: bool, ratio: float, low: float, high: float, words: tuple[str, str]) -> str:
    """Return a difference with its interval, as a percentage near 1."""
    if is_less:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    direction = words[0 if is_less else 1]
    if ratio < 1 + PERCENT_BELOW:
        return f"{_with_ends(100 * (ratio - 1), 100 * (low - 1), 100 * (high - 1), 1, nothing=0)} % {direction}"
    return f"{_with_ends(ratio, low, high, 2, nothing=1)} × {direction}"


def _with_ends(point: float, low: float, high: float, places: int, *, nothing: float) -> str:
    """Return ``1.42 ± 0.03``, or ``1.56 [1.23, 1.96]`` where one half is much longer or would reach `nothing`."""
    halves = point - low, high - point
    places = 0 if point >= DECIMALS_BELOW else places
    places = min(3, max(places, decimals(max(halves), 1))) if max(halves) > 0 else places
    if max(halves) > min(LOPSIDED * max(min(halves), 10.0**-places), point - nothing):
        return f"{point:,.{places}f} [{low:,.{places}f}, {high:,.{places}f}]"
    return f"{point:.{places}f} ± {max(halves):.{places}f}"


def _widest(low: float, high: float) -> float:
    """Return how far the interval reaches from 1 in percent, rounded away from zero where it is shown."""
    widest = round(100 * (max(high, 1 / low) - 1), 9) if low > 0 else math.inf
    if widest > PERCENT_UNWIELDY:
        return widest
    return math.ceil(10 * widest) / 10 if widest < 3 else math.ceil(widest)  # noqa: PLR2004 - a digit more when small
