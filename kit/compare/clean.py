"""Which blocks count: those of cycles in which other programs left the cell's CPUs, and its accelerator, alone.

    cycle                    1     2     3     4     5     6
    torch   others took      2 %   1 %  48 %   3 %   0 %   2 %
    jax     others took      1 %   2 %   3 %  51 %   1 %   1 %
                             ✓     ✓     –     –     ✓     ✓      a cycle counts when each of its blocks is clean

The rule reads counters of the machine; it never reads how long a step took. So it does not favour the cell that happens
to be fast: docs/explanation/method.md has the argument, its simulation and measurements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from kit.compare.table import NO_BLOCKS, BlockId, BlockTable, BlockTaken, LaunchRow, Taken, counted, taken_together
from kit.profile.cell import Cell
from kit.profile.schema import Blocks, CellResult, Launch
from kit.stats.estimate import RULE, RULE_OF_ALL_CYCLES

# Others may take this fraction of the usable CPUs' time in a clean block. On quiet machines blocks show up to 6 % (99
# of 100), which is the resolution of the kernel's ticks and the system's own work. With 5 % one quiet cycle in twenty
# would be measured again; with 20 % intervals beside neighbors were no narrower, and less often right
# (docs/explanation/method.md).
OTHERS_MOST = 0.10
# The kernel shows busy time in ticks of 1/USER_HZ, which is 100 on Linux; a tick belongs to what runs when it ends.
TICK_NS = 10_000_000
# Ticks that a clean block may show by chance: in a short block they are more than OTHERS_MOST.
TICKS_BY_CHANCE = 3
# The mean over the clean cycles of a round, in which stray ticks cancel: quiet rounds had up to 4 %. A neighbor that
# always takes 9 % was seen in no block, and would make a ratio of unlike cells wrong by 15 % (bench_clean_bias.py).
OTHERS_MEAN_MOST = 0.05
CPUS_MEAN = "cpus_mean"  # disturbs a block that has the most of what others took, where the mean is too large
# Clean cycles that a round needs: the median of fewer is the luck of one block.
CYCLES_LEAST = 3
# How many processes of others were on the cell's accelerators when the block ended.
DEVICE_OTHERS = "device.other_processes"
# A fraction of the time of the CPUs. From here on the mean step is longer than the median one by more than is called
# the same; without a quota it is exactly nothing.
THROTTLED_LEAST_PCT = 1.0
# A member that has its CPUs to itself loses under 2 % to the system's own work; beside one busy program on two CPUs
# it is 50 %.
TAKEN_LEAST_PCT = 10.0
# What others take falls on unlike members unlike: beside one busy program on two CPUs PyTorch's threads wait for each
# other, JAX' do not. Inference that PyTorch does 1.6 times as fast was then "shown" to be 23 times as slow, and more
# rounds only narrowed that: from here on there is no verdict between them. At 17 % verdicts of the reference profiles
# are those of quiet runs.
TAKEN_BAD_PCT = 25.0


class RoundCycles(NamedTuple):
    """The cycles of one group in one round."""

    ran: int  # 1 for a fit, which has no cycles
    clean: int
    needed: int  # clean ones that make the round count
    reasons: Collection[str]  # keys of DISTURBANCES, and CPUS_MEAN: what disturbed it; none: nothing
    launches: Sequence[LaunchRow]  # that gave a number

    @property
    def others(self) -> dict[str, float]:
        """Key of the cell -> mean fraction of its CPUs' time that others took; 0: not known."""
        return {launch.record.cell_key: launch.taken_in_all.fraction for launch in self.launches}

    @property
    def counts(self) -> bool:
        """Whether so many are clean that the round is used."""
        return self.clean >= self.needed


@dataclass(frozen=True)
class CleanRounds:
    """Which rounds of each group count; where a group has none, its figures are those of its quietest round."""

    by_group: Mapping[str, Mapping[int, RoundCycles]]
    is_all: bool = False  # every cycle counts, whatever others took

    @property
    def rule(self) -> str:
        """The name of the rule by which its cycles count."""
        return RULE_OF_ALL_CYCLES if self.is_all else RULE

    @cached_property
    def disturbed(self) -> set[str]:
        """The keys of the groups in which no round counts."""
        groups = () if self.is_all else self.by_group.items()
        return {group for group, numbers in groups if not any(cycles.counts for cycles in numbers.values())}

    def others_pct(self, figures: Iterable[LaunchRow]) -> float | None:
        """Return what others took during the figures of a cell, in percent; None where these are of clean cycles."""
        fractions = [
            launch.taken_in_all.fraction
            for launch in (figures if self.disturbed else ())
            if launch.group in self.disturbed
        ]
        return 100 * max(fractions) if fractions else None


def count_blocks(
    results: Iterable[CellResult], planned: int, *, all_cycles: bool = False
) -> tuple[BlockTable, CleanRounds]:
    """Return the table of some cells, with what others took and which blocks count, and the rounds that do.

    Args:
        results: of a profile, or of a run that is not over.
        planned: cycles of a round.
        all_cycles: cycles that others disturbed count, too; the rounds say how many these are.
    """
    table = BlockTable.of(results)
    measured: dict[tuple[str, int], list[LaunchRow]] = defaultdict(list)
    for launch in table:
        record = launch.record
        launch.energy = record.energy
        if record.failure is None and launch.blocks.steps:
            launch.counting = launch.blocks
            launch.gives_figures = True
            measured[record.group, record.round].append(launch)
        else:
            fill_disturbances(launch)
    by_group: dict[str, dict[int, RoundCycles]] = defaultdict(dict)
    for (group, number), launches in measured.items():
        by_group[group][number] = clean_cycles(launches, planned)
    rounds = CleanRounds(by_group, all_cycles)
    is_quiet = all(cycles.counts for numbers in by_group.values() for cycles in numbers.values())
    if not all_cycles and not (is_quiet and all(not launch.left_out for launch in table)):
        for launches in table.by_cell.values():
            _leave_out(launches, rounds)
    return table, rounds


def _leave_out(launches: Sequence[LaunchRow], rounds: CleanRounds) -> None:
    """Leave out the blocks of a cell that do not count; all of a group that has no round that counts stay."""
    has_disturbed, dropped = False, list[LaunchRow]()
    for launch in launches:
        if launch.group in rounds.disturbed:
            has_disturbed = True
        elif launch.has_counting and not rounds.by_group[launch.group][launch.round].counts:
            dropped.append(launch)
        elif launch.left_out:
            launch.counting = launch.blocks.chosen([cycle not in launch.left_out for cycle in launch.blocks.cycle])
    for launch in dropped:
        launch.counting, launch.gives_figures = NO_BLOCKS, False
    counting = [launch for launch in launches if launch.has_counting and launch.group not in rounds.disturbed]
    if dropped and any(map(_has_joules, counting)):  # else joules of a disturbed round are better than none
        for launch in dropped:
            launch.energy = ()
    if not has_disturbed:
        return
    if counting:
        for launch in launches:
            launch.is_listed = launch.group not in rounds.disturbed
            launch.gives_figures = launch.gives_figures and launch.is_listed
    else:
        _choose_quietest(launches, rounds)


def _choose_quietest(launches: Sequence[LaunchRow], rounds: CleanRounds) -> None:
    """Take the figures of a cell of disturbed groups alone from the quietest round of each."""

    def unrest(launch: LaunchRow) -> tuple[float, float]:
        cycles = rounds.by_group[launch.group][launch.round]
        return max(cycles.others.values()), -cycles.clean / cycles.ran

    quietest: dict[str, LaunchRow] = {}
    for launch in sorted((launch for launch in launches if launch.has_counting), key=unrest):
        quietest.setdefault(launch.group, launch)
    has_energy = any(map(_has_joules, quietest.values()))
    for launch in launches:
        if launch.has_counting and launch is not quietest[launch.group]:
            launch.gives_figures, launch.is_listed = False, not has_energy


def _has_joules(launch: LaunchRow) -> bool:
    return any(energy.joules_j is not None and energy.kind != "compile" for energy in launch.record.energy)


# What disturbs a block, by the word for it -> in which blocks of a launch it did; of several the first is said.
# A further reason is a further entry.
DISTURBANCES: dict[str, Callable[[LaunchRow], Sequence[bool]]] = {
    "cpus": lambda launch: _lacked_cpus(launch.taken) if launch.taken_most > OTHERS_MOST else (),
    "device": lambda launch: [(count or 0) > 0 for count in launch.blocks.counters.get(DEVICE_OTHERS, ())],
}


def _lacked_cpus(taken: Sequence[BlockTaken]) -> list[bool]:
    """Return in which blocks others took more than a clean one may show; what is taken is at most all."""
    chance_ns = TICKS_BY_CHANCE * TICK_NS
    return [
        (taken_ns := max(0, others_ns) + stolen_ns) > OTHERS_MOST * capacity_ns
        and min(taken_ns, capacity_ns) > chance_ns
        for others_ns, stolen_ns, capacity_ns, _ in taken
    ]


def fill_disturbances(launch: LaunchRow) -> None:
    """Fill by what others disturbed a launch in each of its blocks."""
    disturbed_by: list[str | None] = []
    for name, check in DISTURBANCES.items():
        flags = check(launch)
        if True in flags:
            before = disturbed_by or [None] * len(flags)
            disturbed_by = [why or (name if flag else None) for why, flag in zip(before, flags, strict=True)]
    launch.disturbed_by = disturbed_by


def clean_cycles(launches: Sequence[LaunchRow], planned: int) -> RoundCycles:
    """Return the cycles of a group in one round, and fill by what its blocks were disturbed and which are left out.

    A cycle of cells that took turns is clean when all of its blocks are, and others took little of all clean ones
    together: one that always takes a little is seen in no single block. Cells that ran one after another have no
    common cycles. Fits have none at all: they are clean where others took little of each as a whole.

    Args:
        launches: of each member of the group; those that gave a number.
        planned: cycles of a round.
    """
    for launch in launches:
        fill_disturbances(launch)
    if any(not launch.cell.in_blocks for launch in launches):
        reasons = {name for launch in launches for name, share in _disturbed_shares(launch) if share > OTHERS_MOST}
        for launch in launches:
            launch.left_out = frozenset(launch.blocks.cycle) if reasons else ()
        return RoundCycles(1, int(not reasons), 1, reasons, launches)
    cycles = [launch.blocks.cycle for launch in launches]
    ran, clean, reasons = len(set().union(*cycles)), min(map(len, cycles)), set[str]()
    # Blocks of which none lost much did not lose much together, either.
    totals = [launch.taken_in_all for launch in launches if launch.taken_most > OTHERS_MEAN_MOST]
    if any(launch.disturbed_by for launch in launches) or not all(map(_is_little, totals)):
        _leave_out_cycles(launches)
        reasons = {why for launch in launches for why in launch.disturbed_by if why}
        clean = min(sum(cycle not in launch.left_out for cycle in launch.blocks.cycle) for launch in launches)
    return RoundCycles(ran, clean, min(CYCLES_LEAST, planned, ran), reasons, launches)


def _disturbed_shares(launch: LaunchRow) -> Iterator[tuple[str, float]]:
    """Yield what disturbs a fit, and of how much of it: of others' CPU time the fraction, else a share of blocks."""
    yield "cpus", launch.taken_in_all.fraction
    for name, check in DISTURBANCES.items():
        if name != "cpus":
            yield name, fmean(check(launch) or [False])


def _is_little(taken: Taken) -> bool:
    """Whether others took little of all clean blocks together; ticks may show more than that by chance."""
    others_ns, stolen_ns, capacity_ns, _ = taken
    taken_ns = min(max(0, others_ns) + stolen_ns, capacity_ns)
    return taken_ns <= max(OTHERS_MEAN_MOST * capacity_ns, TICKS_BY_CHANCE * TICK_NS)


def _leave_out_cycles(launches: Sequence[LaunchRow]) -> None:
    """Fill which cycles of some launches are not clean: those with a disturbed block, and those that the mean asks."""
    # Cells that took turns share a cycle; of others each member has its own.
    turns = [-1 if launch.takes_turns else member for member, launch in enumerate(launches)]
    left_out = {
        (cycle, turn)
        for launch, turn in zip(launches, turns, strict=True)
        for cycle, why in zip(launch.blocks.cycle, launch.disturbed_by, strict=False)
        if why
    }
    while True:
        clean = [
            [
                (taken, cycle)
                for taken, cycle in zip(launch.taken, launch.blocks.cycle, strict=False)
                if (cycle, turn) not in left_out
            ]
            for launch, turn in zip(launches, turns, strict=True)
        ]
        if all(_is_little(taken_together([taken for taken, _ in blocks])) for blocks in clean):
            break
        # The block of which others took most; of equal ones the first.
        _, of_member, of_cycle = max(
            (Taken(*taken).fraction, -member, -cycle) for member, blocks in enumerate(clean) for taken, cycle in blocks
        )
        member, cycle = -of_member, -of_cycle
        left_out.add((cycle, turns[member]))
        worst = launches[member]
        known = worst.disturbed_by or [None] * len(worst.blocks.cycle)
        worst.disturbed_by = [
            CPUS_MEAN if at == cycle else why for at, why in zip(worst.blocks.cycle, known, strict=True)
        ]
    for launch, turn in zip(launches, turns, strict=True):
        launch.left_out = {cycle for cycle in launch.blocks.cycle if (cycle, turn) in left_out}


def disturbance(cell: Cell, launch: Launch, blocks: Blocks) -> float | None:
    """Return which fraction of its CPUs' time others took from a cell in one block that they disturbed; None: clean.

    `blocks` has this block alone, and need not be in its launch yet.
    """
    row = LaunchRow(cell, launch, blocks)
    fill_disturbances(row)
    return row.taken_in_all.fraction if any(row.disturbed_by) else None


class CpuLoss(NamedTuple):
    """Fractions of the time of a cell's CPUs, in percent of all of them; null where they were not counted."""

    cpus: int
    throttled_pct: float | None
    others_pct: float | None = None
    steal_pct: float | None = None

    @property
    def contention_pct(self) -> float:
        """What others and the hypervisor took together."""
        return (self.others_pct or 0.0) + (self.steal_pct or 0.0)

    @property
    def is_contended(self) -> bool:
        """Whether they took more than the system's own work does."""
        return self.contention_pct >= TAKEN_LEAST_PCT


def cpu_loss(
    launches: Collection[LaunchRow], *, within: Collection[BlockId] | None = None, in_all: bool = False
) -> CpuLoss | None:
    """Return what these launches of a cell lost in their blocks that count; None where their CPUs are not known.

    Args:
        launches: of one cell.
        within: in these blocks of them alone.
        in_all: in all blocks, whether they count or not.
    """
    cpus = next((len(launch.record.threads.cpus) for launch in launches if launch.record.threads is not None), 0)
    if not cpus:
        return None
    # The kernel counts each throttled CPU by itself; other processes of the group may be throttled, too.
    throttled = counted(launches, "cgroup.throttled_ns", within=within, in_all=in_all)
    throttled_pct = None if throttled is None else min(100.0, 100 * throttled.sums[0] / (throttled.total_ns * cpus))
    others_ns, stolen_ns, capacity_ns, _ = _lost(launches, within, in_all=in_all)
    if not capacity_ns:
        return CpuLoss(cpus, throttled_pct)
    # Ticks may miss the cell's own time in one block and count it twice in the next: clipped when summed up.
    return CpuLoss(cpus, throttled_pct, max(0.0, 100 * others_ns / capacity_ns), 100 * stolen_ns / capacity_ns)


def throttled_pct(launch: LaunchRow) -> float:
    """Return for how long a quota stopped the CPUs of a launch in its blocks that count; 0: for none, or not known."""
    stopped_ns, used = launch.counting.counters.get("cgroup.throttled_ns", ()), launch.record.threads
    lost = cpu_loss([launch]) if used is not None and any(stopped_ns) else None
    return 0.0 if lost is None else lost.throttled_pct or 0.0


def contended_pct(launches: Collection[LaunchRow]) -> float | None:
    """Return what others took of the CPUs' time in the blocks that count; None: no more than the system's own work."""
    if all(100 * launch.taken_most < TAKEN_LEAST_PCT for launch in launches):
        return None
    taken_pct = contention_pct(launches)
    return taken_pct if taken_pct >= TAKEN_LEAST_PCT else None


def contention_pct(launches: Collection[LaunchRow]) -> float:
    """Return what others took of the CPUs' time in the blocks of some launches that count; 0: it was not counted."""
    others_ns, stolen_ns, capacity_ns, _ = _lost(launches)
    return max(0.0, 100 * others_ns / capacity_ns) + 100 * stolen_ns / capacity_ns if capacity_ns else 0.0


def _lost(launches: Iterable[LaunchRow], within: Collection[BlockId] | None = None, *, in_all: bool = False) -> Taken:
    """Return what others took in some blocks; nothing in those in which enough CPUs were idle."""
    others_ns = stolen_ns = capacity_ns = 0.0
    for launch in launches:
        taken = launch.taken if in_all else launch.taken_in_counting
        if within is not None:
            cycles = (launch.blocks if in_all else launch.counting).cycle
            taken = [known for known, cycle in zip(taken, cycles, strict=False) if (launch.round, cycle) in within]
        for others, stolen, capacity, spare_blocks in taken:
            capacity_ns += capacity
            if not spare_blocks:
                others_ns += others
                stolen_ns += stolen
    return Taken(others_ns, stolen_ns, capacity_ns)
