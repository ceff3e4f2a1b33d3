"""A verdict as people say it: ``2.31× faster [2.20, 2.42]``."""

from __future__ import annotations

from kit.compare.rows import Row, Versus
from kit.report.footnotes import Footnotes
from kit.report.plain import NONE, one_line
from kit.report.quantity import WIDE, signed_percent, times
from kit.stats.verdict import LAUNCHES_TO_PLAN, LAUNCHES_TO_SETTLE_MAX

# A time ratio this close to 1 is read as a percentage, a larger one as "times".
PERCENT_BELOW = 0.1
# An interval that reaches beyond doubling or halving is not read in percent.
PERCENT_UNWIELDY = 2.0
DIGITS = 3


def verdict_words(row: Row, footnotes: Footnotes) -> str:
    """What stands in the verdict column."""
    if row.is_baseline:
        return "baseline"
    if row.problem is not None:
        return NONE
    if row.versus is None:
        return f"no verdict{footnotes.mark(row.no_verdict or 'no baseline')}"
    forced = "" if row.forced is None else f" FORCED: {one_line(row.forced)}"
    return _versus_words(row.versus, footnotes) + _rounds(row) + forced


def _rounds(row: Row) -> str:
    """Where fewer launches count than the row has: the others' rounds have no steady partner."""
    versus = row.versus
    if versus is None or not versus.paired or not 0 < versus.launches < row.launches:
        return ""
    return f" in {versus.launches} common rounds"


def _versus_words(versus: Versus, footnotes: Footnotes) -> str:
    if versus.time_ratio is None or versus.time_ratio_low is None or versus.time_ratio_high is None:
        needed = "two rounds in which both are steady" if versus.paired else "two steady launches a side"
        return f"unresolved{footnotes.mark(f'a difference needs at least {needed}')}"
    if versus.verdict in ("faster", "slower"):
        return _changed(versus.verdict, versus.time_ratio, versus.time_ratio_low, versus.time_ratio_high)
    low, high = versus.time_ratio_low, versus.time_ratio_high
    if versus.verdict == "same":
        return f"same {_interval(low, high)}"
    # An interval that reaches that far says nothing that "unresolved" does not.
    unwieldy = low * PERCENT_UNWIELDY < 1 or high > PERCENT_UNWIELDY
    return f"unresolved{'' if unwieldy else f' {_interval(low, high)}'}{_needs(versus)}"


def _changed(verdict: str, ratio: float, low: float, high: float) -> str:
    """Near 1, the change of step time in percent; further off, how many times."""
    if abs(ratio - 1) < PERCENT_BELOW:
        return f"{100 * abs(ratio - 1):.1f} % {verdict} {_interval(low, high)}"
    if verdict == "faster":
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    if high > WIDE * low:
        return f"{times(ratio, DIGITS)}× {verdict} [at least {times(low, DIGITS)}]"
    # A tight interval gets the digits that show it.
    digits = DIGITS if times(low, DIGITS) != times(high, DIGITS) else DIGITS + 1
    return f"{times(ratio, digits)}× {verdict} [{times(low, digits)}, {times(high, digits)}]"


def _interval(low: float, high: float) -> str:
    """In percent of step time, or as a factor of it where percents would be unwieldy."""
    if max(high, 1 / low) > PERCENT_UNWIELDY:
        return f"[{times(low, DIGITS)}, {times(high, DIGITS)}]×"
    return f"[{signed_percent(low)}, {signed_percent(high)}] %"


def _needs(versus: Versus) -> str:
    if versus.launches_to_settle is not None:
        return f" (needs ~{versus.launches_to_settle})"
    return " (needs more)" if versus.launches < LAUNCHES_TO_PLAN else f" (not by {LAUNCHES_TO_SETTLE_MAX})"
