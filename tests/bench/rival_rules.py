"""What the rules of other tools would say of the same launches: each as its own source has it, on what it would see.

None of them knows launches: steps of all launches of a side are thrown together, or the side is one number. The kit's
own rule is `kit.stats.estimate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Said = Literal["faster", "slower", "same"]
"""Of the candidate. "same": the rule reports no difference."""

Launches = Sequence[NDArray[np.float64]]
"""Of one side: the timed steps of each launch, nanoseconds."""

# pyperf._utils.tdist95conf_level: degrees of freedom from which each critical value holds; below, a table of Student's
# quantiles that is exact to its three decimals.
PYPERF_TABLE = ((200, 1.960), (100, 1.984), (80, 1.990), (60, 2.000), (50, 2.009), (40, 2.021), (31, 2.042))
# pyperf.Runner: by default each process gives three values, the mean of many rounds each.
PYPERF_VALUES_PER_PROCESS = 3
# The example in the help of --benchmark-compare-fail is min:5%; here the median, as for the others.
PYTEST_BENCHMARK_FAIL_PCT = 5.0
# torch.utils.benchmark.utils.compare._Row.color_segment: what is within these of the best is marked best, too.
TORCH_BEST_RATIO = 1.01
TORCH_BEST_NS = 100.0
MANN_WHITNEY_ALPHA = 0.05


def pyperf(candidate: Launches, baseline: Launches) -> Said:
    """`pyperf compare_to` on every step: Student's pooled t test at 95 % (`pyperf._utils.is_significant`, 2.10).

    pyperf refuses sides of unequal length, and then reports them as significant. Here the longer one is cut instead.
    """
    return _pooled_t(np.concatenate(candidate), np.concatenate(baseline))


def pyperf_as_it_runs(candidate: Launches, baseline: Launches) -> Said:
    """The same test on three values a launch, each the mean of a third of its steps: what pyperf itself would keep."""
    return _pooled_t(_values(candidate), _values(baseline))


def pytest_benchmark(candidate: Launches, baseline: Launches) -> Said:
    """`--benchmark-compare-fail=median:5%` (`pytest_benchmark.utils.PercentageRegressionCheck`); never "faster"."""
    candidate_median, baseline_median = _pooled_median(candidate), _pooled_median(baseline)
    return "slower" if candidate_median / baseline_median * 100 - 100 > PYTEST_BENCHMARK_FAIL_PCT else "same"


def torch_compare(candidate: Launches, baseline: Launches) -> Said:
    """`torch.utils.benchmark.Compare` with `colorize`: the merged median that is not marked best is slower.

    Two that are both within 1 %, or 100 ns, of the best are marked alike.
    """
    candidate_median, baseline_median = _pooled_median(candidate), _pooled_median(baseline)
    best = min(candidate_median, baseline_median)
    if max(candidate_median, baseline_median) <= max(best * TORCH_BEST_RATIO, best + TORCH_BEST_NS):
        return "same"
    return "slower" if candidate_median > baseline_median else "faster"


def mann_whitney(candidate: Launches, baseline: Launches) -> Said:
    """`scipy.stats.mannwhitneyu` on every step, p below 0.05."""
    from scipy.stats import mannwhitneyu

    candidate_values, baseline_values = np.concatenate(candidate), np.concatenate(baseline)
    if float(mannwhitneyu(candidate_values, baseline_values).pvalue) >= MANN_WHITNEY_ALPHA:
        return "same"
    return "slower" if np.median(candidate_values) > np.median(baseline_values) else "faster"


def _pooled_t(candidate: NDArray[np.float64], baseline: NDArray[np.float64]) -> Said:
    values = min(candidate.size, baseline.size)
    candidate_values, baseline_values = candidate[:values], baseline[:values]
    difference = float(candidate_values.mean() - baseline_values.mean())
    # Equal sides: the pooled variance is the mean of the two.
    error = math.sqrt(float(candidate_values.var(ddof=1) + baseline_values.var(ddof=1)) / values)
    if abs(difference) < _critical(2 * values - 2) * error or difference == 0:
        return "same"
    return "slower" if difference > 0 else "faster"


def _critical(degrees_of_freedom: int) -> float:
    return next(
        (t for least, t in PYPERF_TABLE if degrees_of_freedom >= least), float(stdtrit(degrees_of_freedom, 0.975))
    )


def _values(launches: Launches) -> NDArray[np.float64]:
    return np.array([third.mean() for steps in launches for third in np.array_split(steps, PYPERF_VALUES_PER_PROCESS)])


def _pooled_median(launches: Launches) -> float:
    return float(np.median(np.concatenate(launches)))
