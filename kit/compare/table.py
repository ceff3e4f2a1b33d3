"""The table that everything reads: a row for each launch of a run, and in it a row for each of its blocks.

    profile ─► BlockTable ─► launches ─► blocks     `clean` fills what others took, clean and counts; `modes` fills slow

It is made once, when a run is read. Which blocks count is never asked again: `LaunchRow.counting` has them, and no
profile is copied. Blocks lie in columns, as a profile has them; `LaunchRow.rows` returns them one by one.

The step time of a block is its whole time over its steps, so stalls are in it; latency is the median of steps that were
waited for one by one.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, repeat
from operator import add, sub, truediv
from typing import Any, Literal, NamedTuple

from kit.profile.cell import Cell
from kit.profile.instruments import Energy
from kit.profile.schema import OF_TURNS, Blocks, CellResult, Launch

BlockId = tuple[int, int]  # round and cycle
# What blocks are timed by: whole time over steps, or the median of steps that were waited for one by one.
By = Literal["step", "latency"]
# A GPU that is loaded for seconds has other clocks than in bursts between other cells'. Joules are known to a percent.
SUSTAINED_LEAST_PCT = 2.0
# Other programs move a step on a CPU from block to block, and joules are then of the slower step.
SUSTAINED_LEAST_ON_CPU_PCT = 10.0
# A cell lost nothing to others while it had, with the CPUs that were idle, so nearly all that it can use.
IDLE_MOST = 0.05
# CPU time in each block: of the machine, of the measured process and of its children, and of other virtual machines.
CPU_COUNTERS = ("machine.busy_ns", "process.cpu_ns", "process.children_ns", "machine.steal_ns")
NO_BLOCKS = Blocks()
COLUMNS = tuple(name for name in Blocks.__struct_fields__ if name not in ("cycle", "counters", *OF_TURNS))


class Taken(NamedTuple):
    """What others took from a cell in one block, or in several together. Of each block it is a plain tuple."""

    others_ns: float = 0  # CPU time of others; ticks that a block misses count in the next: it may be below 0
    stolen_ns: float = 0  # by the hypervisor
    capacity_ns: float = 0  # of the cell's CPUs; 0: it was not counted
    spare_blocks: int = 0  # blocks of a cell with a thread for each CPU in which its CPUs were partly idle

    @property
    def fraction(self) -> float:
        """Which fraction of the CPUs' time others took."""
        return min(1.0, (max(0.0, self.others_ns) + self.stolen_ns) / self.capacity_ns) if self.capacity_ns else 0.0


BlockTaken = tuple[float, float, float, int]  # the fields of `Taken`: named tuples take three times as long to make
NOTHING_TAKEN = Taken()


def taken_together(blocks: Collection[BlockTaken]) -> Taken:
    """Return the sum of some blocks, in which what ticks miss in one and count twice in the next cancels."""
    return Taken(*map(sum, zip(*blocks, strict=True))) if blocks else NOTHING_TAKEN


class Block(NamedTuple):
    """One block: when it ran, how long its steps took, what others took, and whether it counts."""

    cycle: int
    begin_ns: int
    span_ns: int
    step_ns: float
    steps: int  # timed together
    recorded: dict[str, Any]  # all columns of its profile but the cycle, and its counters; null: a read failed
    others: float | None  # which fraction of the CPUs' time they took; null: it was not counted
    disturbed_by: str | None  # a key of `kit.compare.clean.DISTURBANCES`, or CPUS_MEAN; null: nothing
    clean: bool  # so was its whole cycle
    counts: bool  # it is in ratios and counters
    slow: bool | None  # of a bimodal cell; null: of another, or the block is in no cycle that its whole group has


@dataclass(eq=False, slots=True)
class LaunchRow:
    """One launch: what is recorded once a launch, its blocks, and what these are used for."""

    cell: Cell
    record: Launch  # phases, threads, fit, failure …; its own `blocks` are read here alone
    blocks: Blocks  # all of them
    counting: Blocks = NO_BLOCKS  # those that count; none where it gave no number, or its round does not count
    energy: Sequence[Energy] = ()  # that counts
    gives_figures: bool = False  # its cell's figures come from it
    is_listed: bool = True  # or it is one that failed, or whose joules are better than none
    is_warm: bool = False  # its process had run another program before
    is_shared: bool = False  # its process held several cells
    disturbed_by: Sequence[str | None] = ()  # of each block, by `clean`; empty: nothing disturbed any
    left_out: Collection[int] = ()  # cycles that are not clean, by `clean`
    slow: Mapping[int, bool] | None = None  # cycle -> whether it is in the slow mode, by `modes`; null: there is none
    _taken: Sequence[BlockTaken] | None = None
    _taken_most: float | None = None

    @property
    def round(self) -> int:
        """Which round it was of."""
        return self.record.round

    @property
    def group(self) -> str:
        """Key of the part of its group."""
        return self.record.group

    @property
    def takes_turns(self) -> bool:
        """Whether blocks of one cycle ran within a second of each other."""
        return self.record.turns == "blocks"

    @property
    def has_counting(self) -> bool:
        """Whether it finished and has blocks that count."""
        return bool(self.counting.steps)

    @property
    def cpus(self) -> int:
        """How many CPUs it was allowed on; 0: it was not recorded."""
        return 0 if self.record.threads is None else len(self.record.threads.cpus)

    @property
    def cpus_needed(self) -> int:
        """How many of its CPUs it can use: one for each of its threads, one on an accelerator's host."""
        used = self.record.threads
        return 1 if used is None or self.cell.device != "cpu" else min(len(used.cpus), used.requested)

    @property
    def taken_most(self) -> float:
        """Which fraction of its CPUs' time others took in any block at most; infinite where a read failed.

        It is found in a fifth of the time of `taken`, and on a quiet machine it is below every limit.
        """
        if self._taken_most is None:
            counters: Mapping[str, list[int]] = self.blocks.counters  # type: ignore[assignment]
            busy_ns, own_ns = counters.get("machine.busy_ns"), counters.get("process.cpu_ns")
            self._taken_most, cpus = 0.0, self.cpus
            if busy_ns and own_ns and cpus:
                try:
                    others_ns, stolen_ns = max(map(sub, busy_ns, own_ns)), max(counters.get("machine.steal_ns") or (0,))
                    self._taken_most = (max(0, others_ns) + max(0, stolen_ns)) / (cpus * min(self.blocks.span_ns))
                except TypeError:
                    self._taken_most = math.inf
        return self._taken_most

    @property
    def is_counted(self) -> bool:
        """Whether what others took was counted."""
        counters = self.blocks.counters
        return bool(self.cpus and self.blocks.steps and "machine.busy_ns" in counters and "process.cpu_ns" in counters)

    @property
    def taken(self) -> Sequence[BlockTaken]:
        """What others took in each block; empty where it was not counted.

        Busy time of the CPUs, less that of the measured process and its children, plus what the hypervisor took. It is
        0 where enough CPUs were idle.
        """
        if self._taken is None:
            self._taken = self._find_taken() if self.is_counted else ()
        return self._taken

    def _find_taken(self) -> list[BlockTaken]:
        cpus, needed, none = self.cpus, self.cpus_needed, repeat(None)
        columns = [self.blocks.counters.get(name, none) for name in CPU_COUNTERS]
        taken = list[BlockTaken]()
        for span_ns, busy_ns, own_ns, children_ns, steal_ns in zip(self.blocks.span_ns, *columns, strict=False):
            if busy_ns is None or own_ns is None:
                taken.append(NOTHING_TAKEN)
                continue
            capacity_ns, others_ns = span_ns * cpus, busy_ns - own_ns - (children_ns or 0)
            stolen_ns = max(0, steal_ns or 0)
            spare_blocks = False
            if needed == cpus:
                spare_blocks = capacity_ns - busy_ns - stolen_ns >= IDLE_MOST * capacity_ns
            elif capacity_ns - others_ns - stolen_ns >= (1 - IDLE_MOST) * span_ns * needed:
                # Its own time and the idle time together are all that it can use, and it had them.
                others_ns = stolen_ns = 0
            taken.append((others_ns, stolen_ns, capacity_ns, spare_blocks))
        return taken

    @property
    def taken_in_all(self) -> Taken:
        """What others took in all blocks together."""
        counters: Mapping[str, list[int]] = self.blocks.counters  # type: ignore[assignment]
        cpus = self.cpus
        if self._taken is None and self.is_counted and self.cpus_needed == cpus:
            # No block needs a look of its own where no read failed.
            with suppress(TypeError):
                own_ns = sum(counters["process.cpu_ns"]) + sum(counters.get("process.children_ns", ()))
                steal_ns = counters.get("machine.steal_ns", ())
                stolen_ns = sum([ns for ns in steal_ns if ns > 0]) if any(steal_ns) else 0
                return Taken(sum(counters["machine.busy_ns"]) - own_ns, stolen_ns, cpus * sum(self.blocks.span_ns))
        return taken_together(self.taken)

    @property
    def taken_in_counting(self) -> Sequence[BlockTaken]:
        """What others took in each block that counts; empty where it was not counted."""
        if self.counting is self.blocks:
            return self.taken
        if self.counting is NO_BLOCKS:
            return ()
        cycles = zip(self.taken, self.blocks.cycle, strict=False)
        return [taken for taken, cycle in cycles if cycle not in self.left_out]

    def times_ns(self, by: By = "step") -> list[float]:
        """Return the time of each block that counts; nan where no step was waited for by itself."""
        return times_ns(self.counting, by)

    def time_ns(self, by: By = "step") -> float:
        """Return the step time, or latency: the median over its blocks; nan without any."""
        return middle(self.times_ns(by))

    @property
    def mean_step_ns(self) -> float:
        """The whole time of its blocks over their steps: of a fit, and what rare stalls add to; nan without any."""
        steps = sum(self.counting.steps)
        return sum(self.counting.duration_ns) / steps if steps else math.nan

    @property
    def pipeline_ratio(self) -> float | None:
        """The time of a fit's steps over what as many resident steps took in the references around each block."""
        steps, fit = self.counting.steps, self.record.fit
        if fit is None or len(fit.reference_ns) != len(steps) + 1:
            return None
        around = zip(steps, fit.reference_ns[:-1], fit.reference_ns[1:], strict=True)
        resident_ns = sum(count * (before + after) / 2 for count, before, after in around)
        return sum(self.counting.duration_ns) / resident_ns

    def rows(self) -> Iterator[Block]:
        """Yield every block with all that is known of it."""
        blocks = self.blocks
        # Lists that only accelerators have are empty on a CPU.
        columns = {name: known for name in COLUMNS if (known := getattr(blocks, name))} | blocks.counters
        taken, reasons = self.taken or repeat(NOTHING_TAKEN), self.disturbed_by or repeat(None)
        times, recorded = times_ns(blocks), zip(*columns.values(), strict=True)
        every = zip(
            blocks.cycle, blocks.begin_ns, blocks.span_ns, times, blocks.steps, recorded, taken, reasons, strict=False
        )
        for cycle, begin_ns, span_ns, step_ns, steps, values, of_block, why in every:
            is_clean, by_others = cycle not in self.left_out, Taken(*of_block)
            yield Block(
                cycle=cycle,
                begin_ns=begin_ns,
                span_ns=span_ns,
                step_ns=step_ns,
                steps=steps,
                recorded=dict(zip(columns, values, strict=True)),
                others=by_others.fraction if by_others.capacity_ns else None,
                disturbed_by=why,
                clean=is_clean,
                counts=self.counting is blocks or (self.counting is not NO_BLOCKS and is_clean),
                slow=None if self.slow is None else self.slow.get(cycle),
            )


@dataclass(eq=False)
class BlockTable:
    """The launches of a run, cell by cell in its profile's order."""

    by_cell: dict[str, list[LaunchRow]]

    @classmethod
    def of(cls, results: Iterable[CellResult]) -> BlockTable:
        """Return the table of some cells; their profile may be of a run that is not over."""
        table = cls(
            {
                result.key: [LaunchRow(result.cell, launch, launch.blocks) for launch in result.launches]
                for result in results
            }
        )
        table._find_shared_processes()
        return table

    def _find_shared_processes(self) -> None:
        held: dict[tuple[int, str], list[LaunchRow]] = defaultdict(list)
        for launch in self:
            record = launch.record
            held[record.round, record.process].append(launch)
        for launches in held.values():
            if len({launch.record.cell_key for launch in launches}) < 2:  # noqa: PLR2004 - several
                continue
            begins_ns: dict[str, int] = {}
            for launch in launches:
                launch.is_shared = True
                for phase in launch.record.phases:
                    if phase.name == "first_step":
                        begins_ns.setdefault(launch.record.cell_key, phase.begin_ns)
            first_ns = min(begins_ns.values(), default=0)
            for launch in launches:
                launch.is_warm = first_ns < begins_ns.get(launch.record.cell_key, 0)

    def __iter__(self) -> Iterator[LaunchRow]:
        for launches in self.by_cell.values():
            yield from launches


def showing_start(launches: Iterable[LaunchRow]) -> list[LaunchRow]:
    """Return the launches that show how a program starts: that compile anew, in new processes where any is in one."""
    anew = [launch for launch in launches if not launch.record.reused_compilation]
    return [launch for launch in anew if not launch.is_warm] or anew


def times_ns(blocks: Blocks, by: By = "step") -> list[float]:
    """Return the time of each of some blocks; nan where no step was waited for by itself."""
    if by == "step":
        return [*map(truediv, blocks.duration_ns, blocks.steps)]
    return [math.nan if median_ns is None else float(median_ns) for median_ns in blocks.median_ns]


def middle(values: Iterable[float]) -> float:
    """Return the median of those values that are above zero; nan where none is."""
    positive = sorted([value for value in values if value > 0])
    half = len(positive) // 2
    if len(positive) % 2:
        return positive[half]
    return (positive[half - 1] + positive[half]) / 2 if positive else math.nan


def known_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of those values that are known; null where none is."""
    numbers = [number for number in values if number is not None]
    return statistics.fmean(numbers) if numbers else None


class Counted(NamedTuple):
    """The blocks of several launches in which every counter that was asked for could be read, together."""

    steps: int  # all that ran between the edges of the blocks
    total_ns: float
    sums: list[float]  # how much each counter grew by

    @property
    def per_step(self) -> list[float]:
        """How much each counter grew by in a step."""
        return [grown / self.steps for grown in self.sums]


def counted(
    launches: Iterable[LaunchRow], *names: str, within: Collection[BlockId] | None = None, in_all: bool = False
) -> Counted | None:
    """Return the blocks that count in which all counters of `names` were read; None where there are none.

    Args:
        launches: of one cell in one group.
        names: of counters.
        within: these blocks of them alone.
        in_all: of all blocks, whether they count or not.
    """
    steps, total_ns, sums = 0, 0, [0] * len(names)
    for launch in launches:
        blocks = launch.blocks if in_all else launch.counting
        columns: list[Sequence[Any]] = [*map(blocks.counters.get, names)]  # type: ignore[list-item]
        if None in columns:
            continue
        try:
            grown = [*map(sum, columns)] if within is None else []
        except TypeError:  # a reading failed
            grown = []
        if not grown:
            is_in = [within is None or (launch.round, cycle) in within for cycle in blocks.cycle]
            keep = [chosen and None not in row for chosen, *row in zip(is_in, *columns, strict=True)]
            blocks, grown = blocks.chosen(keep), [sum(compress(column, keep)) for column in columns]
        steps += sum(blocks.lead_in) + sum(blocks.steps) + sum(blocks.waited_steps)
        total_ns += sum(blocks.span_ns)
        sums = [*map(add, sums, grown)]
    return Counted(steps, float(total_ns), [*map(float, sums)]) if steps else None


class SustainedStep(NamedTuple):
    """The step of the same launches in bursts, and in the long block that joules belong to."""

    burst_ns: float
    sustained_ns: float

    @property
    def difference_pct(self) -> float:
        """By how much the sustained step is longer."""
        return 100 * (self.sustained_ns / self.burst_ns - 1)


def sustained_step(launches: Iterable[LaunchRow]) -> SustainedStep | None:
    """Return the geometric means over the launches that have both steps; None where none has."""
    both_ns = []
    for launch in (launch for launch in launches if launch.has_counting and launch.energy):
        long_blocks = ((known.block_ns, known.steps or 0) for known in launch.energy if known.kind == "steady")
        sustained_ns = next((block_ns / steps for block_ns, steps in long_blocks if block_ns > 0 and steps > 0), None)
        if sustained_ns is not None:
            both_ns.append((launch.time_ns(), sustained_ns))
    return SustainedStep(*map(statistics.geometric_mean, zip(*both_ns, strict=True))) if both_ns else None
