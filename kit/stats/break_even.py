"""Break-even: after how many steps what was paid at the start has been earned back.

    time      a ___/          a compiles for longer, and each of its steps is shorter;
              _/  b           at n steps both have taken as long:
         ____/|               n = 1 + extra / saving
              n

The interval is Fieller's, of the ratio of two means that were measured together (Fieller 1954, "Some problems in
interval estimation", J. R. Stat. Soc. B 16).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

import msgspec

from kit.stats.estimate import ALPHA, ROUNDS_FOR_VERDICT, t_quantile

# "pays": after a number of steps that the interval bounds. "at_once": it is no dearer at the start and no slower.
# "never": its steps are not shorter. "unresolved": the rounds do not say whether they are.
BreakEvenOutcome = Literal["pays", "at_once", "never", "unresolved"]


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """After how many steps the one of two programs that compiles for longer has paid for it."""

    outcome: BreakEvenOutcome
    baseline_pays: bool = False  # the second one compiles for longer
    steps: float | None = None  # point estimate; null where it never pays
    low: float | None = None  # lower end of the 95 % interval
    high: float | None = None  # upper end; null where the rounds set none


def break_even(extra_ns: Sequence[float], saving_ns: Sequence[float], verdict: str) -> BreakEven | None:
    """Return when the program that compiles for longer has overtaken the other, or None without a common round.

    Args:
        extra_ns: in each round, by how much longer the first took to trace, compile and make the first step.
        saving_ns: in the same round, by how much shorter each of its steps is.
        verdict: "faster", "slower", "same" or "unresolved", on the first one's steps. One whose steps are slower never
            pays, and only one that is shown to be faster does.
    """
    baseline_pays = sum(extra_ns) < 0
    sign = -1 if baseline_pays else 1
    x, y, count = [sign * ns for ns in extra_ns], [sign * ns for ns in saving_ns], len(extra_ns)
    if not count:
        return None
    if verdict == ("faster" if baseline_pays else "slower"):
        return BreakEven(outcome="never", baseline_pays=baseline_pays)
    extra, saving = fmean(x), fmean(y)
    steps = 1 + extra / saving if saving > 0 and extra > 0 else None
    unresolved = BreakEven(outcome="unresolved", baseline_pays=baseline_pays, steps=steps)
    if count < ROUNDS_FOR_VERDICT or verdict != ("slower" if baseline_pays else "faster"):
        return unresolved
    t = t_quantile(count - 1, 1 - ALPHA / 2)
    # Variances and covariance of the means.
    v_x, cov, v_y = (
        sum((i - fmean(a)) * (j - fmean(b)) for i, j in zip(a, b, strict=True)) / (count - 1) / count
        for a, b in ((x, x), (x, y), (y, y))
    )
    if saving - t * math.sqrt(v_y) <= 0:
        return unresolved
    # Both ends r of extra / saving with (extra - r saving)^2 = t^2 (v_x - 2 r cov + r^2 v_y).
    a = saving**2 - t**2 * v_y
    b = extra * saving - t**2 * cov
    c = extra**2 - t**2 * v_x
    root = math.sqrt(max(0.0, b**2 - a * c))
    low, high = 1 + (b - root) / a, 1 + (b + root) / a
    if high <= 1:
        return BreakEven(outcome="at_once", baseline_pays=baseline_pays, steps=1.0, low=1.0, high=1.0)
    return BreakEven(outcome="pays", baseline_pays=baseline_pays, steps=steps or 1.0, low=max(1.0, low), high=high)
