"""Marks of a launch: what happened in it that a reader of its number should know."""

from __future__ import annotations

from kit.profile.brief import AnyCell, LaunchSummaryBrief, launches_of
from kit.profile.schema import LaunchSummary
from kit.stats.launch_summary import AUTOCORRELATION_WARN

MARKED_VERDICTS = frozenset({"slowdown", "no_steady_state"})


def marks_of(result: AnyCell) -> dict[int, list[str]]:
    """Round -> marks of its launch (most have none), for every finished launch."""
    launches = launches_of(result)
    happened = {
        "recompiled": frozenset(launches.recompiled),
        "graph breaks": frozenset(launches.graph_broken),
        "throttled": frozenset(launches.throttled),
        "GPU throttled": frozenset(number for number, why in launches.gpu_throttled_by.items() if why),
    }
    summaries = {summary.round: summary for summary in result.launch_summaries}
    return {
        round_number: [mark for mark, rounds in happened.items() if round_number in rounds]
        + _of_summary(summaries.get(round_number))
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
