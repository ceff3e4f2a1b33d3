"""What the hardware self-test says of one thing: passed, failed, or could not be checked, with its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from kit.profile.reason import Reason, Value, reason
from kit.stats.difference import Difference, over_rounds


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


def within(code: str, subject: str, log_ratios: Sequence[float], limit_pct: float, **values: Value) -> Check:
    """Return whether a ratio is shown to be within ± `limit_pct` of 1: its 95 % interval lies inside; or is shown not
    to be: it lies outside. In between the machine was too noisy to tell.
    """
    difference = over_rounds(log_ratios)
    if difference is None:
        return not_checked(code, subject, reason("too_few_blocks"))
    return of_difference(code, subject, difference, limit_pct, values)


def of_difference(
    code: str, subject: str, difference: Difference, limit_pct: float, values: Mapping[str, Value]
) -> Check:
    """Return the same of a difference."""
    low, high = difference.log_interval()
    limit = math.log1p(limit_pct / 100)
    shown = dict(values) | {"difference_pct": 100 * math.expm1(difference.mean_log), "limit_pct": limit_pct}
    shown["half_width_pct"] = 100 * (high - low) / 2
    if -limit <= low and high <= limit:
        return judged(code, subject, is_right=True, **shown)
    if low > limit or high < -limit:
        return judged(code, subject, is_right=False, **shown)
    noise = reason("too_noisy", difference_pct=shown["difference_pct"], half_width_pct=shown["half_width_pct"])
    return Check(code=code, subject=subject, status="not_checked", values=shown, reason=noise)
