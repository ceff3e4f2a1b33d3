"""Marks of a launch: what happened in it that a reader of its number should know."""

from __future__ import annotations

from kit.profile.brief import AnyCell, LaunchSummaryBrief, launches_of
from kit.profile.launches_brief import LaunchesBrief
from kit.profile.schema import LaunchSummary
from kit.stats.launch_summary import AUTOCORRELATION_WARN

MARKED_VERDICTS = frozenset({"slowdown", "no_steady_state"})


def marks_of(result: AnyCell) -> dict[int, list[str]]:
    """Round -> marks of its launch (most have none), for every finished launch."""
    launches = launches_of(result)
    summaries = {summary.round: summary for summary in result.launch_summaries}
    return {
        round_number: _of_launch(launches, round_number) + _of_summary(summaries.get(round_number))
        for round_number in launches.finished
    }


def any_marks(result: AnyCell) -> bool:
    """Whether a launch of the cell may have a mark: quicker than to look for all of them."""
    launches = launches_of(result)
    if launches.recompiled or launches.graph_broken or launches.throttled or any(launches.gpu_throttled_by.values()):
        return True
    for summary in result.launch_summaries:
        correlation = summary.autocorrelation
        if (
            summary.contended
            or summary.verdict in MARKED_VERDICTS
            or (correlation is not None and correlation > AUTOCORRELATION_WARN)
        ):
            return True
    return False


def _of_launch(launches: LaunchesBrief, round_number: int) -> list[str]:
    marks = []
    if round_number in launches.recompiled:
        marks.append("recompiled")
    if round_number in launches.graph_broken:
        marks.append("graph breaks")
    if round_number in launches.throttled:
        marks.append("throttled")
    if launches.gpu_throttled_by.get(round_number):
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
