"""What comparing needs of a cell's launches, taken from them once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kit.profile.cell import Cell
from kit.profile.launch import Launch, Parity
from kit.profile.launch_brief import LaunchBrief

Rounds = tuple[int, ...]


class LaunchesBrief(msgspec.Struct, frozen=True, kw_only=True):
    """Of the launches of one cell. They are told by their rounds: no two launches that a run keeps have the same.

    A tuple without an order of its own is sorted.
    """

    made: int  # launches, those that failed included
    finished: Rounds
    data: tuple[tuple[str, str], ...]  # name, SHA-256 of what the steps of the finished ones were fed
    data_names: tuple[str, ...]  # of all
    threads: tuple[int, ...]  # of the finished ones, as requested
    planted_pct: tuple[float, ...]  # of the finished ones: slow-downs that were planted
    parity: Parity | None  # of the first that recorded it: every launch of a cell runs the same program
    accuracy_updates: int | None  # after which all that have an accuracy were scored; null: none, or unequal numbers
    recompiled: Rounds
    graph_broken: Rounds
    throttled: Rounds  # stopped by a limit on their CPUs
    throttling_known: Rounds  # stopped or not
    gpu_throttled_by: dict[int, list[str]]  # round -> why, in words; of cells that computed on a GPU, where known


def condense(cell: Cell, launches: Sequence[Launch] | Sequence[LaunchBrief]) -> LaunchesBrief:
    """Take the launches of a cell together."""
    finished, recompiled, graph_broken, throttled, throttling_known = [], [], [], [], []
    data, names, threads, planted_pct, updates = set(), set(), set(), set(), set()
    parity = None
    slowed_by = {}
    for launch in launches:
        round_number, used, fed = launch.round, launch.utilization, launch.data
        parity = parity or launch.parity
        if fed is not None:
            names.add(fed.name)
        if launch.evaluation is not None and launch.evaluation.accuracy is not None:
            updates.add(launch.evaluation.updates)
        if used is not None:
            if used.throttled_ns is not None:
                throttling_known.append(round_number)
            if (used.throttled_ns or 0) > 0:
                throttled.append(round_number)
            # Of a cell that computed elsewhere, a slowed GPU says nothing.
            if cell.device == "gpu" and used.gpu_throttled_by is not None:
                slowed_by[round_number] = used.gpu_throttled_by
        if launch.recompiles:
            recompiled.append(round_number)
        if launch.graph_breaks:
            graph_broken.append(round_number)
        if launch.failure is None:
            finished.append(round_number)
            planted_pct.add(launch.planted_slowdown_pct)
            if fed is not None:
                data.add((fed.name, fed.sha256))
            if launch.threads is not None:
                threads.add(launch.threads.requested)
    return LaunchesBrief(
        made=len(launches),
        finished=tuple(finished),
        data=tuple(sorted(data)),
        data_names=tuple(sorted(names)),
        threads=tuple(sorted(threads)),
        planted_pct=tuple(sorted(planted_pct)),
        parity=parity,
        accuracy_updates=updates.pop() if len(updates) == 1 else None,
        recompiled=tuple(recompiled),
        graph_broken=tuple(graph_broken),
        throttled=tuple(throttled),
        throttling_known=tuple(throttling_known),
        gpu_throttled_by=slowed_by,
    )
