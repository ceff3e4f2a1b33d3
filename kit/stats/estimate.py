"""An estimate: how far two cells are apart, or a cell's own level; and what a family of estimates says of each.

A round starts every process afresh, so its ratio is one independent observation; blocks and steps within it are not.
Student's t on the logarithms of ratios, or on plain differences, gave 5.3, 5.8 and 5.4 % false alarms with 3, 4 and 5
rounds on 57 real rounds, at a nominal 5 %.

Verdicts of a family: "same" where the difference is shown to be smaller than the smallest that matters (two one-sided
tests, Schuirmann 1987, adjusted by Holm 1979); else one of the metric's two words, "faster" or "slower", where p
against no difference, adjusted within the family, is at most ALPHA, however small the difference is; else "unresolved",
and the interval says what is known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist, fmean
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

# The version of the rule is in every output: another rule may judge the same rounds otherwise. With `--all-cycles`,
# cycles that others disturbed count like all others.
RULE, RULE_OF_ALL_CYCLES = "rounds-4", "rounds-4-all-cycles"
# Nobody changes a framework for less, and what a cell's neighbors cost it is of that size.
SMALLEST_DIFFERENCE = 0.01
# Two rounds have one degree of freedom: their interval is thirteen times their spread and their verdicts luck.
ROUNDS_FOR_VERDICT = 3
# Below, tables say "preliminary". It is also the first look of --until-precision: with a look after each round from
# the 3rd on intervals cover 90 % of the time, from the 8th 93 to 95 %.
ROUNDS_PRELIMINARY = 8
# Nobody waits for more, and the spread of a few rounds does not foretell so many.
ROUNDS_FORESEEN = 1000
ALPHA = 0.05
# Both one-sided tests at ALPHA are one two-sided interval at this level.
SAME_LEVEL = 1 - 2 * ALPHA
# With two rounds that lie far apart an interval's end would overflow. exp(700) is 10^304.
EXPONENT_MAX = 700.0
# Words of a smaller and of a larger time.
TIME_WORDS = ("faster", "slower")
# Terms that the continued fraction needs at most: about the square root of the larger parameter, and it converges fast.
TERMS, NEWTON_STEPS = 10_000, 200
TINY = 1e-300
PRECISION = 1e-14

Unit = Literal["round", "pair", "session", "run"]
SlowerBy = Literal["slower", "not_slower", "unresolved"]


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """One cell against another by a metric. A ratio of times below 1 is faster; NaN and null: not known."""

    verdict: str = "unresolved"  # or "same", or a word of the metric
    ratio: float | None = None
    low: float | None = None  # ends of the interval of the ratio, or the difference; null: too few rounds or runs
    high: float | None = None
    level: float | None = None  # of the interval, 0.95 and more: what the family's adjustment leaves
    p_adjusted: float | None = None  # within the family; null where it was not tested
    comparisons: int = 0  # how many of its family were tested; p is adjusted for them
    unit: Unit = "round"  # rounds of one run; pairs of runs that alternate; sessions of runs that do not; runs
    count: int = 0  # of these; of sessions or runs, on the smaller side. 0: nothing is in common
    # Mean, error and degrees of freedom of the log-ratio, or the difference; limits on slow-downs are tested with them.
    mean_log: float = math.nan
    se_log: float = math.nan
    df: float = math.nan
    modes: tuple[float, float] | None = None  # the two ratios that the rounds or cycles change between
    contention_pct: float | None = (
        None  # what other programs took where no cycle counts, or beside unlike cells: no verdict
    )
    is_spread_assumed: bool = False  # how much sessions differ is taken from `kit.stats.sessions.SESSIONS_SD`
    difference: float | UnsetType = UNSET  # of a metric that is compared by its difference; it has no ratio

    @property
    def is_bimodal(self) -> bool:
        """Whether two ratios are what is said of it, and no verdict."""
        return self.modes is not None and self.contention_pct is None and self.ratio is not None

    @property
    def has_interval(self) -> bool:
        """Whether its standard error is known."""
        return self.se_log == self.se_log

    def p(self, against: float = 0.0) -> float:
        """Return the two-sided p against a mean of `against`. Without any spread it is 1 there and 0 elsewhere."""
        distance = abs(self.mean_log - against)
        if self.se_log == 0:
            return 1.0 if distance == 0 else 0.0
        return 2 * t_below(self.df, -distance / self.se_log)

    def half_width(self, level: float) -> float:
        """Return half the width of the two-sided interval of the mean."""
        return t_quantile(self.df, 0.5 + level / 2) * self.se_log

    def log_interval(self, level: float = 1 - ALPHA) -> tuple[float, float]:
        """Return both ends of the two-sided interval of the mean."""
        half = self.half_width(level)
        return self.mean_log - half, self.mean_log + half

    def interval(self, level: float = 1 - ALPHA) -> tuple[float, float]:
        """Return both ends of the two-sided interval of the ratio, or the difference."""
        low, high = self.log_interval(level)
        return (low, high) if self.difference is not UNSET else (bounded_exp(low), bounded_exp(high))

    def at_level(self, level: float) -> Estimate:
        """Return it with its interval at another level."""
        low, high = self.interval(level)
        return replace(self, low=low, high=high, level=level)

    def inverted(self, words: tuple[str, str] = TIME_WORDS) -> Estimate:
        """Return what is so of the second cell against the first; `words` are the metric's."""
        ends = [None if end is None else 1 / end if self.difference is UNSET else -end for end in (self.high, self.low)]
        return replace(
            self,
            verdict=words[1 - words.index(self.verdict)] if self.verdict in words else self.verdict,
            ratio=None if self.ratio is None else 1 / self.ratio,
            low=ends[0],
            high=ends[1],
            mean_log=-self.mean_log,
            modes=None if self.modes is None else (1 / self.modes[1], 1 / self.modes[0]),
            difference=UNSET if self.difference is UNSET else -self.difference,
        )


def bounded_exp(log: float) -> float:
    """Return e to the power of `log`, finite."""
    return math.exp(max(-EXPONENT_MAX, min(EXPONENT_MAX, log)))


def estimate(
    mean: float,
    se: float = math.nan,
    df: float = math.nan,
    count: int = 1,
    unit: Unit = "round",
    *,
    is_log: bool = True,
) -> Estimate:
    """Return the estimate of a mean of logarithms, or of plain differences; with its 95 % interval if `se` is known."""
    point = {"ratio": bounded_exp(mean)} if is_log else {"difference": mean}
    known = Estimate(**point, mean_log=mean, se_log=se, df=df, count=count, unit=unit)  # type: ignore[arg-type]
    return known.at_level(1 - ALPHA) if known.has_interval else known


def over(values: Iterable[float], *, is_log: bool = True) -> Estimate:
    """Return the estimate of the mean of independent observations. One gives no interval, and none gives nothing."""
    known = [*values]
    se = standard_error(known)
    if se is None:
        return estimate(known[0], is_log=is_log) if known else Estimate()
    return estimate(fmean(known), se, len(known) - 1.0, len(known), is_log=is_log)


def standard_error(values: Collection[float]) -> float | None:
    """Return the standard error of the mean of independent observations; None below two of them."""
    count = len(values)
    if count < 2:  # noqa: PLR2004 - a spread
        return None
    mean = fmean(values)
    return math.sqrt(sum([(value - mean) ** 2 for value in values]) / (count - 1) / count)


def rounds_for(known: Estimate, half_width: float, level: float) -> int | None:
    """Return how many rounds give the interval of the mean logarithm, at `level`, that half width, above 0.

    `known` is of two such rounds and more. The answer is at least ROUNDS_PRELIMINARY, and None beyond ROUNDS_FORESEEN.
    """
    sd, p = known.se_log * math.sqrt(known.count), 0.5 + level / 2
    candidates = range(ROUNDS_PRELIMINARY, ROUNDS_FORESEEN + 1)
    return next((n for n in candidates if t_quantile(n - 1.0, p) * sd / math.sqrt(n) <= half_width), None)


def precise_enough(log_ratios: Sequence[float], precision_pct: float) -> bool:
    """Return whether the 95 % interval is within ± `precision_pct` of the ratio; never before the first look."""
    known = over(log_ratios)
    return known.count >= ROUNDS_PRELIMINARY and known.half_width(1 - ALPHA) <= math.log1p(precision_pct / 100)


def judge(
    family: Sequence[Estimate],
    *,
    words: tuple[str, str] = TIME_WORDS,
    matters: float | Sequence[float] = math.log1p(SMALLEST_DIFFERENCE),
    chosen_among: int = 1,
) -> list[Estimate]:
    """Judge estimates as one family, in the order given; the false discovery rate within it is `ALPHA`.

    Args:
        family: those without an interval, of too few rounds, or with `contention_pct` are returned as they are.
        words: verdict on a mean below and above 0.
        matters: the smallest difference that matters, of each or of all. On the logarithm a ratio and its inverse are
            alike.
        chosen_among: each was the most distant of so many, which are not here.

    Returns:
        Intervals of those with an adjusted p of at most ALPHA are at 1 - ALPHA * R / m, R of m being selected: of the
        intervals shown with a difference at most ALPHA miss (false coverage rate, Benjamini and Yekutieli 2005,
        10.1198/016214504000001907), and none of them includes 1. The others' are at 1 - ALPHA.
    """
    limits = [matters] * len(family) if isinstance(matters, float) else list(matters)
    judged = list(family)
    tested = [
        index
        for index, known in enumerate(family)
        if known.has_interval
        and known.contention_pct is None
        and (known.unit not in ("round", "run") or known.count >= ROUNDS_FOR_VERDICT)
    ]
    is_same = [p <= ALPHA for p in holm([p_equivalent(family[index], limits[index]) for index in tested])]
    p_values = [min(1.0, family[index].p() * chosen_among) for index in tested]
    # What is the same rejects nothing beside it: without this a false alarm would ride on the small differences found.
    differing = adjusted_p([1.0 if same else p for same, p in zip(is_same, p_values, strict=True)])
    selected_level = 1 - ALPHA * sum(p <= ALPHA for p in differing) / max(1, len(tested))
    for index, same, p, p_differing in zip(tested, is_same, adjusted_p(p_values), differing, strict=True):
        known, differs = family[index], p_differing <= ALPHA
        verdict = "same" if same else words[known.mean_log > 0] if differs else "unresolved"
        known = known.at_level(selected_level if differs else 1 - ALPHA)
        p_shown = p if same else p_differing
        judged[index] = replace(known, verdict=verdict, p_adjusted=p_shown, comparisons=len(tested))
    return judged


def p_equivalent(known: Estimate, matters: float) -> float:
    """Return the p against a difference of `matters` and more, in either direction (Schuirmann 1987)."""
    mean = known.mean_log
    return known.p(math.copysign(matters, mean)) / 2 if abs(mean) < matters else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted so that one wrong rejection in the family is as rare as of one (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    scaled = (p_values[index] * (len(order) - rank) for rank, index in enumerate(order))
    adjusted = dict(zip(order, accumulate(scaled, max), strict=True))
    return [min(1.0, adjusted[index]) for index in range(len(order))]


def adjusted_p(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for the false discovery rate (Benjamini and Hochberg 1995), in the order given."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    scaled = (p_values[index] * len(order) / (len(order) - rank) for rank, index in enumerate(order))
    adjusted = dict(zip(order, accumulate(scaled, min), strict=True))
    return [min(1.0, adjusted[index]) for index in range(len(order))]


def slower_by_more_than(rows: Sequence[Estimate | None], pct: float) -> list[SlowerBy]:
    """Answer --fail-if-slower for each row: shown to be slower by more, shown not to be, or neither.

    Args:
        rows: None: nothing to judge by. Below two degrees of freedom nothing is shown.
        pct: slower by that much is allowed.

    Returns:
        "slower" where the one-sided p against `pct`, adjusted over all rows, is at most ALPHA: of many rows that are
        all alike, one is called slower in at most one of twenty comparisons. "not_slower" where the one-sided 95 %
        upper bound is within `pct`: that all rows pass needs no adjustment, as each of them has to.
    """
    allowed = math.log1p(pct / 100)
    judged = {index: row for index, row in enumerate(rows) if row is not None and row.df >= ROUNDS_FOR_VERDICT - 1}
    halves = {index: row.p(allowed) / 2 for index, row in judged.items()}
    beyond = [half if judged[index].mean_log > allowed else 1 - half for index, half in halves.items()]
    answers: list[SlowerBy] = ["unresolved"] * len(rows)
    for (index, row), p in zip(judged.items(), adjusted_p(beyond), strict=True):
        if p <= ALPHA:
            answers[index] = "slower"
        elif row.log_interval(SAME_LEVEL)[1] <= allowed:
            answers[index] = "not_slower"
    return answers


def t_below(df: float, t: float) -> float:
    """Return the probability of a value of Student's t below `t`.

    SciPy has it and the quantile, but importing it takes longer than all else that `kit compare` does.

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
    for _ in range(NEWTON_STEPS):
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
