"""The cells' side of one profile, in lines: how long each phase took, and each launch with its verdict."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import get_args

from kit.compare.marks import marks_of
from kit.profile.launch import Launch, PhaseName
from kit.profile.schema import CellResult, LaunchSummary
from kit.report.grid import grid
from kit.report.plain import NONE, one_line
from kit.report.quantity import duration

LAUNCH_TITLES = ["cell", "round", "verdict", "warm-up", "steady", "median", "p95", "lag-1", "CPU %", "data", "marks"]
LAUNCH_RIGHT = [False, True, False, True, True, True, True, True, True, False, False]


def phases_section(cells: Sequence[CellResult]) -> list[str]:
    """One line a cell, one column a phase that any launch has."""
    seen = {phase.name for result in cells for launch in result.launches for phase in launch.phases}
    names = [name for name in get_args(PhaseName) if name in seen]
    if not names:
        return ["no launch recorded a phase"]
    rows = [[one_line(result.key), *(_median_phase(result, name) for name in names)] for result in cells]
    return grid([["cell", *names], *rows], [False, *(True for _ in names)])


def launches_section(cells: Sequence[CellResult]) -> list[str]:
    """One line a launch."""
    rows = [row for result in cells for row in _launches(result)]
    if not rows:
        return ["none finished"]
    return grid([LAUNCH_TITLES, *rows], LAUNCH_RIGHT)


def _median_phase(result: CellResult, name: str) -> str:
    durations = [phase.duration_ns for launch in result.launches for phase in launch.phases if phase.name == name]
    return duration(statistics.median(durations)) if durations else NONE


def _launches(result: CellResult) -> list[list[str]]:
    key, marks = one_line(result.key), marks_of(result)
    summaries = {summary.round: summary for summary in result.launch_summaries}
    return [
        _launch(key, launch, summaries.get(launch.round), marks.get(launch.round, [])) for launch in result.launches
    ]


def _launch(key: str, launch: Launch, summary: LaunchSummary | None, marks: Sequence[str]) -> list[str]:
    if launch.failure is not None:
        return [key, str(launch.round), "failed", *([NONE] * 7), one_line(launch.failure.in_words)]
    verdict, *numbers = _summary(summary)
    reasons = [] if summary is None or summary.reason is None else [summary.reason]
    # Its own column says the verdict.
    notes = [*(mark for mark in marks if mark != verdict), *reasons, *launch.warnings]
    used = launch.utilization
    cpu_pct = used.process_cpu_pct if used is not None else None
    return [
        key,
        str(launch.round),
        verdict,
        *numbers,
        NONE if cpu_pct is None else f"{cpu_pct:.0f}",
        NONE if launch.data is None else launch.data.name,
        one_line(", ".join(notes)),
    ]


def _summary(summary: LaunchSummary | None) -> list[str]:
    if summary is None:
        return ["no steps", *([NONE] * 5)]
    correlation = summary.autocorrelation
    return [
        summary.verdict.replace("_", " "),
        NONE if summary.warmup_steps is None else f"{summary.warmup_steps:,}",
        f"{summary.steady_steps:,}",
        NONE if summary.median_ns is None else duration(summary.median_ns, 4),
        NONE if summary.p95_ns is None else duration(summary.p95_ns, 4),
        NONE if correlation is None else f"{correlation:+.2f}".replace("-", "−"),
    ]
