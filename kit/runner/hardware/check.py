"""What the hardware self-test says of one thing: passed, failed, or could not be checked, with its numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from kit.profile.reason import Reason, Value, reason
from kit.stats.estimate import Estimate, estimate

NO_NUMBER = reason("no_number")
# Blocks are doubled until a check is decided: so often, and while the next look would end within so long.
LOOKS, DECIDE_S = 4, 40.0
# Each look has a chance of its own to err: together they err as one interval of 95 %.
LEVEL = 1 - 0.05 / LOOKS
# A mean nearer to its limit than this would take forever to decide.
CLOSE_SHARE = 0.1


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one subject."""

    code: str
    subject: str  # a board, a framework, or both
    status: Literal["pass", "fail", "not_checked"]
    values: dict[str, Value] = {}
    reason: Reason | None = None  # why it could not be checked


def judged(code: str, subject: str, is_right: bool, **values: Value) -> Check:
    """Return a check that passed or failed."""
    return Check(code=code, subject=subject, status="pass" if is_right else "fail", values=values)


def not_checked(code: str, subject: str, why: Reason) -> Check:
    """Return one that lacks what it needs."""
    return Check(code=code, subject=subject, status="not_checked", reason=why)


def until_decided(
    code: str, subject: str, measured: Callable[[int], Estimate | None], limit_pct: float, decide_s: float = DECIDE_S
) -> Check:
    """Return whether a ratio is shown to be within ± `limit_pct` of 1: its interval lies inside; or is shown not to be:
    it lies outside, in each of two looks at least. In between it is measured again, twice as long, until LOOKS or
    `decide_s` are over.

    Args:
        code: of the check.
        subject: of the check.
        measured: measures so many times the usual blocks anew, and returns the ratio; None: it has failed.
        limit_pct: of the ratio's distance from 1.
        decide_s: seconds.
    """
    looks: list[Estimate] = []
    begin_s = time.monotonic()
    for look in range(LOOKS):
        difference = measured(1 << max(0, look - 1))
        if difference is None:
            return not_checked(code, subject, reason("too_few_blocks"))
        looks.append(difference)
        taken_s = time.monotonic() - begin_s
        check = _of_difference(code, subject, _pooled(looks), limit_pct, taken_s=taken_s)
        # What disturbed one look is no fault: a second has to show it, too.
        is_seen_again = look > 0 and _is_beyond(looks, limit_pct)
        if check.status == "pass" or (check.status == "fail" and is_seen_again):
            return check
        if 2 * taken_s > decide_s and (look > 0 or check.status != "fail"):
            break
    if check.status != "fail":
        return check
    return msgspec.structs.replace(check, status="not_checked", reason=reason("not_seen_again", looks=len(looks)))


def _is_beyond(looks: Sequence[Estimate], limit_pct: float) -> bool:
    """Whether each look by itself lies beyond the limit, all on one side."""
    limit = math.log1p(limit_pct / 100)
    return all(look.mean_log > limit for look in looks) or all(look.mean_log < -limit for look in looks)


def beside(before: Estimate | None, amid: Estimate | None, after: Estimate | None) -> Estimate | None:
    """Compare a stretch with those before and after it; by how much these differ is uncertain. None: one is missing."""
    if before is None or amid is None or after is None:
        return None
    sides_se = max(math.hypot(before.se_log, after.se_log), abs(before.mean_log - after.mean_log)) / 2
    apart_log = amid.mean_log - (before.mean_log + after.mean_log) / 2
    return estimate(apart_log, math.hypot(sides_se, amid.se_log), amid.df, amid.count)


def _pooled(looks: Sequence[Estimate]) -> Estimate:
    """Return the mean of looks, each with the weight of its blocks."""
    count = sum(look.count for look in looks)
    mean_log = sum(look.count * look.mean_log for look in looks) / count
    se = math.hypot(*(look.count * look.se_log for look in looks)) / count
    return estimate(mean_log, se, sum(look.df for look in looks), count)


def _of_difference(code: str, subject: str, difference: Estimate, limit_pct: float, taken_s: float) -> Check:
    """Return the same of a difference that took so long to measure; where it decides nothing, what would."""
    low, high = difference.log_interval(LEVEL)
    limit = math.log1p(limit_pct / 100)
    half_width_pct = 100 * (high - low) / 2
    shown: dict[str, Value] = {"difference_pct": 100 * math.expm1(difference.mean_log), "limit_pct": limit_pct}
    shown |= {"half_width_pct": half_width_pct, "blocks": difference.count}
    if -limit <= low and high <= limit:
        return judged(code, subject, is_right=True, **shown)
    if low > limit or high < -limit:
        return judged(code, subject, is_right=False, **shown)
    # Intervals narrow with the root of the time; the mean is taken to stay where it is.
    distance = max(abs(abs(difference.mean_log) - limit), CLOSE_SHARE * limit)
    times = ((high - low) / 2 / distance) ** 2
    noise = reason("undecided", blocks=difference.count, taken_s=taken_s, needed_s=taken_s * max(1.0, times))
    return Check(code=code, subject=subject, status="not_checked", values=shown, reason=noise)
