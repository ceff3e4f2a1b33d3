"""Which rounds of a run are left: functions of its plan and of the launches there are.

rounds given   0 … rounds - 1 of every group; round 1 of every group comes before round 2 of any
disturbed      then again the rounds of groups in which too few cycles were clean
precision      on until the interval of each difference is narrow enough, a first look at round 8
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from msgspec.structs import replace

from kit.compare.clean import CYCLES_LEAST, RoundCycles, count_blocks
from kit.compare.metrics import METRICS, usual_metric
from kit.compare.ratios import log_ratios, series
from kit.compare.runs import group_samples
from kit.compare.same_code import blocked_by_code
from kit.profile.cell import Cell
from kit.profile.schema import CellResult, Group, Launch, StepPlan
from kit.profile.unfinished import RunPlan
from kit.runner.round_worker import SHARED_PROCESS_ENDED
from kit.runner.worker_processes import PROCESS_ENDED
from kit.stats.estimate import ALPHA, over, precise_enough, rounds_for
from kit.suites.groups import Bundle, plan_bundles
from kit.workloads.device_operations import is_operation

# Beyond this, more rounds are not the answer: a quarter of a day for the smallest group.
ROUNDS_MAX = 200
# Rounds that others disturbed are measured again: without a budget half as many as were planned.
REPEATED_ROUNDS = 0.5
# A program's own fault ends it with these.
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


class RepeatsToCome(NamedTuple):
    """What will be measured after the planned rounds, and within them again."""

    rounds: int = 0  # after the planned ones: in place of disturbed ones, or for a precision as far as that is foreseen
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

    What a rank itself raises, or crashes with, is the cell's own failure.
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
    steps = plan.suite.plan
    gone |= {
        cell.key
        for cell in plan.cells
        if not (_is_measured_again(cell) if is_repeated else is_measured_in(cell, steps, number))
    }
    rounds = _rounds(plan, plan.cells, before) if is_repeated else {}
    left = []
    for group in plan.groups:
        lasting = replace(group, cells=[key for key in group.cells if key not in gone])
        has_no_pair_left = len(lasting.cells) < min(len(group.cells), 2)
        if is_repeated and not _lacking(rounds.get(group.key, {}), plan.suite.rounds):
            continue
        if number >= plan.suite.rounds and (has_no_pair_left or _is_precise(plan, lasting, before)):
            continue
        if lasting.cells:
            left.append(lasting)
    return plan_bundles([cell for cell in plan.cells if cell.key not in gone], left, plan.suite.process_axes)


def is_measured_in(cell: Cell, steps: StepPlan, number: int) -> bool:
    """Return whether a planned round measures a cell, if it does not fail: some end before the others."""
    rounds = steps.ceiling_rounds if is_operation(cell) else None if cell.in_blocks else steps.fit_rounds
    return rounds is None or number < rounds


def _is_measured_again(cell: Cell) -> bool:
    """Return whether disturbed rounds repeat a cell: fits take minutes, of operations the best block counts."""
    return cell.in_blocks and not is_operation(cell)


def repeats_to_come(plan: RunPlan, launches: Sequence[Launch], done: int) -> RepeatsToCome:
    """Return what will be measured again, as far as it is known after `done` rounds."""
    planned = plan.suite.rounds
    repeatable = filter(_is_measured_again, plan.cells)
    rounds = _rounds(plan, repeatable, launches)
    repeating = [group.cells for group in plan.groups if _has_clean(rounds.get(group.key, {}))]
    if plan.suite.precision_pct is not None:
        more = max((_rounds_for_precision(plan, group, launches) for group in plan.groups), default=0)
        after = max(0, min(done + more, ROUNDS_MAX) - max(planned, done))
    else:
        left = math.ceil(REPEATED_ROUNDS * planned) - max(0, done - planned)
        after = max(0, min(left, max((_lacking(known, planned) for known in rounds.values()), default=0)))
    return RepeatsToCome(rounds=after, cells=frozenset(key for cells in repeating for key in cells))


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


def _rounds(
    plan: RunPlan, cells: Iterable[Cell], launches: Sequence[Launch]
) -> Mapping[str, Mapping[int, RoundCycles]]:
    """Return the rounds of each group, as `kit compare` counts them."""
    _, rounds = count_blocks(_results(cells, launches), plan.suite.plan.cycles)
    return rounds.by_group


def _results(cells: Iterable[Cell], launches: Sequence[Launch]) -> Iterator[CellResult]:
    for cell in cells:
        yield CellResult(key=cell.key, cell=cell, launches=[each for each in launches if each.cell_key == cell.key])


def _is_whole(bundle: Bundle, launches: Iterable[Launch], number: int) -> bool:
    there = {
        (launch.group, launch.cell_key) for launch in launches if launch.round == number and lost_with(launch) is None
    }
    return all((group.key, key) in there for group in bundle.groups for key in group.cells)


def _is_precise(plan: RunPlan, group: Group, launches: Iterable[Launch]) -> bool:
    """Whether each difference of the group is known to within the precision asked for; a lone cell's step, if alone."""
    precision_pct = plan.suite.precision_pct
    return precision_pct is not None and all(
        precise_enough(logs, precision_pct) for logs in _logs_of_rounds(plan, group, launches)
    )


def _rounds_for_precision(plan: RunPlan, group: Group, launches: Sequence[Launch]) -> int:
    """Return how many more rounds a group needs for the precision asked for; 0 where two rounds do not show it yet."""
    gone = failed_cells(launches)
    lasting = replace(group, cells=[key for key in group.cells if key not in gone])
    half_width = math.log1p((plan.suite.precision_pct or 0.0) / 100)
    foreseen = [0]
    for known in map(over, _logs_of_rounds(plan, lasting, launches)):
        if known.has_interval and known.half_width(1 - ALPHA) > half_width:
            foreseen.append((rounds_for(known, half_width, 1 - ALPHA) or ROUNDS_MAX) - known.count)
    return max(foreseen)


def _logs_of_rounds(plan: RunPlan, group: Group, launches: Iterable[Launch]) -> list[list[float]]:
    """Return of each pair of a group the logarithms of its ratio in the rounds that count; of a lone cell its step's.

    Pairs that loaded the same code are left out: no round tells apart what is the same.
    """
    valid = [launch for launch in launches if launch.group == group.key]
    cells_of_group = [cell for cell in plan.cells if cell.key in group.cells]
    table, _ = count_blocks(_results(cells_of_group, valid), plan.suite.plan.cycles)
    step = METRICS[usual_metric(plan.suite)]
    samples = group_samples(plan.suite, group, cells_of_group, table)
    if len(group.cells) == 1:
        known = [seen.value for sample in samples.values() for seen in series(step, sample).values()]
        return [[math.log(step_ns) for step_ns in known if step_ns > 0]]
    pairs = [(samples[key], samples[other]) for key, other in combinations(group.cells, 2)]
    return [[*log_ratios(step, *pair).values()] for pair in pairs if not blocked_by_code(plan.suite, *pair)]
