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
from itertools import chain, compress, repeat
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from kit.compare.blocks import BlockId, counted
from kit.devices.cpu import OTHERS_MOST
from kit.profile.cell import Cell
from kit.profile.schema import Blocks, CellResult, Launch, Profile
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


Rounds = Mapping[str, Mapping[int, RoundCycles]]  # key of the group -> round


@dataclass(frozen=True)
class CountedCycles:
    """A profile without the cycles that others disturbed.

    A group without a single round that counts keeps all of its cycles; its figures are those of its quietest round.
    """

    profile: Profile
    rounds: Rounds  # empty where all cycles count
    rule: str

    @cached_property
    def disturbed(self) -> set[str]:
        """The keys of the groups in which no round counts."""
        return _disturbed(self.rounds)

    def figure_launches(self, result: CellResult) -> list[Launch]:
        """Return the launches that the figures of a cell come from, with those that failed."""
        clean = [launch for launch in result.launches if launch.group not in self.disturbed]
        if len(clean) == len(result.launches) or any(launch.gave_number for launch in clean):
            return clean

        def disturbance(launch: Launch) -> tuple[float, float]:
            cycles = self.rounds[launch.group][launch.round]
            return max(cycles.others.values()), -cycles.clean / cycles.ran

        quietest: dict[str, Launch] = {}
        for launch in sorted((launch for launch in result.launches if launch.gave_number), key=disturbance):
            quietest.setdefault(launch.group, launch)
        has_energy = any(map(_has_joules, quietest.values()))
        return [
            _without_blocks(launch, has_energy)
            if launch.gave_number and launch is not quietest[launch.group]
            else launch
            for launch in result.launches
        ]

    def others_pct(self, result: CellResult) -> float | None:
        """Return what others took during the figures of a cell, in percent; None where these are of clean cycles."""
        fractions = [
            self.rounds[launch.group][launch.round].others[result.key]
            for launch in (self.figure_launches(result) if self.disturbed else ())
            if launch.gave_number and launch.group in self.disturbed
        ]
        return 100 * max(fractions) if fractions else None


class _Taken(NamedTuple):
    """What others took from a cell in one block, or in several together."""

    others_ns: float = 0  # CPU time of others; ticks that a block misses count in the next: it may be below 0
    stolen_ns: float = 0  # by the hypervisor
    capacity_ns: float = 0  # of the cell's CPUs; 0: it was not counted
    lacked_cpus: int = 0  # blocks in which that is more than a clean one may show
    device_others: int = 0  # processes of others on the cell's accelerators when the blocks ended

    @classmethod
    def together(cls, blocks: Collection[_Taken]) -> _Taken:
        """Return the sum of some blocks, in which what ticks miss in one and count twice in the next cancels."""
        return tuple.__new__(cls, map(sum, zip(*blocks, strict=True))) if blocks else cls()

    @property
    def fraction(self) -> float:
        """Which fraction of the CPUs' time others took."""
        return min(1.0, (max(0.0, self.others_ns) + self.stolen_ns) / self.capacity_ns) if self.capacity_ns else 0.0


def _taken(cell: Cell, launch: Launch, blocks: Blocks, *, with_idle: bool = False) -> list[_Taken]:
    """Return what others took from a cell in each block.

    Busy time of the CPUs, less that of the measured process and its children, plus what the hypervisor took. It is 0
    where enough CPUs were idle: a cell can use one for each of its threads, one on an accelerator's host.

    Args:
        cell: that was measured.
        launch: of it.
        blocks: of the launch; they need not be in it yet.
        with_idle: count nothing as taken in blocks in which the CPUs of a cell with a thread for each were partly idle.
    """
    counters, cpus = blocks.counters, 0 if launch.threads is None else len(launch.threads.cpus)
    threads = min(cpus, launch.threads.requested) if cell.device == "cpu" and launch.threads is not None else 1
    is_counted = cpus > 0 and "machine.busy_ns" in counters and "process.cpu_ns" in counters
    if not is_counted and DEVICE_OTHERS not in counters:
        return [_Taken()] * len(blocks.steps)
    none = repeat(None)
    names = ("machine.busy_ns", "process.cpu_ns", CHILDREN, "machine.steal_ns", DEVICE_OTHERS)
    columns = [counters.get(name, none) for name in names]
    # A named tuple made by its own call takes three times as long.
    taken, made, chance_ns = list[_Taken](), tuple.__new__, TICKS_BY_CHANCE * TICK_NS
    for span_ns, busy_ns, own_ns, children_ns, stolen_ns, device_others in zip(blocks.span_ns, *columns, strict=False):
        if not is_counted or busy_ns is None or own_ns is None:
            taken.append(_Taken(device_others=device_others or 0))
            continue
        capacity_ns, others_ns = span_ns * cpus, busy_ns - own_ns - (children_ns or 0)
        lost_ns = stolen_ns if stolen_ns and stolen_ns > 0 else 0
        if threads < cpus:
            # Its own time and the idle time together are all that it can use.
            had_all = capacity_ns - others_ns - lost_ns >= (1 - IDLE_MOST) * span_ns * threads
        else:
            had_all = with_idle and capacity_ns - busy_ns - lost_ns >= IDLE_MOST * capacity_ns
        if had_all:
            others_ns = lost_ns = 0
        # What is taken is at most all. (This runs for each block: a call of `min` takes longer than a comparison.)
        taken_ns = lost_ns + others_ns if others_ns > 0 else lost_ns
        taken_ns = taken_ns if taken_ns < capacity_ns else capacity_ns
        lacked = taken_ns > chance_ns and taken_ns > OTHERS_MOST * capacity_ns
        taken.append(made(_Taken, (others_ns, lost_ns, capacity_ns, lacked, device_others or 0)))
    return taken


def disturbances(cell: Cell, launch: Launch, blocks: Blocks) -> list[float | None]:
    """Return which fraction of its CPUs' time others took from a cell in each block that they disturbed; None: clean.

    `blocks` are of the launch, and need not be in it yet.
    """
    return [block.fraction if any(block[-2:]) else None for block in _taken(cell, launch, blocks)]


def fractions_taken(cell: Cell, launch: Launch, blocks: Blocks) -> list[float | None]:
    """Return which fraction of its CPUs' time others took from a cell in each block; None: it was not counted."""
    return [block.fraction if block.capacity_ns else None for block in _taken(cell, launch, blocks)]


def count_cycles(profile: Profile, *, all_cycles: bool = False) -> CountedCycles:
    """Return a profile with the cycles that count, or with `all_cycles`; the profile itself stays as it is."""
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


def count_results(results: Sequence[CellResult], planned: int) -> tuple[list[CellResult], Rounds]:
    """Return cells with the cycles that count, and what was counted; `planned`: cycles of a round."""
    measured: dict[tuple[str, int], list[tuple[Cell, Launch]]] = {}
    for result in results:
        for launch in result.launches:
            if launch.gave_number:
                measured.setdefault((launch.group, launch.round), []).append((result.cell, launch))
    rounds: dict[str, dict[int, RoundCycles]] = {}
    # By id of a launch: which of its blocks are in clean cycles; None: its round does not count.
    clean: dict[int, list[bool] | None] = {}
    for (group, number), members in measured.items():
        cycles, flags = cycles_of(members, planned)
        rounds.setdefault(group, {})[number] = cycles
        clean |= {id(launch): flag if cycles.counts else None for (_, launch), flag in zip(members, flags, strict=True)}
    disturbed, cells = _disturbed(rounds), []
    for result in results:
        in_question = [launch for launch in result.launches if id(launch) in clean and launch.group not in disturbed]
        has_energy = any(_has_joules(launch) for launch in in_question if clean[id(launch)] is not None)
        changed = {}
        for launch in in_question:
            keep = clean[id(launch)]
            if keep is None:
                changed[id(launch)] = _without_blocks(launch, has_energy)
            elif not all(keep):
                changed[id(launch)] = replace(launch, blocks=launch.blocks.chosen(keep))
        if changed or any(launch.group in disturbed for launch in result.launches):
            # Percentiles without a median beside them are of all cycles: what they are of those that count is unknown.
            unknown = {"p95_ns": None, "p99_ns": None} if result.p50_ns is None else {}
            launches = [changed.get(id(launch), launch) for launch in result.launches]
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
    whole = [*map(_Taken.together, taken)]
    others = {launch.cell_key: total.fraction for (_, launch), total in zip(measured, whole, strict=True)}
    if any(cell.task == "fit" for cell, _ in measured):
        lacked_cpus = max(others.values()) > OTHERS_MOST
        shared = max(fmean(block.device_others > 0 for block in blocks) for blocks in taken) > OTHERS_MOST
        is_clean = not (lacked_cpus or shared)
        return RoundCycles(1, int(is_clean), 1, lacked_cpus, others), [[is_clean] * len(blocks) for blocks in taken]
    # Cells that took turns share a cycle; of others each member has its own.
    cycles = [
        [(cycle, -1 if launch.turns == "blocks" else member) for cycle in launch.blocks.cycle]
        for member, (_, launch) in enumerate(measured)
    ]
    left_out: set[tuple[int, int]] = set()
    if any(total.lacked_cpus or total.device_others for total in whole):
        every = zip(chain(*taken), chain(*cycles), strict=True)
        left_out = {cycle for block, cycle in every if block.lacked_cpus or block.device_others}
    lacked_cpus = any(total.lacked_cpus for total in whole)
    while True:
        flags = [[cycle not in left_out for cycle in numbers] for numbers in cycles]
        clean = [[*compress(blocks, flag)] for blocks, flag in zip(taken, flags, strict=True)]
        # Others took little of all clean blocks together; ticks may show more than that by chance.
        together = map(_Taken.together, clean) if left_out else whole
        if all(
            total.fraction * total.capacity_ns <= max(OTHERS_MEAN_MOST * total.capacity_ns, TICKS_BY_CHANCE * TICK_NS)
            for total in together
        ):
            break
        # The block of which others took most; of equal ones the first.
        *_, worst = max(
            (block.fraction, -member, -cycle[0], cycle)
            for member, pairs in enumerate(map(zip, taken, cycles))
            for block, cycle in compress(pairs, flags[member])
        )
        left_out.add(worst)
        lacked_cpus = True
    ran = len({cycle for numbers in cycles for cycle, _ in numbers})
    return RoundCycles(ran, min(map(len, clean)), min(CYCLES_LEAST, planned, ran), lacked_cpus, others), flags


def _disturbed(rounds: Rounds) -> set[str]:
    """Return the keys of the groups in which no round counts."""
    return {group for group, numbers in rounds.items() if not any(cycles.counts for cycles in numbers.values())}


def _without_blocks(launch: Launch, has_energy: bool) -> Launch:
    """Return a launch that gives no number, and no joules where another launch of its cell `has_energy`."""
    return replace(launch, blocks=Blocks(), energy=[] if has_energy else launch.energy)


def _has_joules(launch: Launch) -> bool:
    return any(energy.joules_j is not None and energy.kind != "compile" for energy in launch.energy)


class CpuLoss(NamedTuple):
    """Fractions of the time of a cell's CPUs, in percent of all of them; null where they were not counted."""

    cpus: int
    throttled_pct: float | None
    others_pct: float | None = None
    steal_pct: float | None = None

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
    cpus = next((len(launch.threads.cpus) for launch in launches if launch.threads is not None), 0)
    if not cpus:
        return None
    # The kernel counts each throttled CPU by itself; other processes of the group may be throttled, too.
    throttled = counted(launches, "cgroup.throttled_ns", within=within)
    throttled_pct = None if throttled is None else min(100.0, 100 * throttled.sums[0] / (throttled.total_ns * cpus))
    blocks: list[_Taken] = []
    for launch in launches:
        taken = _taken(cell, launch, launch.blocks, with_idle=True)
        if within is not None:
            taken = [*compress(taken, ((launch.round, cycle) in within for cycle in launch.blocks.cycle))]
        blocks += taken
    others_ns, stolen_ns, capacity_ns, *_ = _Taken.together(blocks)
    if not capacity_ns:
        return CpuLoss(cpus, throttled_pct)
    # Ticks may miss the cell's own time in one block and count it twice in the next: clipped when summed up.
    return CpuLoss(cpus, throttled_pct, max(0.0, 100 * others_ns / capacity_ns), 100 * stolen_ns / capacity_ns)
