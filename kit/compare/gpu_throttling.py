"""Whether a GPU was slowed while a cell's launches computed on it."""

from __future__ import annotations

from kit.profile.brief import AnyCell


def gpu_throttled_by(result: AnyCell) -> dict[int, list[str]]:
    """Round -> why, in words, for every launch of which it is known.

    None of a cell that computed elsewhere: there a slowed GPU says nothing of its steps.
    """
    if result.cell.device != "gpu":
        return {}
    return {
        launch.round: launch.utilization.gpu_throttled_by
        for launch in result.launches
        if launch.utilization is not None and launch.utilization.gpu_throttled_by is not None
    }
