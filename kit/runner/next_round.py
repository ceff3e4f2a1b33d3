"""Which rounds of a run are still to do, as a function of its plan and of the launches there are: nothing else is kept.

rounds given   0 … rounds - 1 of every group; round 1 of every group comes before round 2 of any
disturbed      then again the rounds of groups in which too few cycles were clean
precision      on until the interval of each difference is narrow enough, a first look at round 8
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec

from kit.compare.clean_cycles import CYCLES_LEAST, RoundCycles, count_results
from kit.compare.metrics import METRICS
from kit.compare.paired_ratios import log_ratios, series
from kit.compare.same_code import blocked_by_code
from kit.compare.sample import group_samples
from kit.profile.cell import Cell
from kit.profile.schema import CellResult, Group, Launch
from kit.profile.unfinished import RunPlan
from kit.runner.ranks import PROCESS_ENDED
from kit.runner.worker import SHARED_PROCESS_ENDED
from kit.stats.estimate import precise_enough
from kit.suites.plan import Bundle, plan_bundles
from kit.workloads.device_operations import is_operation

# Beyond this, more rounds are not the answer: a quarter of a day for the smallest group.
ROUNDS_MAX = 200
# Rounds that others disturbed are measured again: without a budget half as many as were planned.
REPEATED_ROUNDS = 0.5


# A program's own.
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


class Repeats(NamedTuple):
    """What others disturbed and will be measured again."""

    rounds: int = 0  # after the planned ones
    cells: frozenset[str] = frozenset()  # keys of those whose disturbed cycles rounds to come repeat


def failed_cells(launches: Iterable[Launch]) -> set[str]:
    """Return the keys of cells that have failed themselves: they would again, and cost the others' time."""
    return {
        launch.cell_key
        for launch in launches
        if launch.failure is not None
        and launch.failure.reason.code != SHARED_PROCESS_ENDED
        and lost_with(launch) is None
    }


def proved_cells(launches: Iterable[Launch], number: int) -> set[str]:
    """Return the keys of cells that proved themselves in a round before `number`."""
    before = (launch for launch in launches if launch.round < number)
    return {launch.cell_key for launch in before if any(phase.name == "parity" for phase in launch.phases)}


def lost_with(launch: Launch) -> str | None:
    """Return the other host on which a rank's process was ended under a launch, or did not start; None: none was.

    What a rank itself raises, or crashes with, is the cell's own failure. A supervisor always answers: where it does
    not stop its worker, its host is gone, and srun has not said so yet.
    """
    if launch.failure is None or launch.failure.reason.code not in PROCESS_ENDED | {"does_not_stop"}:
        return None
    values = launch.failure.reason.values
    return None if "host" not in values or values.get("signal") in CRASHES else str(values["host"])


def next_round(
    plan: RunPlan, launches: Sequence[Launch], ended: int, *, has_budget: bool = False
) -> tuple[int, list[Bundle]] | None:
    """Return the first round from `ended` on that is not whole and the groups it lacks; None where all is done.

    `has_budget`: a budget ends the rounds that are measured again, so that their number need not.
    """
    rounds = plan.suite.rounds
    is_open = has_budget or plan.suite.precision_pct is not None
    repeated = math.ceil(REPEATED_ROUNDS * rounds)
    for number in range(ended, max(rounds, ROUNDS_MAX) if is_open else rounds + repeated):
        shared = _groups_of(plan, launches, number)
        if not shared:
            return None
        lacking = [bundle for bundle in shared if not _is_whole(bundle, launches, number)]
        if lacking:
            return number, lacking
    return None


def _groups_of(plan: RunPlan, launches: Sequence[Launch], number: int) -> list[Bundle]:
    """Return the groups of a round, without the cells that failed before it and the groups that are precise enough."""
    before = [launch for launch in launches if launch.round < number]
    gone, is_repeated = failed_cells(before), number >= plan.suite.rounds and plan.suite.precision_pct is None
    fit_rounds, ceiling_rounds = plan.suite.plan.fit_rounds, plan.suite.plan.ceiling_rounds
    # Fits take minutes, and of operations the best block counts: neither is measured again.
    if is_repeated or (fit_rounds is not None and number >= fit_rounds):
        gone |= {cell.key for cell in plan.cells if cell.task == "fit"}
    if is_repeated or (ceiling_rounds is not None and number >= ceiling_rounds):
        gone |= {cell.key for cell in plan.cells if is_operation(cell)}
    rounds = count_results(_results(plan.cells, before), plan.suite.plan.cycles)[1] if is_repeated else {}
    left = []
    for group in plan.groups:
        lasting = msgspec.structs.replace(group, cells=[key for key in group.cells if key not in gone])
        has_no_pair_left = len(lasting.cells) < min(len(group.cells), 2)
        if is_repeated and not _lacking(rounds.get(group.key, {}), plan.suite.rounds):
            continue
        if number >= plan.suite.rounds and (has_no_pair_left or is_precise(plan, lasting, before)):
            continue
        if lasting.cells:
            left.append(lasting)
    return plan_bundles([cell for cell in plan.cells if cell.key not in gone], left, plan.suite.process_axes)


def repeats_to_come(plan: RunPlan, launches: Sequence[Launch], done: int) -> Repeats:
    """Return what will be measured again, as far as it is known after `done` rounds."""
    planned = plan.suite.rounds
    left = 0 if plan.suite.precision_pct is not None else math.ceil(REPEATED_ROUNDS * planned) - max(0, done - planned)
    stepping = [cell for cell in plan.cells if cell.task != "fit" and not is_operation(cell)]
    rounds = count_results(_results(stepping, launches), plan.suite.plan.cycles)[1]
    repeating = [group.cells for group in plan.groups if _has_clean(rounds.get(group.key, {}))]
    return Repeats(
        rounds=max(0, min(left, max((_lacking(known, planned) for known in rounds.values()), default=0))),
        cells=frozenset(key for cells in repeating for key in cells),
    )


def _lacking(rounds: Mapping[int, RoundCycles], planned: int) -> int:
    """Return how many rounds of a group are to be measured again: 0 where hardly any cycle was ever clean.

    A round whose launches were lost lacks nothing that others took.
    """
    if not _has_clean(rounds):
        return 0
    ran = sum(number < planned for number in rounds)
    return max(0, ran - sum(known.counts for known in rounds.values()))


def _has_clean(rounds: Mapping[int, RoundCycles]) -> bool:
    """Return whether enough cycles of a group were clean that disturbed ones are measured again."""
    return sum(known.clean for known in rounds.values()) >= CYCLES_LEAST


def _results(cells: Iterable[Cell], launches: Sequence[Launch]) -> list[CellResult]:
    return [
        CellResult(key=cell.key, cell=cell, launches=[launch for launch in launches if launch.cell_key == cell.key])
        for cell in cells
    ]


def _is_whole(bundle: Bundle, launches: Iterable[Launch], number: int) -> bool:
    there = {
        (launch.group, launch.cell_key) for launch in launches if launch.round == number and lost_with(launch) is None
    }
    return all((group.key, key) in there for group in bundle.groups for key in group.cells)


def is_precise(plan: RunPlan, group: Group, launches: Iterable[Launch]) -> bool:
    """Whether each difference of the group is known to within the precision asked for; a lone cell's step, if alone."""
    precision_pct = plan.suite.precision_pct
    if precision_pct is None:
        return False
    valid = [launch for launch in launches if launch.group == group.key]
    cells_of_group = [cell for cell in plan.cells if cell.key in group.cells]
    results, _ = count_results(_results(cells_of_group, valid), plan.suite.plan.cycles)
    samples, step = group_samples(group, results), METRICS["step_ns"]
    if len(group.cells) == 1:
        known = [seen.value for sample in samples.values() for seen in series(step, sample).values()]
        return precise_enough([math.log(step_ns) for step_ns in known if step_ns > 0], precision_pct)
    pairs = [(samples[key], samples[other]) for key, other in combinations(group.cells, 2)]
    return all(
        # No round tells apart what is the same.
        bool(blocked_by_code(plan.suite, *pair))
        or precise_enough(list(log_ratios(step, *pair).values()), precision_pct)
        for pair in pairs
    )
