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
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kit.compare.launch_arrays import Place, counted
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
# Of the CPUs' time. From here on the mean step is longer than the median one by what is no longer called the same;
# without a quota it is exactly nothing.
THROTTLED_LEAST_PCT = 1.0
# A member that has its CPUs to itself loses under 2 % to the system's own work; beside one busy program on two CPUs
# it is 50 %.
TAKEN_LEAST_PCT = 10.0
# What others take falls on unlike members unlike: beside one busy program on two CPUs PyTorch's threads wait for each
# other, JAX' do not. Inference that PyTorch does 1.6 times as fast was then "shown" to be 23 times as slow, and more
# rounds only narrowed that: from here on there is no verdict between them. At 17 % verdicts of the reference profiles
# are those of quiet runs.
TAKEN_BAD_PCT = 25.0

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


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


class CountedCycles(NamedTuple):
    """A profile without the cycles that others disturbed.

    A group without a single round that counts keeps all of its cycles; its figures are those of its quietest round.
    """

    profile: Profile
    rounds: Mapping[str, Mapping[int, RoundCycles]]  # key of the group -> round; of all cycles: empty
    rule: str

    def is_disturbed(self, group: str) -> bool:
        """Return whether no round of a group counts."""
        rounds = self.rounds.get(group, {})
        return bool(rounds) and not any(of_round.counts for of_round in rounds.values())

    def lacked_cpus(self, group: str) -> bool:
        """Return whether no round of a group counts, and in each of them others took CPUs."""
        return self.is_disturbed(group) and all(known.lacked_cpus for known in self.rounds[group].values())

    def figure_launches(self, result: CellResult) -> list[Launch]:
        """Return the launches that the figures of a cell come from, with those that failed."""
        clean = [launch for launch in result.launches if not self.is_disturbed(launch.group)]
        if any(launch.gave_number for launch in clean) or len(clean) == len(result.launches):
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
        launches = [launch for launch in self.figure_launches(result) if launch.gave_number]
        disturbed = [self.rounds[launch.group][launch.round] for launch in launches if self.is_disturbed(launch.group)]
        return 100 * max(of_round.others[result.key] for of_round in disturbed) if disturbed else None


class _Taken(NamedTuple):
    """What others took from a cell in the blocks of a launch, each (blocks,); nan: it was not counted."""

    others_ns: Floats  # CPU time of others; ticks that a block misses count in the next: it may be below 0
    stolen_ns: Floats  # by the hypervisor
    capacity_ns: Floats  # of the cell's CPUs

    @property
    def fraction(self) -> Floats:
        """Which fraction of the CPUs' time others took in each block."""
        return np.minimum(1.0, (np.maximum(0.0, self.others_ns) + self.stolen_ns) / self.capacity_ns)

    @property
    def lacked_cpus(self) -> Flags:
        """Whether others took more of each block than a clean one may show; what is not known is not disturbed."""
        return self.fraction > np.maximum(OTHERS_MOST, TICKS_BY_CHANCE * TICK_NS / self.capacity_ns)

    def left_enough(self, fraction: float) -> Flags:
        """Return whether a cell that can use so much of its CPUs had it: in its own time and the idle time together."""
        could_have_ns = self.capacity_ns - self.others_ns - self.stolen_ns
        return could_have_ns >= (1 - IDLE_MOST) * self.capacity_ns * fraction

    def together(self, keep: Flags | None = None) -> tuple[float, float]:
        """Return which fraction they took of some blocks together, and which one ticks may show by chance.

        Both are 0 if nothing was counted. Over several blocks what ticks miss in one and count twice in the next
        cancels.
        """
        known = np.isfinite(self.others_ns) & np.isfinite(self.capacity_ns)
        known = known if keep is None else known & keep
        if not known.any():
            return 0.0, 0.0
        capacity_ns = float(self.capacity_ns[known].sum())
        taken_ns = max(0.0, float(self.others_ns[known].sum())) + float(self.stolen_ns[known].sum())
        return min(1.0, taken_ns / capacity_ns), TICKS_BY_CHANCE * TICK_NS / capacity_ns


def taken_fraction(cell: Cell, launch: Launch, blocks: Blocks) -> Floats:
    """Return which fraction of its CPUs' time others took from a cell in each block; nan where it was not counted.

    Busy time of the CPUs, less that of the measured process and its children, plus what the hypervisor took. It is 0
    where enough CPUs were idle: a cell can use one for each of its threads, one on an accelerator's host.

    Args:
        cell: that was measured.
        launch: of it.
        blocks: of the launch; they need not be in it yet.
    """
    return _taken(cell, launch, blocks).fraction


def disturbed_blocks(cell: Cell, launch: Launch, blocks: Blocks | None = None) -> Flags:
    """Return whether others disturbed each block, (blocks,); what is not known disturbs nothing.

    Arguments as of `taken_fraction`; None: all blocks.
    """
    blocks = launch.blocks if blocks is None else blocks
    return _taken(cell, launch, blocks).lacked_cpus | _has_device_others(blocks)


def count_cycles(profile: Profile, *, all_cycles: bool = False) -> CountedCycles:
    """Return a profile with the cycles that count; the profile itself stays as it is.

    Args:
        profile: whole, as it was read.
        all_cycles: every cycle counts, as by the rule before this one.
    """
    if all_cycles:
        cells = [replace(result, **_percentiles(result, of_all=True)) for result in profile.cells]
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
    clean: dict[int, Flags] = {}  # id of a launch -> which of its blocks are in clean cycles
    for group, of_group in by_round.items():
        for number, measured in of_group.items():
            rounds.setdefault(group, {})[number], flags = cycles_of(measured, planned)
            clean |= {id(launch): flag for (_, launch), flag in zip(measured, flags, strict=True)}
    disturbed = {group for group, known in rounds.items() if not any(of_round.counts for of_round in known.values())}
    cells = []
    for result in results:
        in_question = [launch for launch in result.launches if launch.gave_number and launch.group not in disturbed]
        counting = {id(launch): rounds[launch.group][launch.round].counts for launch in in_question}
        has_energy = any(counting[id(launch)] and _has_joules(launch) for launch in in_question)
        launches = list(result.launches)
        for index, launch in enumerate(launches):
            if not counting.get(id(launch), True):
                launches[index] = _without_blocks(launch, has_energy)
            elif id(launch) in counting and not clean[id(launch)].all():
                launches[index] = replace(launch, blocks=launch.blocks.chosen(clean[id(launch)].tolist()))
        is_whole = all(launch is kept for launch, kept in zip(result.launches, launches, strict=True))
        is_whole = is_whole and not any(launch.group in disturbed for launch in launches)
        cells.append(replace(result, launches=launches, **_percentiles(result, of_all=False, is_whole=is_whole)))
    return cells, rounds


def cycles_of(measured: Sequence[tuple[Cell, Launch]], planned: int) -> tuple[RoundCycles, list[Flags]]:
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
    lacked = [each.lacked_cpus for each in taken]
    others = {launch.cell_key: each.together()[0] for (_, launch), each in zip(measured, taken, strict=True)}
    if any(cell.task == "fit" for cell, _ in measured):
        lacked_cpus = max(others.values()) > OTHERS_MOST
        is_clean = not lacked_cpus and max(float(flag.mean()) for flag in on_device) <= OTHERS_MOST
        flags = [np.full(flag.shape, is_clean) for flag in lacked]
        return RoundCycles(1, int(is_clean), 1, lacked_cpus, others), flags
    in_turn = [launch.turns == "blocks" for _, launch in measured]
    cycles = [np.asarray(launch.blocks.cycle) for _, launch in measured]
    flags = [~(by_cpus | by_device) for by_cpus, by_device in zip(lacked, on_device, strict=True)]
    disturbed = {
        cycle
        for of_launch, flag, turns in zip(cycles, flags, in_turn, strict=True)
        if turns
        for cycle in of_launch[~flag].tolist()
    }
    if disturbed:
        flags = [
            ~np.isin(of_launch, list(disturbed)) if turns else flag
            for of_launch, flag, turns in zip(cycles, flags, in_turn, strict=True)
        ]
    left = _without_worst(taken, cycles, in_turn, flags)
    lacked_cpus = any(flag.any() for flag in lacked) or any(
        (flag != still).any() for flag, still in zip(flags, left, strict=True)
    )
    ran = len({cycle for _, launch in measured for cycle in launch.blocks.cycle})
    clean = min(int(flag.sum()) for flag in left)
    return RoundCycles(ran, clean, min(CYCLES_LEAST, planned, ran), lacked_cpus, others), left


def _without_worst(
    taken: Sequence[_Taken], cycles: Sequence[NDArray[np.int64]], in_turn: Sequence[bool], flags: list[Flags]
) -> list[Flags]:
    """Return the flags without the cycles in which others took most, until they took little of all that are left."""
    while True:
        together = [each.together(flag) for each, flag in zip(taken, flags, strict=True)]
        if all(fraction <= max(OTHERS_MEAN_MOST, chance) for fraction, chance in together):
            return flags
        left = [np.where(flag, np.nan_to_num(each.fraction), -1.0) for each, flag in zip(taken, flags, strict=True)]
        member = int(np.argmax([float(known.max(initial=0.0)) for known in left]))
        worst = cycles[member][int(np.argmax(left[member]))]
        flags = [
            flag & (cycles[index] != worst) if in_turn[index] or index == member else flag
            for index, flag in enumerate(flags)
        ]


def _without_blocks(launch: Launch, has_energy: bool) -> Launch:
    """Return a launch that gives no number, and no joules where another launch of its cell `has_energy`."""
    return replace(launch, blocks=Blocks(), energy=[] if has_energy else launch.energy)


def _has_joules(launch: Launch) -> bool:
    return any(energy.joules_j is not None and energy.kind != "compile" for energy in launch.energy)


def _percentiles(result: CellResult, *, of_all: bool, is_whole: bool = True) -> dict[str, int | None]:
    """Return the percentiles of a cell's steps, over all cycles or those that count.

    A profile without the median has those of all cycles alone: they are unknown where some were left out.
    """
    if result.p50_ns is None:
        known = of_all or is_whole
        return {} if known else {"p95_ns": None, "p99_ns": None}
    return dict(zip(("p50_ns", "p95_ns", "p99_ns"), result.all_cycles_ns or [], strict=False)) if of_all else {}


def _cpus_and_threads(cell: Cell, launch: Launch) -> tuple[int, int]:
    """Return how many CPUs a cell may use, 0: not known, and how many at once: one a thread, one on a device's host."""
    cpus = 0 if launch.threads is None else len(launch.threads.cpus)
    return cpus, 1 if cell.device != "cpu" else min(cpus, cpus if launch.threads is None else launch.threads.requested)


def _taken(cell: Cell, launch: Launch, blocks: Blocks) -> _Taken:
    """Return what others took in each block."""
    busy_ns, own_ns = _counter(blocks, "machine.busy_ns", np.nan), _counter(blocks, "process.cpu_ns", np.nan)
    others_ns = busy_ns - own_ns - _counter(blocks, CHILDREN, 0.0)
    stolen_ns = np.maximum(0.0, _counter(blocks, "machine.steal_ns", 0.0))
    cpus, threads = _cpus_and_threads(cell, launch)
    capacity_ns = np.asarray(blocks.span_ns, np.float64) * (cpus or np.nan)
    taken = _Taken(others_ns, stolen_ns, capacity_ns)
    if threads < cpus:
        had_all = taken.left_enough(threads / cpus)
        taken = _Taken(np.where(had_all, 0.0, others_ns), np.where(had_all, 0.0, stolen_ns), capacity_ns)
    return taken


def _has_device_others(blocks: Blocks) -> Flags:
    """Return whether processes of others computed on the cell's accelerators when each block ended."""
    return _counter(blocks, DEVICE_OTHERS, 0.0) > 0


def _counter(blocks: Blocks, name: str, missing: float) -> Floats:
    """Return a counter of each block, `missing` where it was not read."""
    values = blocks.counters.get(name)
    if values is None:
        return np.full(len(blocks.steps), missing)
    counter = np.asarray(values, np.float64)
    return counter if np.isnan(missing) else np.where(np.isnan(counter), missing, counter)


class CpuLoss(NamedTuple):
    """Shares of the time of a member's CPUs, in percent of all of them; null where they were not counted."""

    cpus: int
    throttled_pct: float | None
    others_pct: float | None
    steal_pct: float | None

    @property
    def is_throttled(self) -> bool:
        """Whether a quota kept the member from its CPUs for longer than can be passed over."""
        return self.throttled_pct is not None and self.throttled_pct >= THROTTLED_LEAST_PCT

    @property
    def contention_pct(self) -> float:
        """What others and the hypervisor took together."""
        return (self.others_pct or 0.0) + (self.steal_pct or 0.0)

    @property
    def is_contended(self) -> bool:
        """Whether they took more than the system's own work does."""
        return self.contention_pct >= TAKEN_LEAST_PCT


def cpu_loss(cell: Cell, launches: Collection[Launch], within: Collection[Place] | None = None) -> CpuLoss | None:
    """Return what these launches of a cell lost in their blocks, or in some; None where their CPUs are not known."""
    known = [_cpus_and_threads(cell, launch) for launch in launches if launch.threads is not None]
    if not known or not known[0][0]:
        return None
    cpus, threads = known[0][0], min(threads for _, threads in known)
    throttled_pct = others_pct = steal_pct = None
    # The kernel counts each throttled CPU by itself; other processes of the group may be throttled, too.
    blocks = counted(launches, "cgroup.throttled_ns", within=within)
    if blocks is not None:
        throttled_pct = min(100.0, 100 * float(blocks.sums[0] / (blocks.span_ns.sum() * cpus)))
    blocks = counted(launches, "process.cpu_ns", "machine.busy_ns", "machine.steal_ns", within=within)
    if blocks is not None:
        own_ns, busy_ns, steal_ns = blocks.values
        # Workers of a data loader are the cell's own; older kits did not count children.
        children = counted(launches, "process.cpu_ns", "machine.busy_ns", "machine.steal_ns", CHILDREN, within=within)
        own_ns = own_ns if children is None or len(children.steps) < len(own_ns) else own_ns + children.values[-1]
        taken = _Taken(busy_ns - own_ns, steal_ns, blocks.span_ns * cpus)
        # Where the cell's CPUs and those that were idle are all that its threads can use, nothing was taken.
        idle_ns = taken.capacity_ns - steal_ns - busy_ns
        full = ~taken.left_enough(threads / cpus) if threads < cpus else idle_ns < IDLE_MOST * taken.capacity_ns
        capacity_ns = float(taken.capacity_ns.sum())
        # Ticks may miss the member's own time in one block and count it twice in the next: clipped when summed up.
        others_pct = max(0.0, 100 * float(np.sum(taken.others_ns[full]) / capacity_ns))
        steal_pct = 100 * float(np.sum(steal_ns[full]) / capacity_ns)
    return CpuLoss(cpus, throttled_pct, others_pct, steal_pct)
