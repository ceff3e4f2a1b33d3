"""Which cycles count: those in which other programs left the cell's CPUs, and its accelerator, alone.

    cycle                    1     2     3     4     5     6
    torch   others took      2 %   1 %  48 %   3 %   0 %   2 %
    jax     others took      1 %   2 %   3 %  51 %   1 %   1 %
                             ✓     ✓     –     –     ✓     ✓      a cycle counts when each of its blocks is clean

The rule reads counters of the machine; it never reads how long a step took. So it does not favour the cell that happens
to be fast: docs/explanation/method.md has the argument, its simulation and measurements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, repeat
from operator import add
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from kit.compare.blocks import BlockId, counted
from kit.devices.limits import OTHERS_MOST
from kit.profile.cell import Cell
from kit.profile.launch import Blocks, Launch
from kit.profile.schema import CellResult, Profile
from kit.stats.estimate import RULE, RULE_OF_ALL_CYCLES

# The kernel shows busy time in ticks of 1/USER_HZ, which is 100 on Linux; a tick belongs to what runs when it ends.
TICK_NS = 10_000_000
# Ticks that a clean block may show by chance: in a short block they are more than OTHERS_MOST.
TICKS_BY_CHANCE = 3
# A cell lost nothing to others while it had, with the CPUs that were idle, so nearly all that it can use.
IDLE_MOST = 0.05
# The mean over the clean cycles of a round, in which stray ticks cancel: quiet rounds had up to 4 %. A neighbor that
# always takes 9 % was seen in no block, and would make a ratio of unlike cells wrong by 15 % (bench_clean_bias.py).
OTHERS_MEAN_MOST = 0.05
# Clean cycles that a round needs: the median of fewer is the luck of one block.
CYCLES_LEAST = 3
# This counter of `Blocks.counters` is the CPU time of the process' children.
CHILDREN = "process.children_ns"
# This one is how many processes of others were on the cell's accelerators when the block ended.
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
    lacked_cpus: bool  # whether others took CPUs; where they did not, processes of others computed on the device
    others: Mapping[str, float]  # key of the cell -> mean fraction of its CPUs' time that others took; 0: not known

    @property
    def counts(self) -> bool:
        """Whether so many are clean that the round is used."""
        return self.clean >= self.needed


@dataclass(frozen=True)
class CountedCycles:
    """A profile without the cycles that others disturbed.

    A group without a single round that counts keeps all of its cycles; its figures are those of its quietest round.
    """

    profile: Profile
    rounds: Mapping[str, Mapping[int, RoundCycles]]  # key of the group -> round; of all cycles: empty
    rule: str

    @cached_property
    def disturbed(self) -> set[str]:
        """The keys of the groups in which no round counts."""
        return _disturbed(self.rounds)

    def is_disturbed(self, group: str) -> bool:
        """Return whether no round of a group counts."""
        return group in self.disturbed

    def lacked_cpus(self, group: str) -> bool:
        """Return whether no round of a group counts, and in each of them others took CPUs."""
        return group in self.disturbed and all(cycles.lacked_cpus for cycles in self.rounds[group].values())

    def figure_launches(self, result: CellResult) -> list[Launch]:
        """Return the launches that the figures of a cell come from, with those that failed."""
        clean = [launch for launch in result.launches if launch.group not in self.disturbed]
        if len(clean) == len(result.launches) or any(launch.gave_number for launch in clean):
            return clean
        measured = [launch for launch in result.launches if launch.gave_number]

        def disturbance(launch: Launch) -> tuple[float, float]:
            cycles = self.rounds[launch.group][launch.round]
            return max(cycles.others.values()), -cycles.clean / cycles.ran

        quietest = {
            group: min((launch for launch in measured if launch.group == group), key=disturbance)
            for group in {launch.group for launch in measured}
        }
        has_energy = any(map(_has_joules, quietest.values()))
        return [
            launch
            if not launch.gave_number or launch is quietest[launch.group]
            else _without_blocks(launch, has_energy)
            for launch in result.launches
        ]

    def others_pct(self, result: CellResult) -> float | None:
        """Return what others took during the figures of a cell, in percent; None where these are of clean cycles."""
        if not self.disturbed:
            return None
        launches = [launch for launch in self.figure_launches(result) if launch.gave_number]
        fractions = [
            self.rounds[launch.group][launch.round].others[result.key]
            for launch in launches
            if launch.group in self.disturbed
        ]
        return 100 * max(fractions) if fractions else None


class _Taken(NamedTuple):
    """What others took from a cell in one block."""

    others_ns: float  # CPU time of others; ticks that a block misses count in the next: it may be below 0
    stolen_ns: float  # by the hypervisor
    capacity_ns: float  # of the cell's CPUs

    @property
    def fraction(self) -> float:
        """Which fraction of the CPUs' time others took."""
        return min(1.0, (max(0.0, self.others_ns) + self.stolen_ns) / self.capacity_ns)

    @property
    def chance(self) -> float:
        """Which fraction ticks may show by chance."""
        return TICKS_BY_CHANCE * TICK_NS / self.capacity_ns

    def left_enough(self, fraction: float) -> bool:
        """Return whether a cell that can use so much of its CPUs had it: in its own time and the idle time together."""
        could_have_ns = self.capacity_ns - self.others_ns - self.stolen_ns
        return could_have_ns >= (1 - IDLE_MOST) * self.capacity_ns * fraction


def disturbances(cell: Cell, launch: Launch, blocks: Blocks) -> list[float | None]:
    """Return which fraction of its CPUs' time others took from a cell in each block that they disturbed; None: clean.

    Busy time of the CPUs, less that of the measured process and its children, plus what the hypervisor took. It is 0
    where enough CPUs were idle: a cell can use one for each of its threads, one on an accelerator's host. What is not
    known disturbs nothing.

    Args:
        cell: that was measured.
        launch: of it.
        blocks: of the launch; they need not be in it yet.
    """
    return [
        None if not (on_device or _lacked_cpus(taken)) else 0.0 if taken is None else taken.fraction
        for taken, on_device in zip(_taken(cell, launch, blocks), _has_device_others(blocks), strict=True)
    ]


def count_cycles(profile: Profile, *, all_cycles: bool = False) -> CountedCycles:
    """Return a profile with the cycles that count; the profile itself stays as it is.

    Args:
        profile: whole, as it was read.
        all_cycles: every cycle counts.
    """
    if all_cycles:
        names = ("p50_ns", "p95_ns", "p99_ns")
        cells = [
            result
            if result.p50_ns is None
            else replace(result, **dict(zip(names, result.all_cycles_ns or [], strict=False)))
            for result in profile.cells
        ]
        return CountedCycles(replace(profile, cells=cells), {}, RULE_OF_ALL_CYCLES)
    cells, rounds = count_results(profile.cells, profile.suite.plan.cycles)
    return CountedCycles(replace(profile, cells=cells), rounds, RULE)


def count_results(
    results: Sequence[CellResult], planned: int
) -> tuple[list[CellResult], dict[str, dict[int, RoundCycles]]]:
    """Return cells with the cycles that count, and what was counted: key of the group -> round.

    `planned`: cycles of a round.
    """
    by_round: dict[str, dict[int, list[tuple[Cell, Launch]]]] = {}
    for result in results:
        for launch in result.launches:
            if launch.gave_number:
                by_round.setdefault(launch.group, {}).setdefault(launch.round, []).append((result.cell, launch))
    rounds: dict[str, dict[int, RoundCycles]] = {}
    clean: dict[int, list[bool]] = {}  # id of a launch -> which of its blocks are in clean cycles
    for group, members in by_round.items():
        for number, measured in members.items():
            rounds.setdefault(group, {})[number], flags = cycles_of(measured, planned)
            clean |= {id(launch): flag for (_, launch), flag in zip(measured, flags, strict=True)}
    disturbed = _disturbed(rounds)
    cells = []
    for result in results:
        in_question = [launch for launch in result.launches if id(launch) in clean and launch.group not in disturbed]
        left_out = [launch for launch in in_question if not rounds[launch.group][launch.round].counts]
        dropped = {*map(id, left_out)}
        has_energy = bool(dropped) and any(_has_joules(launch) for launch in in_question if id(launch) not in dropped)
        kept = {id(launch): _without_blocks(launch, has_energy) for launch in left_out}
        for launch in in_question:
            if id(launch) not in dropped and not all(clean[id(launch)]):
                kept[id(launch)] = replace(launch, blocks=launch.blocks.chosen(clean[id(launch)]))
        if kept or any(launch.group in disturbed for launch in result.launches):
            # Percentiles without a median beside them are of all cycles: what they are of those that count is unknown.
            unknown = {"p95_ns": None, "p99_ns": None} if result.p50_ns is None else {}
            launches = [kept.get(id(launch), launch) for launch in result.launches]
            result = replace(result, launches=launches, **unknown)  # noqa: PLW2901 - the same cell
        cells.append(result)
    return cells, rounds


def cycles_of(measured: Sequence[tuple[Cell, Launch]], planned: int) -> tuple[RoundCycles, list[list[bool]]]:
    """Return the cycles of a group in one round, and which blocks of each launch are in clean ones.

    A cycle of cells that took turns is clean when all of its blocks are, and others took little of all clean ones
    together: one that always takes a little is seen in no single block. Cells that ran one after another have no
    common cycles. Fits have none at all: they are clean where others took little of each as a whole.

    Args:
        measured: cell and launch of each member of the group; those that gave a number.
        planned: cycles of a round.
    """
    taken = [_taken(cell, launch, launch.blocks) for cell, launch in measured]
    on_device = [_has_device_others(launch.blocks) for _, launch in measured]
    lacked = [[*map(_lacked_cpus, blocks)] for blocks in taken]
    others = {launch.cell_key: _together(blocks)[0] for (_, launch), blocks in zip(measured, taken, strict=True)}
    if any(cell.task == "fit" for cell, _ in measured):
        lacked_cpus = max(others.values()) > OTHERS_MOST
        is_clean = not lacked_cpus and max(map(fmean, on_device)) <= OTHERS_MOST
        return RoundCycles(1, int(is_clean), 1, lacked_cpus, others), [[is_clean] * len(blocks) for blocks in taken]
    in_turn = [launch.turns == "blocks" for _, launch in measured]
    cycles = [launch.blocks.cycle for _, launch in measured]
    flags = [
        [not (by_cpus or by_device) for by_cpus, by_device in zip(*both, strict=True)]
        for both in zip(lacked, on_device, strict=True)
    ]
    disturbed = {
        cycle
        for numbers, clean, turns in zip(cycles, flags, in_turn, strict=True)
        if turns
        for cycle, is_clean in zip(numbers, clean, strict=True)
        if not is_clean
    }
    if disturbed:
        flags = [
            [cycle not in disturbed for cycle in numbers] if turns else clean
            for numbers, clean, turns in zip(cycles, flags, in_turn, strict=True)
        ]
    left = _without_worst(taken, cycles, in_turn, flags)
    lacked_cpus = any(map(any, lacked)) or left != flags
    ran = len(set().union(*cycles))
    return RoundCycles(ran, min(map(sum, left)), min(CYCLES_LEAST, planned, ran), lacked_cpus, others), left


def _without_worst(
    taken: Sequence[Sequence[_Taken | None]],
    cycles: Sequence[Sequence[int]],
    in_turn: Sequence[bool],
    flags: list[list[bool]],
) -> list[list[bool]]:
    """Return the flags without the cycles in which others took most, until they took little of all that are left."""
    while True:
        together = [_together([*compress(blocks, clean)]) for blocks, clean in zip(taken, flags, strict=True)]
        if all(fraction <= max(OTHERS_MEAN_MOST, chance) for fraction, chance in together):
            return flags
        _, member, worst = max(
            (block.fraction, -member, -cycle)
            for member, (blocks, numbers, clean) in enumerate(zip(taken, cycles, flags, strict=True))
            for block, cycle, is_clean in zip(blocks, numbers, clean, strict=True)
            if is_clean and block is not None
        )
        flags = [
            [is_clean and cycle != -worst for is_clean, cycle in zip(clean, cycles[index], strict=True)]
            if in_turn[index] or index == -member
            else clean
            for index, clean in enumerate(flags)
        ]


def _disturbed(rounds: Mapping[str, Mapping[int, RoundCycles]]) -> set[str]:
    """Return the keys of the groups in which no round counts."""
    return {group for group, numbers in rounds.items() if not any(cycles.counts for cycles in numbers.values())}


def _without_blocks(launch: Launch, has_energy: bool) -> Launch:
    """Return a launch that gives no number, and no joules where another launch of its cell `has_energy`."""
    return replace(launch, blocks=Blocks(), energy=[] if has_energy else launch.energy)


def _has_joules(launch: Launch) -> bool:
    return any(energy.joules_j is not None and energy.kind != "compile" for energy in launch.energy)


def _cpus_and_threads(cell: Cell, launch: Launch) -> tuple[int, int]:
    """Return how many CPUs a cell may use, 0: not known, and how many at once: one a thread, one on a device's host."""
    if launch.threads is None:
        return 0, 0 if cell.device == "cpu" else 1
    cpus = len(launch.threads.cpus)
    return cpus, min(cpus, launch.threads.requested) if cell.device == "cpu" else 1


def _taken(cell: Cell, launch: Launch, blocks: Blocks) -> list[_Taken | None]:
    """Return what others took in each block; None where it was not counted."""
    counters, nothing = blocks.counters, repeat(0)
    cpus, threads = _cpus_and_threads(cell, launch)
    if not cpus or "machine.busy_ns" not in counters or "process.cpu_ns" not in counters:
        return [None] * len(blocks.steps)
    columns = (
        counters["machine.busy_ns"],
        counters["process.cpu_ns"],
        counters.get(CHILDREN, nothing),
        counters.get("machine.steal_ns", nothing),
    )
    taken: list[_Taken | None] = []
    for span_ns, busy_ns, own_ns, children_ns, stolen_ns in zip(blocks.span_ns, *columns, strict=False):
        if busy_ns is None or own_ns is None:
            taken.append(None)
            continue
        block = _Taken(busy_ns - own_ns - (children_ns or 0), max(0, stolen_ns or 0), span_ns * cpus)
        had_all = threads < cpus and block.left_enough(threads / cpus)
        taken.append(block._replace(others_ns=0, stolen_ns=0) if had_all else block)
    return taken


def _lacked_cpus(taken: _Taken | None) -> bool:
    """Return whether others took more of a block than a clean one may show; what is not known is not disturbed."""
    return taken is not None and taken.fraction > OTHERS_MOST and taken.fraction > taken.chance


def _together(blocks: Sequence[_Taken | None]) -> tuple[float, float]:
    """Return which fraction others took of some blocks together, and which one ticks may show by chance.

    Both are 0 if nothing was counted. Over several blocks what ticks miss in one and count twice in the next cancels.
    """
    known = [block for block in blocks if block is not None]
    if not known:
        return 0.0, 0.0
    whole = _Taken(*map(sum, zip(*known, strict=True)))
    return whole.fraction, whole.chance


def _has_device_others(blocks: Blocks) -> list[bool]:
    """Return whether processes of others computed on the cell's accelerators when each block ended."""
    counts = blocks.counters.get(DEVICE_OTHERS)
    return [False] * len(blocks.steps) if counts is None else [(count or 0) > 0 for count in counts]


class CpuLoss(NamedTuple):
    """Fractions of the time of a cell's CPUs, in percent of all of them; null where they were not counted."""

    cpus: int
    throttled_pct: float | None
    others_pct: float | None
    steal_pct: float | None

    @property
    def is_throttled(self) -> bool:
        """Whether a quota kept the cell from its CPUs for longer than can be passed over."""
        return self.throttled_pct is not None and self.throttled_pct >= THROTTLED_LEAST_PCT

    @property
    def contention_pct(self) -> float:
        """What others and the hypervisor took together."""
        return (self.others_pct or 0.0) + (self.steal_pct or 0.0)

    @property
    def is_contended(self) -> bool:
        """Whether they took more than the system's own work does."""
        return self.contention_pct >= TAKEN_LEAST_PCT


def cpu_loss(cell: Cell, launches: Collection[Launch], within: Collection[BlockId] | None = None) -> CpuLoss | None:
    """Return what these launches of a cell lost in their blocks, or in some; None where their CPUs are not known."""
    recorded = [_cpus_and_threads(cell, launch) for launch in launches if launch.threads is not None]
    if not recorded or not recorded[0][0]:
        return None
    cpus, threads = recorded[0][0], min(threads for _, threads in recorded)
    throttled_pct = others_pct = steal_pct = None
    # The kernel counts each throttled CPU by itself; other processes of the group may be throttled, too.
    blocks = counted(launches, "cgroup.throttled_ns", within=within)
    if blocks is not None:
        throttled_pct = min(100.0, 100 * blocks.sums[0] / (blocks.total_ns * cpus))
    names = ("process.cpu_ns", "machine.busy_ns", "machine.steal_ns")
    blocks = counted(launches, *names, within=within)
    if blocks is not None:
        own_ns, busy_ns, steal_ns = blocks.values
        # Workers of a data loader are the cell's own.
        children = counted(launches, *names, CHILDREN, within=within)
        if children is not None and len(children.steps) == len(own_ns):
            own_ns = [*map(add, own_ns, children.values[-1])]
        others_ns = stolen_ns = 0.0
        for span_ns, used, busy, stolen in zip(blocks.span_ns, own_ns, busy_ns, steal_ns, strict=True):
            taken = _Taken(busy - used, stolen, span_ns * cpus)
            # Where the cell's CPUs and those that were idle are all that its threads can use, nothing was taken.
            had_all = (
                taken.left_enough(threads / cpus)
                if threads < cpus
                else taken.capacity_ns - stolen - busy >= IDLE_MOST * taken.capacity_ns
            )
            if not had_all:
                others_ns, stolen_ns = others_ns + taken.others_ns, stolen_ns + stolen
        # Ticks may miss the cell's own time in one block and count it twice in the next: clipped when summed up.
        others_pct = max(0.0, 100 * others_ns / (blocks.total_ns * cpus))
        steal_pct = 100 * stolen_ns / (blocks.total_ns * cpus)
    return CpuLoss(cpus, throttled_pct, others_pct, steal_pct)
