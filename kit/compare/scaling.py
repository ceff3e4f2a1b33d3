"""Several devices on one batch: what each gives of what it gives alone, and what averaging takes of a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kit.compare.pairs import Pairs
from kit.compare.rows import Scaling, Share
from kit.profile.cell import DEFAULT_VARIANT, Cell
from kit.profile.launch import Launch
from kit.profile.schema import CellResult
from kit.stats.verdict import Versus

# More devices, and the batch or the variant that goes with them; whatever else differs is no question of scaling.
WITH_DEVICES = ("devices", "batch", "threads", "variant")


def scaling_of(
    key: str, baseline: str, results: Mapping[str, CellResult], pairs: Pairs, without_all_reduce: Collection[str]
) -> Scaling | None:
    """Return how a cell scales from its group's baseline.

    Args:
        key: of the cell.
        baseline: key of a cell with fewer devices.
        results: of the group.
        pairs: of the group.
        without_all_reduce: variants whose devices average nothing.

    Returns:
        None: the baseline has no fewer devices, or the two differ in more than what goes with devices.
    """
    cell, base = results[key].cell, results[baseline].cell
    if cell.devices <= base.devices or cell.key_without(WITH_DEVICES) != base.key_without(WITH_DEVICES):
        return None
    more = _resources(cell, results[key].launches) / _resources(base, results[baseline].launches)
    averages_nothing = cell.variant in without_all_reduce
    return Scaling(
        resources_ratio=more,
        efficiency=None if averages_nothing else _share(pairs.versus(baseline, key), more),
        all_reduce=None if averages_nothing else _all_reduce(key, results, pairs, without_all_reduce),
    )


def _all_reduce(
    key: str, results: Mapping[str, CellResult], pairs: Pairs, without_all_reduce: Collection[str]
) -> Share | None:
    """Return the share of a step that is gone where nothing is averaged; None where that was not measured."""
    cell = results[key].cell
    if cell.variant != DEFAULT_VARIANT:
        return None  # another variant's step differs in more than the all-reduce
    without = next(
        (
            other
            for other, result in results.items()
            if result.cell.variant in without_all_reduce
            and result.cell.key_without(("variant",)) == cell.key_without(("variant",))
        ),
        None,
    )
    left = None if without is None else _share(pairs.versus(without, key), 1.0)
    if left is None:
        return None
    return Share(
        value=1 - left.value,
        low=None if left.high is None else 1 - left.high,
        high=None if left.low is None else 1 - left.low,
    )


def _share(versus: Versus, of: float) -> Share | None:
    """Return the ratio of times and its interval, over `of`."""
    if versus.ratio is None:
        return None
    low, high = (None if end is None else end / of for end in (versus.low, versus.high))
    return Share(value=versus.ratio / of, low=low, high=high)


def _resources(cell: Cell, launches: Sequence[Launch]) -> float:
    """Return what a cell computes with: its devices; on a CPU, which these divide, its threads."""
    if cell.device != "cpu":
        return float(cell.devices)
    threads = (launch.threads.requested for launch in launches if launch.threads is not None)
    return float(next(threads, cell.devices))
