"""Marks of a launch: what happened in it that a reader of its number should know."""

from __future__ import annotations

from kit.profile.launch import Launch
from kit.profile.schema import CellResult, LaunchSummary
from kit.stats.launch_summary import AUTOCORRELATION_WARN


def marks_of(result: CellResult) -> dict[int, list[str]]:
    """Round -> marks of its launch (most have none), for every finished launch."""
    summaries = {summary.round: summary for summary in result.launch_summaries}
    return {
        launch.round: _marks(launch, summaries.get(launch.round))
        for launch in result.launches
        if launch.failure is None
    }


def _marks(launch: Launch, summary: LaunchSummary | None) -> list[str]:
    marks = []
    if launch.recompiles:
        marks.append("recompiled")
    if launch.graph_breaks:
        marks.append("graph breaks")
    if launch.utilization is not None and launch.utilization.throttled_ns:
        marks.append("throttled")
    if summary is not None and summary.autocorrelation is not None and summary.autocorrelation > AUTOCORRELATION_WARN:
        marks.append("correlated steps")
    if summary is not None and summary.verdict in ("slowdown", "no_steady_state"):
        marks.append(summary.verdict.replace("_", " "))
    return marks
