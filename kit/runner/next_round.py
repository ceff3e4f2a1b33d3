"""Which rounds of a run are still to do, as a function of its plan and of the launches there are: nothing else is kept.

rounds given   0 … rounds - 1 of every group; round 1 of every group comes before round 2 of any
precision      on until the interval of each difference is narrow enough, a first look at round 8
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import msgspec
import numpy as np

from kit.compare.pairs import Pairs
from kit.profile.launch import Launch
from kit.profile.schema import Group
from kit.profile.unfinished import RunPlan
from kit.runner.member import SHARED_PROCESS_ENDED
from kit.stats.verdict import precise_enough
from kit.suites.plan import SharedGroups, plan_shared_groups
from kit.worker.rank_process import PROCESS_ENDED
from kit.workloads.operations import is_operation

# Beyond this, more rounds are not the answer: a quarter of a day for the smallest group.
PRECISION_ROUNDS_MAX = 200


# A program's own.
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


def failed_cells(launches: Iterable[Launch]) -> set[str]:
    """Return the keys of cells that have failed themselves: they would again, and cost the others' time."""
    return {
        launch.cell_key
        for launch in launches
        if launch.failure is not None
        and launch.failure.reason.code != SHARED_PROCESS_ENDED
        and lost_with(launch) is None
    }


def lost_with(launch: Launch) -> str | None:
    """Return the other host on which a rank's process was ended under a launch, or did not start; None: none was.

    What a rank itself raises, or crashes with, is the cell's own failure.
    """
    if launch.failure is None or launch.failure.reason.code not in PROCESS_ENDED:
        return None
    values = launch.failure.reason.values
    return None if "host" not in values or values.get("signal") in CRASHES else str(values["host"])


def next_round(plan: RunPlan, launches: Sequence[Launch], ended: int) -> tuple[int, list[SharedGroups]] | None:
    """Return the first round from `ended` on that is not whole and the groups it lacks; None where all is done."""
    rounds_max = plan.suite.rounds if plan.suite.precision_pct is None else PRECISION_ROUNDS_MAX
    for number in range(ended, rounds_max):
        shared = _groups_of(plan, launches, number)
        if not shared:
            return None
        lacking = [groups for groups in shared if not _is_whole(groups, launches, number)]
        if lacking:
            return number, lacking
    return None


def _groups_of(plan: RunPlan, launches: Sequence[Launch], number: int) -> list[SharedGroups]:
    """Return the groups of a round, without the cells that failed before it and the groups that are precise enough."""
    before = [launch for launch in launches if launch.round < number]
    gone, fit_rounds = failed_cells(before), plan.suite.plan.fit_rounds
    if fit_rounds is not None and number >= fit_rounds:
        gone |= {cell.key for cell in plan.cells if cell.task == "fit"}
    if (ceiling_rounds := plan.suite.plan.ceiling_rounds) is not None and number >= ceiling_rounds:
        gone |= {cell.key for cell in plan.cells if is_operation(cell)}
    left = []
    for group in plan.groups:
        lasting = msgspec.structs.replace(group, cells=[key for key in group.cells if key not in gone])
        has_no_pair_left = len(lasting.cells) < min(len(group.cells), 2)
        if number >= plan.suite.rounds and (has_no_pair_left or is_precise(plan, lasting, before)):
            continue
        if lasting.cells:
            left.append(lasting)
    return plan_shared_groups([cell for cell in plan.cells if cell.key not in gone], left, plan.suite.share)


def _is_whole(shared: SharedGroups, launches: Iterable[Launch], number: int) -> bool:
    there = {
        (launch.group, launch.cell_key) for launch in launches if launch.round == number and lost_with(launch) is None
    }
    return all((group.key, key) in there for group in shared.groups for key in group.cells)


def is_precise(plan: RunPlan, group: Group, launches: Iterable[Launch]) -> bool:
    """Whether each difference of the group is known to within the precision asked for; a lone cell's step, if alone."""
    precision_pct = plan.suite.precision_pct
    if precision_pct is None:
        return True
    valid = [launch for launch in launches if launch.group == group.key and launch.gave_number]
    cells = {cell.key: cell for cell in plan.cells if cell.key in group.cells}
    pairs = Pairs([group], cells, {key: [launch for launch in valid if launch.cell_key == key] for key in group.cells})
    if len(group.cells) == 1:
        return precise_enough(np.log(list(pairs.times_ns(group.cells[0]))).tolist(), precision_pct)
    return all(
        precise_enough(list(pairs.log_ratios(*pair).values()), precision_pct) for pair in combinations(group.cells, 2)
    )
