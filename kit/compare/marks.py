"""Marks of a launch: what happened in it that a reader of its number should know."""

from __future__ import annotations

from kit.profile.brief import AnyCell, LaunchSummaryBrief, launches_of
from kit.profile.schema import LaunchSummary
from kit.stats.launch_summary import AUTOCORRELATION_WARN

MARKED_VERDICTS = frozenset({"slowdown", "no_steady_state"})


def marks_of(result: AnyCell) -> dict[int, list[str]]:
    """Round -> marks of its launch, for every finished launch that has any."""
    launches = launches_of(result)
    marks: dict[int, list[str]] = {}
    for mark, rounds in (
        ("recompiled", launches.recompiled),
        ("graph breaks", launches.graph_broken),
        ("throttled", launches.throttled),
        ("GPU throttled", [number for number, why in launches.gpu_throttled_by.items() if why]),
    ):
        for number in rounds:
            marks.setdefault(number, []).append(mark)
    for summary in result.launch_summaries:
        if own := _of_summary(summary):
            marks.setdefault(summary.round, []).extend(own)
    finished = frozenset(launches.finished) if marks else ()
    return {number: own for number, own in marks.items() if number in finished}


def _of_summary(summary: LaunchSummary | LaunchSummaryBrief) -> list[str]:
    marks = []
    if summary.autocorrelation is not None and summary.autocorrelation > AUTOCORRELATION_WARN:
        marks.append("correlated steps")
    if summary.contended:
        marks.append("contended")
    if summary.verdict in MARKED_VERDICTS:
        marks.append(summary.verdict.replace("_", " "))
    return marks
