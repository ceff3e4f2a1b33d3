"""What sampling costs: step time with the sampler running over step time with it stopped, pair by pair of blocks.

A pair's blocks are neighbours in time, so drift falls out; which of them comes first alternates (ABBA). The geometric
mean of the pairs' ratios with its t-interval is the paired t test on logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence

from kit.profile.launch import Launch
from kit.profile.schema import Estimate, ObserverOverhead
from kit.stats.interval import geometric_estimate


def not_yet_run(cell_key: str) -> ObserverOverhead:
    """Of a cell whose launch was to make the test and has not run."""
    return _overhead(cell_key, None, None, "the launch that was to make it has not run")


def observer_overhead(launch: Launch) -> ObserverOverhead:
    """Of a launch that was asked for the test; null ratios, with the reason, where it gave no pairs of blocks."""
    blocks = launch.observer
    if blocks is None:
        reason = launch.failure.in_words if launch.failure is not None else "the launch recorded no blocks"
        return _overhead(launch.cell_key, None, None, reason)
    median, mean = _ratio(blocks.on_ns, blocks.off_ns), _ratio(blocks.on_mean_ns, blocks.off_mean_ns)
    return _overhead(launch.cell_key, median, mean, blocks.reason)


def _ratio(on_ns: Sequence[int], off_ns: Sequence[int]) -> Estimate | None:
    return geometric_estimate([on / off for on, off in zip(on_ns, off_ns, strict=True)])


def _overhead(cell_key: str, median: Estimate | None, mean: Estimate | None, reason: str | None) -> ObserverOverhead:
    return ObserverOverhead(
        cell_key=cell_key,
        ratio=None if median is None else median.value,
        low=None if median is None else median.low,
        high=None if median is None else median.high,
        mean_ratio=None if mean is None else mean.value,
        mean_low=None if mean is None else mean.low,
        mean_high=None if mean is None else mean.high,
        pairs=0 if median is None else median.launches,
        reason=reason,
    )
