"""Student's t: its distribution and its quantiles, of any positive number of degrees of freedom.

SciPy has both; importing them there takes longer than all else that `kit compare` does.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

# Terms that the continued fraction needs at most: about the square root of the larger parameter, and it converges fast.
TERMS = 10_000
STEPS = 200
TINY = 1e-300
PRECISION = 1e-14


def t_below(df: float, t: float) -> float:
    """Return the probability of a value below `t`.

    Args:
        df: degrees of freedom, above 0.
        t: finite or not.
    """
    if math.isnan(t) or math.isinf(t):
        return t if math.isnan(t) else float(t > 0)
    tail = _incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t)) / 2
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=1024)
def t_quantile(df: float, p: float) -> float:
    """Return the value below which a share `p` lies, 0 < p < 1; both ends of an interval differ in sign alone."""
    if p <= 0.5:  # noqa: PLR2004 - the median
        return -t_quantile(df, 1 - p) if p < 0.5 else 0.0  # noqa: PLR2004
    # Above the median the distribution is concave, and a normal quantile is below Student's: Newton's steps stay below.
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    t = NormalDist().inv_cdf(p)
    for _ in range(STEPS):
        density = math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))
        step = (t_below(df, -t) - (1 - p)) / density
        t += step
        if step <= PRECISION * t:  # rounding has the last word
            break
    return t


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularized incomplete beta function at `x`, given 1 - x (Lentz's fraction; DLMF 8.17.22)."""
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, rest, x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or TINY)
            c = (1 + term / c) or TINY
            fraction *= c * d
        if abs(c * d - 1) < PRECISION:
            break
    return front * fraction
