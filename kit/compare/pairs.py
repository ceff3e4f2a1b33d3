"""All pairs of one group: their log-ratios round by round, judged as one family, and who trends or has two modes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from itertools import combinations
from statistics import fmean

import msgspec
import numpy as np
from numpy.typing import NDArray

from kit.audit.launch_arrays import block_arrays
from kit.audit.two_modes import Modes
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import Reason, reason
from kit.profile.schema import Group
from kit.stats.difference import bounded_exp
from kit.stats.rounds import BlockArrays, By, cycle_log_ratios, launch_time_ns, mean_step_ns, round_log_ratio
from kit.stats.trend import trending
from kit.stats.verdict import SMALLEST_DIFFERENCE, Versus, judge_family


class Pairs:
    """The members of one group, in parts where it was split; each part has the baseline."""

    def __init__(
        self,
        parts: Sequence[Group],
        cells: Mapping[str, Cell],
        launches: Mapping[str, Sequence[Launch]],
        modes: Mapping[tuple[str, str], Modes] | None = None,  # of (part, cell)
        by: By = "step",
    ) -> None:
        self._parts = parts
        self._cells = cells
        self._modes = modes or {}
        self._by = by
        self._keys = list(launches)
        self._raw_ns: dict[str, float | None] = {}
        self._rounds: dict[tuple[str, str], dict[int, BlockArrays]] = {}  # of (part, cell)
        self._sequential: set[tuple[str, str, int]] = set()  # (part, cell, round) in which members did not take turns
        for key, of_cell in launches.items():
            for launch in (candidate for candidate in of_cell if candidate.gave_number):
                self._rounds.setdefault((launch.group, key), {})[launch.round] = block_arrays(launch)
                if launch.turns != "blocks":
                    self._sequential.add((launch.group, key, launch.round))

    def versus(self, key: str, other: str) -> Versus:
        """Return what the rounds say of the cell `key` against `other`."""
        judged = self._judged
        versus = judged[key, other] if (key, other) in judged else judged[other, key].inverted()
        return msgspec.structs.replace(versus, modes=self.modes(key, other))

    def shown_ns(self, key: str, baseline: str) -> float | None:
        """Return the time that stands in a cell's row: the baseline's own times the ratio that is judged.

        That is the least-squares mean of a randomized block design: what a cell would have taken in the rounds that
        the baseline saw. A median over blocks that its neighbours were not in would show another ratio than the one
        beside it. Of a cell without a common round, its own.
        """
        baseline_ns = self.raw_ns(baseline) if baseline in self._cells else None
        log_ratios = list(self.log_ratios(key, baseline).values()) if baseline_ns and key != baseline else []
        if baseline_ns is None or not log_ratios:
            return self.raw_ns(key)
        per_step_log = fmean(log_ratios) - self._per_sample_log(key, baseline)
        return baseline_ns * bounded_exp(per_step_log)

    def raw_ns(self, key: str) -> float | None:
        """Return a cell's own time: the geometric mean over its launches, whatever the machine did in between."""
        if key not in self._raw_ns:
            times_ns = self.times_ns(key)
            self._raw_ns[key] = math.exp(fmean(map(math.log, times_ns))) if times_ns else None
        return self._raw_ns[key]

    def times_ns(self, key: str) -> list[float]:
        """Return a cell's own time in each launch."""
        return [
            time_ns
            for (_, cell_key), rounds in self._rounds.items()
            if cell_key == key
            for blocks in rounds.values()
            if (time_ns := self._time_ns(key, blocks)) > 0
        ]

    def log_ratios(self, key: str, other: str) -> dict[int, float]:
        """Return ln of the ratio in each common round, per sample.

        Members of different parts are compared through the baseline that both parts have, as what their rows show is.
        """
        parts = [next((part for part in self._parts if member in part.cells), None) for member in (key, other)]
        for part in self._parts:
            if key in part.cells and other in part.cells:
                return self._between(part.key, key, other)
        if parts[0] is None or parts[1] is None:
            return {}
        mine = self._between(parts[0].key, key, parts[0].baseline)
        yours = self._between(parts[1].key, other, parts[1].baseline)
        return {number: mine[number] - yours[number] for number in mine if number in yours}

    def cycle_ratios(self, key: str, other: str) -> dict[int, list[float]]:
        """Return, of each common round, the log-ratio within each common cycle, in order of cycle.

        Nothing of members of different parts, or of rounds in which they did not take turns: no cycle has both.
        """
        for part in self._parts:
            if key in part.cells and other in part.cells:
                mine, yours = self._rounds.get((part.key, key), {}), self._rounds.get((part.key, other), {})
                shift = self._per_sample_log(key, other)
                return {
                    number: (cycle_log_ratios(mine[number], yours[number], self._by) + shift).tolist()
                    for number in sorted(mine.keys() & yours.keys())
                    if self._took_turns(part.key, key, other, number)
                }
        return {}

    def trends(self) -> dict[str, list[Reason]]:
        """Return the mark of the one cell of each part whose ratio to the others moves most.

        The others' ratios to it move as well, the other way; of two, the one that becomes faster was warming up.
        """
        members = [(part, key) for part in self._parts for key in part.cells]
        trends = trending([self._relative(part, key, _others(part, key)) for part, key in members])
        marks: dict[str, list[Reason]] = {}
        for part in self._parts:
            moved = {
                key: trend for (of, key), trend in zip(members, trends, strict=True) if of is part and trend is not None
            }
            if moved:
                key = min(moved, key=lambda key: (-round(abs(math.log(moved[key].ratio)), 9), moved[key].ratio))
                mark = reason("trending", change_pct=100 * (moved[key].ratio - 1), rounds=moved[key].count)
                marks.setdefault(key, [mark])
        return marks

    def modes_mark(self, key: str) -> list[Reason]:
        """Return the mark of a cell that has two modes."""
        modes = [of_part for part in self._parts if (of_part := self._modes.get((part.key, key))) is not None]
        return [reason("two_modes", fast_ns=of_part.step_ns[0], slow_ns=of_part.step_ns[1]) for of_part in modes[:1]]

    def modes(self, key: str, other: str) -> tuple[float, float] | None:
        """Return the ratios of a cell to another in the two modes of either; None where both have one."""
        logs: dict[bool, list[float]] = {False: [], True: []}
        for part in self._parts:
            modes = self._modes.get((part.key, key)) or self._modes.get((part.key, other))
            if modes is None:
                continue
            slow = {
                (number, cycle): mode
                for number, cycle, mode in zip(modes.rounds, modes.cycles, modes.slow, strict=True)
            }
            mine, yours = self._rounds.get((part.key, key), {}), self._rounds.get((part.key, other), {})
            for number in mine.keys() & yours.keys():
                times_ns = [
                    dict(zip(blocks.cycle.tolist(), blocks.times_ns(self._by).tolist(), strict=True))
                    for blocks in (mine[number], yours[number])
                ]
                for cycle in times_ns[0].keys() & times_ns[1].keys():
                    if (number, cycle) in slow:
                        ratio_log = math.log(times_ns[0][cycle] / times_ns[1][cycle]) + self._per_sample_log(key, other)
                        logs[bool(slow[number, cycle])].append(ratio_log)
        if not logs[False] or not logs[True]:
            return None
        low, high = sorted(math.exp(np.median(ratio_logs)) for ratio_logs in logs.values())
        return low, high

    @cached_property
    def _judged(self) -> dict[tuple[str, str], Versus]:
        pairs = list(combinations(self._keys, 2))
        logs = [list(self.log_ratios(key, other).values()) for key, other in pairs]
        return dict(zip(pairs, judge_family(logs, SMALLEST_DIFFERENCE), strict=True))

    def _between(self, part: str, key: str, other: str) -> dict[int, float]:
        """Return ln of the ratio per sample in each round that two cells of a part have."""
        mine, yours = self._rounds.get((part, key), {}), self._rounds.get((part, other), {})
        shift = self._per_sample_log(key, other)
        logs: dict[int, float] = {}
        for number in sorted(mine.keys() & yours.keys()):
            if self._is_fit(key):
                # A fit runs alone, and is known by its whole time.
                log_ratio = math.log(mean_step_ns(mine[number]) / mean_step_ns(yours[number]))
            else:
                paired = self._took_turns(part, key, other, number)
                ratio = round_log_ratio(mine[number], yours[number], paired=paired, by=self._by)
                if ratio is None:
                    continue
                log_ratio = ratio
            logs[number] = log_ratio + shift
        return logs

    def _time_ns(self, key: str, blocks: BlockArrays) -> float:
        return mean_step_ns(blocks) if self._is_fit(key) else launch_time_ns(blocks, self._by)

    def _is_fit(self, key: str) -> bool:
        return self._cells[key].task == "fit"

    def _took_turns(self, part: str, key: str, other: str, number: int) -> bool:
        return not self._sequential & {(part, key, number), (part, other, number)}

    def _per_sample_log(self, key: str, other: str) -> float:
        """Return what makes a ratio of steps one of samples: steps of another batch do another amount of work.

        Nothing makes one of latencies: a request waits for its whole batch.
        """
        if self._by == "latency" and not self._is_fit(key):
            return 0.0
        mine, yours = self._cells[key].batch, self._cells[other].batch
        return math.log(yours / mine) if mine > 0 and yours > 0 else 0.0

    def _relative(self, part: Group, key: str, others: Sequence[str]) -> list[NDArray[np.float64]]:
        """Return ln of a member's time over the others' in the same cycle, (cycles,), of each round of turns."""
        members = [self._rounds.get((part.key, member), {}) for member in (key, *others)]
        relative = []
        for number in sorted(set(members[0]).intersection(*members[1:])):
            if any((part.key, member, number) in self._sequential for member in (key, *others)):
                continue
            blocks = [rounds[number] for rounds in members]
            cycles = reduce(np.intersect1d, (of_member.cycle for of_member in blocks))
            # Each cycle has one block of a member.
            places = [np.intersect1d(of_member.cycle, cycles, return_indices=True)[1] for of_member in blocks]
            log_ns, *others_log_ns = (
                np.log(of_member.times_ns(self._by)[place]) for of_member, place in zip(blocks, places, strict=True)
            )
            relative.append(log_ns - np.mean(others_log_ns, axis=0) if others_log_ns else log_ns)
        return relative


def _others(part: Group, key: str) -> list[str]:
    return [other for other in part.cells if other != key]
