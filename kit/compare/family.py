"""The rows of one table, judged together: each against the baseline, and the fastest against the second.

Samples of one run are paired by round. Runs that alternate in time are paired with their neighbors; of others the
session is the unit.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from statistics import fmean

from msgspec.structs import replace

from kit.compare.metric import Metric
from kit.compare.metrics import run_level
from kit.compare.paired_ratios import contended, log_ratios, logs_by_mode, series
from kit.compare.sample import Run, Sample
from kit.stats.estimate import Estimate, judge, over
from kit.stats.modes_and_trends import slower_in_both
from kit.stats.sessions import over_runs


def contrast(metric: Metric, a: Sequence[Sample], b: Sequence[Sample]) -> Estimate:
    """Return how far the samples of one row are from those of another; it is not yet judged.

    Samples of one run are paired: one pair over its rounds, several over their runs. Others are two sides of runs.

    Args:
        metric: by which.
        a: one or more, of different runs.
        b: the same of the baseline.
    """
    is_log, by_run = metric.compare == "ratio", {sample.run: sample for sample in b}
    if pairs := [(sample, by_run[sample.run]) for sample in a if sample.run in by_run]:
        rounds = [list(log_ratios(metric, *pair).values()) for pair in pairs]
        if len(pairs) == 1:
            return over(rounds[0], is_log=is_log)
        return replace(over([fmean(logs) for logs in rounds if logs], is_log=is_log), unit="run")
    sides = [[known for sample in side if (known := run_level(metric, sample)) is not None] for side in (a, b)]
    if not all(sides):
        return Estimate(unit="session")
    apart = over_runs(
        *sides,
        same_hardware=a[0].run.hardware == b[0].run.hardware,
        same_host=same_host([sample.run for sample in (*a, *b)]),
        has_known_spread=metric.is_time,
        is_log=is_log,
    )
    # Blocks of one run meet others together; two runs do not, and without a clean cycle nothing says by how much.
    if (metric.is_time or metric.is_slowed) and any(sample.others_pct is not None for sample in (*a, *b)):
        return replace(apart, contention_pct=max(sample.taken_pct or 0.0 for sample in (*a, *b)))
    return apart


def same_host(runs: Iterable[Run]) -> bool:
    """Whether all ran on one machine; of containers, whose names are drawn anew, on like hardware."""
    return len({(run.hardware, run.host) for run in runs}) == 1


class Family:
    """Rows of one table by one metric: what is known of any of them against another.

    All pairs of ten rows would be 45 tests where nine answers are shown, and a difference of 3 % be lost in them.
    A pair that is not in the family is judged among all pairs, because somebody chose it among all.
    """

    def __init__(
        self,
        metric: Metric,
        rows: Mapping[str, Sequence[Sample]],
        baseline: str,
        *,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        self.metric, self._rows, self._baseline, self._pairs = metric, rows, baseline, pairs
        self._known: dict[tuple[str, str], Estimate] = {}

    def versus(self, key: str, other: str) -> Estimate:
        """Return what is known of the row `key` against `other`."""
        pairs = [(key, other), (other, key)]
        judged = self._judged if any(pair in self._judged for pair in pairs) else self._all_judged
        words = self.metric.words
        known = judged[key, other] if (key, other) in judged else judged[other, key].inverted(words)
        if modes := self._logs_by_mode(key, other):
            # A mean over two modes is of neither.
            low, high = sorted(math.exp(statistics.median(chain.from_iterable(rounds))) for rounds in modes)
            known = replace(known, verdict="unresolved", modes=(low, high))
        meets_others = self.metric.is_time or self.metric.is_slowed
        pairs_of_runs = self._common_runs(key, other) if meets_others else []
        taken_pct = [taken for pair in pairs_of_runs if (taken := contended(*pair)) is not None]
        return replace(known, verdict="unresolved", contention_pct=max(taken_pct)) if taken_pct else known

    def is_slower_in_both_modes(self, key: str, other: str) -> bool:
        """Return whether one row of a bimodal pair is shown to be slower than the other in each of the two modes."""
        modes = self._logs_by_mode(key, other)
        return bool(modes) and slower_in_both(modes, self.versus(key, other).comparisons)

    def _common_runs(self, key: str, other: str) -> list[tuple[Sample, Sample]]:
        """Return the samples of two rows that are of the same runs."""
        runs = {sample.run: sample for sample in self._rows[other]}
        return [(sample, runs[sample.run]) for sample in self._rows[key] if sample.run in runs]

    def _logs_by_mode(self, key: str, other: str) -> tuple[list[list[float]], ...]:
        pairs = self._common_runs(key, other)
        return logs_by_mode(self.metric, *pairs[0]) if len(pairs) == 1 else ()

    def estimate(self, key: str, other: str) -> Estimate:
        """Return how far two rows are apart, not judged."""
        if (key, other) not in self._known:
            self._known[key, other] = contrast(self.metric, self._rows[key], self._rows[other])
        return self._known[key, other]

    @cached_property
    def _judged(self) -> dict[tuple[str, str], Estimate]:
        pairs = family_of(list(self._rows), self._baseline, self.estimate) if self._pairs is None else self._pairs
        return self._judge(pairs)

    @cached_property
    def _all_judged(self) -> dict[tuple[str, str], Estimate]:
        return self._judge(list(combinations(self._rows, 2)))

    def _judge(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Estimate]:
        estimates = [self.estimate(*pair) for pair in pairs]
        matters = [self.metric.matters(self._rows[pair[1]], self._common_values(*pair)) for pair in pairs]
        return dict(zip(pairs, judge(estimates, words=self.metric.words, matters=matters), strict=True))

    def _common_values(self, key: str, other: str) -> list[float]:
        """Return the second row's values in the rounds that both have."""
        if self.metric.compare == "ratio":
            return []
        mine, yours = (
            {launch: seen.value for sample in self._rows[row] for launch, seen in series(self.metric, sample).items()}
            for row in (key, other)
        )
        return [value for launch, value in yours.items() if launch in mine]


def family_of(keys: Sequence[str], baseline: str, estimate: Callable[[str, str], Estimate]) -> list[tuple[str, str]]:
    """Return the pairs that are tested together: each row and the baseline, and the fastest two.

    Args:
        keys: of the rows.
        baseline: one of them; where it has no rounds, or is none of them, the first that has some stands for it.
        estimate: of two rows.
    """
    against: dict[str, Estimate] = {}
    for base in (baseline, *keys):
        against = {key: estimate(key, base) for key in keys if key != base} if base in keys else {}
        if any(row.count for row in against.values()):
            break
    speeds = {base: 0.0} | {key: row.mean_log for key, row in against.items() if row.count}
    fastest = sorted(speeds, key=lambda key: speeds[key])[:2]
    first_two = [(fastest[0], fastest[1])] if len(fastest) > 1 and base not in fastest else []
    return [*((key, base) for key in against), *first_two]
