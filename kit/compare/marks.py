"""Marks of a launch: what happened in it that a reader of its number should know."""

from __future__ import annotations

from kit.compare.gpu_throttling import gpu_throttled_by
from kit.profile.brief import AnyCell, LaunchBrief, LaunchSummaryBrief
from kit.profile.launch import Launch
from kit.profile.schema import LaunchSummary
from kit.stats.launch_summary import AUTOCORRELATION_WARN

MARKED_VERDICTS = frozenset({"slowdown", "no_steady_state"})


def marks_of(result: AnyCell) -> dict[int, list[str]]:
    """Round -> marks of its launch (most have none), for every finished launch."""
    summaries = {summary.round: summary for summary in result.launch_summaries}
    slowed_by = gpu_throttled_by(result)
    return {
        launch.round: _of_launch(launch, slowed_by.get(launch.round)) + _of_summary(summaries.get(launch.round))
        for launch in result.launches
        if launch.failure is None
    }


def any_marks(result: AnyCell) -> bool:
    """Whether a launch of the cell may have a mark: quicker than to look for all of them."""
    for launch in result.launches:
        used = launch.utilization
        if launch.recompiles or launch.graph_breaks or (used is not None and used.throttled_ns):
            return True
    for summary in result.launch_summaries:
        correlation = summary.autocorrelation
        if (
            summary.contended
            or summary.verdict in MARKED_VERDICTS
            or (correlation is not None and correlation > AUTOCORRELATION_WARN)
        ):
            return True
    return any(gpu_throttled_by(result).values())


def _of_launch(launch: Launch | LaunchBrief, gpu_slowed_by: list[str] | None) -> list[str]:
    marks = []
    if launch.recompiles:
        marks.append("recompiled")
    if launch.graph_breaks:
        marks.append("graph breaks")
    if launch.utilization is not None and launch.utilization.throttled_ns:
        marks.append("throttled")
    if gpu_slowed_by:
        marks.append("GPU throttled")
    return marks


def _of_summary(summary: LaunchSummary | LaunchSummaryBrief | None) -> list[str]:
    marks: list[str] = []
    if summary is None:
        return marks
    if summary.autocorrelation is not None and summary.autocorrelation > AUTOCORRELATION_WARN:
        marks.append("correlated steps")
    if summary.contended:
        marks.append("contended")
    if summary.verdict in MARKED_VERDICTS:
        marks.append(summary.verdict.replace("_", " "))
    return marks
