"""All pairs of one group: their log-ratios round by round, judged as one family, and who trends or has two modes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kit.audit.member import block_arrays
from kit.audit.two_modes import Modes
from kit.compare.rows import Versus
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import Reason, reason
from kit.profile.schema import Group
from kit.stats.rounds import BlockArrays, RoundRatio, round_ratio
from kit.stats.trend import trending
from kit.stats.verdict import SMALLEST_DIFFERENCE, Verdict, judge_family

OPPOSITE: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster", "same": "same", "unresolved": "unresolved"}


class Pairs:
    """The members of one group, in parts where it was split; each part has the baseline."""

    def __init__(
        self,
        parts: Sequence[Group],
        cells: Mapping[str, Cell],
        launches: Mapping[str, Sequence[Launch]],
        modes: Mapping[tuple[str, str], Modes] | None = None,  # of (part, cell)
    ) -> None:
        self._parts = parts
        self._cells = cells
        self._modes = modes or {}
        self._rounds: dict[tuple[str, str], dict[int, BlockArrays]] = {}  # of (part, cell)
        self._paired = True
        for key, own in launches.items():
            for launch in (one for one in own if one.gave_number):
                self._rounds.setdefault((launch.group, key), {})[launch.round] = block_arrays(launch)
                self._paired &= launch.turns == "blocks"
        self._ratios = {(one, other): self.ratios(one, other) for one, other in combinations(launches, 2)}
        logs = [[ratio.log_ratio for ratio in found.values()] for found in self._ratios.values()]
        self._judged = dict(zip(self._ratios, judge_family(logs, SMALLEST_DIFFERENCE), strict=True))

    def versus(self, one: str, other: str) -> Versus:
        """Return what the rounds say of the cell `one` against `other`."""
        sign, pair = (1, (one, other)) if (one, other) in self._judged else (-1, (other, one))
        judgement, ratios = self._judged[pair], list(self._ratios[pair].values())
        found = judgement.difference
        if found is None:
            ratio = math.exp(sign * ratios[0].log_ratio) if ratios else None
            return Versus(verdict="unresolved", count=len(ratios), ratio=ratio, modes=self.modes(one, other))
        low, high = sorted((found.low**sign, found.high**sign))
        return Versus(
            verdict=judgement.verdict if sign > 0 else OPPOSITE[judgement.verdict],
            ratio=found.ratio**sign,
            low=low,
            high=high,
            level=found.level,
            p_adjusted=judgement.p_adjusted,
            count=found.rounds,
            mean_log=sign * found.mean_log,
            se_log=found.se,
            df=found.df,
            whole_ratio=math.exp(sign * np.mean([ratio.whole_log_ratio for ratio in ratios])),
            modes=self.modes(one, other),
        )

    def ratios(self, one: str, other: str) -> dict[int, RoundRatio]:
        """Return the ratio in each common round; of members of different parts by whole rounds: no cycle has both.

        Not by the baseline that both parts have: beside other members it may take another time, as caches and
        allocators differ, and that would stand in the ratio.
        """
        for part in self._parts:
            if one in part.cells and other in part.cells:
                return self._between((part.key, one), (part.key, other), paired=self._paired)
        own, theirs = (next((part for part in self._parts if key in part.cells), None) for key in (one, other))
        if own is None or theirs is None:
            return {}
        return self._between((own.key, one), (theirs.key, other), paired=False)

    def cycle_ratios(self, one: str, other: str) -> dict[int, list[float]]:
        """Return, of each common round, the log-ratio within each common cycle, in order of cycle.

        Nothing of members of different parts, or of ones that did not take turns in blocks: no cycle has both.
        """
        together = [part.key for part in self._parts if one in part.cells and other in part.cells and self._paired]
        found = {}
        for key in together[:1]:
            mine, yours = self._rounds.get((key, one), {}), self._rounds.get((key, other), {})
            for number in sorted(mine.keys() & yours.keys()):
                a, b = mine[number], yours[number]
                _, in_a, in_b = np.intersect1d(a.cycle, b.cycle, return_indices=True)
                logs = np.log(a.median_ns[in_a] / b.median_ns[in_b]) + self._per_sample_log(one, other)
                found[number] = logs.tolist()
        return found

    def trends(self) -> dict[str, list[Reason]]:
        """Return the mark of the one cell of each part whose ratio to the others moves most.

        The others' ratios to it move as well, the other way; of two, the one that becomes faster was warming up.
        """
        marks: dict[str, list[Reason]] = {}
        for part in self._parts if self._paired else ():
            moved = {key: trending(self._relative(part, key, _others(part, key))) for key in part.cells}
            found = {key: trend for key, trend in moved.items() if trend is not None}
            if found:
                key = min(found, key=lambda key: (-round(abs(math.log(found[key].ratio)), 9), found[key].ratio))
                mark = reason("trending", change_pct=100 * (found[key].ratio - 1), rounds=found[key].rounds)
                marks.setdefault(key, [mark])
        return marks

    def modes_mark(self, key: str) -> list[Reason]:
        """Return the mark of a cell that has two modes."""
        found = [own for part in self._parts if (own := self._modes.get((part.key, key))) is not None]
        return [reason("two_modes", fast_ns=own.step_ns[0], slow_ns=own.step_ns[1]) for own in found[:1]]

    def modes(self, key: str, other: str) -> tuple[float, float] | None:
        """Return the ratios of a cell to another in the two modes of either; None where both have one."""
        logs: dict[bool, list[float]] = {False: [], True: []}
        for part in self._parts:
            own = self._modes.get((part.key, key)) or self._modes.get((part.key, other))
            if own is None:
                continue
            slow = {(number, cycle): mode for number, cycle, mode in zip(own.rounds, own.cycles, own.slow, strict=True)}
            mine, yours = self._rounds.get((part.key, key), {}), self._rounds.get((part.key, other), {})
            for number in mine.keys() & yours.keys():
                theirs = dict(zip(yours[number].cycle.tolist(), yours[number].median_ns.tolist(), strict=True))
                for cycle, step_ns in zip(mine[number].cycle.tolist(), mine[number].median_ns.tolist(), strict=True):
                    if cycle in theirs and (number, cycle) in slow:
                        ratio_log = math.log(step_ns / theirs[cycle]) + self._per_sample_log(key, other)
                        logs[bool(slow[number, cycle])].append(ratio_log)
        if not logs[False] or not logs[True]:
            return None
        low, high = sorted(math.exp(np.median(found)) for found in logs.values())
        return low, high

    def _between(self, one: tuple[str, str], other: tuple[str, str], *, paired: bool) -> dict[int, RoundRatio]:
        """Return the ratio in each round that two cells, each of a part, have."""
        mine, yours = self._rounds.get(one, {}), self._rounds.get(other, {})
        found = {
            number: round_ratio(mine[number], yours[number], paired=paired)
            for number in sorted(mine.keys() & yours.keys())
        }
        return {
            number: self._per_sample(one[1], other[1], ratio) for number, ratio in found.items() if ratio is not None
        }

    def _per_sample(self, one: str, other: str, ratio: RoundRatio) -> RoundRatio:
        """Steps of another batch do another amount of work; a fit is known by its whole time."""
        is_fit = self._cells[one].task == "fit"
        logs = RoundRatio(ratio.whole_log_ratio, ratio.whole_log_ratio) if is_fit else ratio
        return RoundRatio(*(log + self._per_sample_log(one, other) for log in logs))

    def _per_sample_log(self, one: str, other: str) -> float:
        mine, yours = self._cells[one].batch, self._cells[other].batch
        return math.log(yours / mine) if mine > 0 and yours > 0 else 0.0

    def _relative(self, part: Group, key: str, others: Sequence[str]) -> list[NDArray[np.float64]]:
        """Return, of each round that all have, ln of a member's step over the others' in the same cycle, (cycles,)."""
        members = [self._rounds.get((part.key, one), {}) for one in (key, *others)]
        found = []
        for number in sorted(set(members[0]).intersection(*members[1:])):
            blocks = [rounds[number] for rounds in members]
            cycles = reduce(np.intersect1d, (one.cycle for one in blocks))
            # Each cycle has one block of a member.
            places = [np.intersect1d(one.cycle, cycles, return_indices=True)[1] for one in blocks]
            own, *theirs = (np.log(one.median_ns[place]) for one, place in zip(blocks, places, strict=True))
            found.append(own - np.mean(theirs, axis=0) if theirs else own)
        return found


def _others(part: Group, key: str) -> list[str]:
    return [other for other in part.cells if other != key]
