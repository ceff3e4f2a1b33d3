"""Pairs of one group: their log-ratios round by round, judged as one family, and who trends or has two modes.

The family is what a table shows: each cell against the baseline, and the fastest against the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import combinations
from statistics import fmean

import msgspec
import numpy as np
from numpy.typing import NDArray

from kit.compare.cpu_loss import TAKEN_BAD_PCT, cpu_loss
from kit.compare.launch_arrays import block_arrays
from kit.compare.modes import Modes
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import Reason, reason
from kit.profile.schema import Group
from kit.stats.difference import bounded_exp
from kit.stats.rounds import BlockArrays, By, cycle_log_ratios, launch_time_ns, mean_step_ns, round_log_ratio
from kit.stats.trend import trending
from kit.stats.verdict import SMALLEST_DIFFERENCE, Versus, judge_family

# Axes on which members use their threads otherwise; variants and batches of one framework meet others alike.
UNLIKE = ("backend", "workload", "compile_mode", "threads", "devices")
# A variant may set threads by variables, which no axis shows. Pools of equal size differ by one thread that waits.
THREADS_UNLIKE = 2


class Pairs:
    """The members of one group, in parts where it was split; each part has the baseline."""

    def __init__(
        self,
        parts: Sequence[Group],
        cells: Mapping[str, Cell],
        launches: Mapping[str, Sequence[Launch]],
        modes: Mapping[tuple[str, str], Modes] | None = None,  # of (part, cell)
        by: By = "step",
        *,
        levels: Mapping[str, Collection[tuple[str, int]]] | None = None,  # (part, round) of a cell's figures; None: all
        contended: Collection[str] = (),  # keys of parts in which others disturbed every round
        baseline: str | None = None,  # that its cells are compared with; None: the group's own
    ) -> None:
        self._parts = parts
        self._baseline = baseline or parts[0].baseline
        self._cells = cells
        self._modes = modes or {}
        self._by = by
        self._levels = levels
        self._contended = contended
        self._keys = list(launches)
        self._launches = launches
        self._contention: dict[tuple[str, str | None], float] = {}  # of (cell, part)
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
        # Whoever asks for a pair beside the family has chosen it among all.
        is_in_family = (key, other) in self._judged or (other, key) in self._judged
        judged = self._judged if is_in_family else self._all_judged
        versus = judged[key, other] if (key, other) in judged else judged[other, key].inverted()
        if (modes := self.modes(key, other)) is not None:
            # A mean over two modes is of neither.
            versus = msgspec.structs.replace(versus, verdict="unresolved", modes=modes)
        part = self._part_of(key, other)
        if not self.is_contended(key, other):
            return versus
        contention_pct = max(self._contention_pct(key, part), self._contention_pct(other, part))
        return msgspec.structs.replace(versus, verdict="unresolved", contention_pct=contention_pct)

    def is_contended(self, key: str, other: str) -> bool:
        """Return whether others disturbed two unlike cells so much that their ratio is of both."""
        fewer, more = sorted((self._threads(key), self._threads(other)))
        is_like = all(getattr(self._cells[key], axis) == getattr(self._cells[other], axis) for axis in UNLIKE)
        if is_like and (not fewer or more < THREADS_UNLIKE * fewer):
            return False
        part = self._part_of(key, other)
        parts = [part] if part is not None else [self._part_of(key), self._part_of(other)]
        if any(known is not None and known.key in self._contended for known in parts):
            return True
        return max(self._contention_pct(key, part), self._contention_pct(other, part)) >= TAKEN_BAD_PCT

    def _threads(self, key: str) -> int:
        """Return the number of threads that computed a cell; 0 if no launch recorded it."""
        known = [launch.threads for launch in self._launches[key] if launch.threads is not None]
        return max((threads.used or threads.reported or 0 for threads in known), default=0)

    def _contention_pct(self, key: str, part: Group | None) -> float:
        """Return what others took of the CPUs' time beside a cell in a part of the group; None: in all."""
        place = (key, None if part is None else part.key)
        if place not in self._contention:
            measured = [launch for launch in self._launches[key] if launch.gave_number]
            lost = cpu_loss(
                self._cells[key], [launch for launch in measured if part is None or launch.group == part.key]
            )
            self._contention[place] = 0.0 if lost is None else lost.contention_pct
        return self._contention[place]

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
        """Return a cell's own time in each launch that its figures come from."""
        times_ns = [
            mean_step_ns(blocks) if self._is_fit(key) else launch_time_ns(blocks, self._by)
            for (part, cell_key), rounds in self._rounds.items()
            for number, blocks in rounds.items()
            if cell_key == key and (self._levels is None or (part, number) in self._levels[key])
        ]
        return [time_ns for time_ns in times_ns if time_ns > 0]

    def log_ratios(self, key: str, other: str) -> dict[int, float]:
        """Return ln of the ratio in each common round, per sample.

        Members of different parts are compared through the baseline that both parts have, as what their rows show is.
        """
        if self._part_of(key, other) is not None:
            return self._between(key, other)
        part, other_part = self._part_of(key), self._part_of(other)
        if part is None or other_part is None:
            return {}
        mine, yours = self._between(key, part.baseline), self._between(other, other_part.baseline)
        return {number: mine[number] - yours[number] for number in mine if number in yours}

    def cycle_ratios(self, key: str, other: str) -> dict[int, list[float]]:
        """Return, of each common round, the log-ratio within each common cycle, in order of cycle.

        Nothing of members of different parts, or of rounds in which they did not take turns: no cycle has both.
        """
        shift = self._per_sample_log(key, other)
        return {
            number: (cycle_log_ratios(blocks, other_blocks, self._by) + shift).tolist()
            for number, blocks, other_blocks, took_turns in self._common_rounds(key, other)
            if took_turns
        }

    def trends(self) -> dict[str, list[Reason]]:
        """Return the mark of the one cell of each part whose ratio to the others moves most.

        The others' ratios to it move as well, the other way; of two, the one that becomes faster was warming up.
        """
        members = [(part, key) for part in self._parts for key in part.cells]
        trends = trending([self._relative(part, key) for part, key in members])
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
        modes = next((self._modes[part.key, key] for part in self._parts if (part.key, key) in self._modes), None)
        return [] if modes is None else [reason("two_modes", fast_ns=modes.step_ns[0], slow_ns=modes.step_ns[1])]

    def modes(self, key: str, other: str) -> tuple[float, float] | None:
        """Return the ratios of a cell to another in the two modes of either; None where both have one."""
        part = self._part_of(key, other)
        modes = part and (self._modes.get((part.key, key)) or self._modes.get((part.key, other)))
        if not modes:
            return None
        logs: dict[bool, list[float]] = {False: [], True: []}
        for number, *both, _ in self._common_rounds(key, other):
            times_ns, others_ns = (
                dict(zip(blocks.cycle.tolist(), blocks.times_ns(self._by).tolist(), strict=True)) for blocks in both
            )
            for cycle in times_ns.keys() & others_ns.keys():
                if (number, cycle) in modes.is_slow:
                    ratio_log = math.log(times_ns[cycle] / others_ns[cycle]) + self._per_sample_log(key, other)
                    logs[modes.is_slow[number, cycle]].append(ratio_log)
        if not logs[False] or not logs[True]:
            return None
        low, high = sorted(math.exp(np.median(ratio_logs)) for ratio_logs in logs.values())
        return low, high

    @cached_property
    def _judged(self) -> dict[tuple[str, str], Versus]:
        return self._judge(family_of(self._keys, self._baseline, lambda *pair: list(self.log_ratios(*pair).values())))

    @cached_property
    def _all_judged(self) -> dict[tuple[str, str], Versus]:
        return self._judge(list(combinations(self._keys, 2)))

    def _judge(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Versus]:
        logs = [list(self.log_ratios(key, other).values()) for key, other in pairs]
        return dict(zip(pairs, judge_family(logs, SMALLEST_DIFFERENCE), strict=True))

    def _part_of(self, *keys: str) -> Group | None:
        """Return the first part that these cells are in; two cells have at most one in common."""
        return next((part for part in self._parts if all(key in part.cells for key in keys)), None)

    def _common_rounds(self, key: str, other: str) -> Iterator[tuple[int, BlockArrays, BlockArrays, bool]]:
        """Yield each round in which two cells of one part have blocks, these, and whether they took turns."""
        part = self._part_of(key, other)
        if part is None:
            return
        rounds, other_rounds = self._rounds.get((part.key, key), {}), self._rounds.get((part.key, other), {})
        for number in sorted(rounds.keys() & other_rounds.keys()):
            took_turns = not self._sequential & {(part.key, key, number), (part.key, other, number)}
            yield number, rounds[number], other_rounds[number], took_turns

    def _between(self, key: str, other: str) -> dict[int, float]:
        """Return ln of the ratio per sample in each round that two cells of one part have."""
        shift = self._per_sample_log(key, other)
        logs: dict[int, float] = {}
        for number, blocks, other_blocks, took_turns in self._common_rounds(key, other):
            if self._is_fit(key):
                # A fit runs alone, and is known by its whole time.
                logs[number] = math.log(mean_step_ns(blocks) / mean_step_ns(other_blocks)) + shift
            else:
                log_ratio = round_log_ratio(blocks, other_blocks, paired=took_turns, by=self._by)
                if log_ratio is not None:
                    logs[number] = log_ratio + shift
        return logs

    def _is_fit(self, key: str) -> bool:
        return self._cells[key].task == "fit"

    def _per_sample_log(self, key: str, other: str) -> float:
        """Return what makes a ratio of steps one of samples: steps of another batch do another amount of work.

        Nothing makes one of latencies: a request waits for its whole batch.
        """
        if self._by == "latency" and not self._is_fit(key):
            return 0.0
        mine, yours = self._cells[key].batch, self._cells[other].batch
        return math.log(yours / mine) if mine > 0 and yours > 0 else 0.0

    def _relative(self, part: Group, key: str) -> list[NDArray[np.float64]]:
        """Return ln of a member's time over the others' in the same cycle, (cycles,), of each round of turns."""
        keys = [key, *(other for other in part.cells if other != key)]
        members = [self._rounds.get((part.key, member), {}) for member in keys]
        relative = []
        for number in sorted(set(members[0]).intersection(*members[1:])):
            if any((part.key, member, number) in self._sequential for member in keys):
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


def family_of(
    keys: Sequence[str], baseline: str, log_ratios: Callable[[str, str], Sequence[float]]
) -> list[tuple[str, str]]:
    """Return the pairs that are tested together: each cell and the baseline, and the fastest two.

    All pairs of ten cells would be 45 tests where nine answers are shown, and a difference of 3 % be lost in them.

    Args:
        keys: of the cells.
        baseline: one of them; where it has no rounds, or is none of them, the first that has some stands for it.
        log_ratios: of two cells in each round.
    """
    logs: dict[str, Sequence[float]] = {}
    for base in (baseline, *keys):
        logs = {key: log_ratios(key, base) for key in keys if key != base} if base in keys else {}
        if any(len(known) for known in logs.values()):
            break
    speeds = {base: 0.0} | {key: fmean(known) for key, known in logs.items() if len(known)}
    fastest = sorted(speeds, key=lambda key: speeds[key])[:2]
    beside = [(fastest[0], fastest[1])] if len(fastest) > 1 and base not in fastest else []
    return [*((key, base) for key in logs), *beside]
