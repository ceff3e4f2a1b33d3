"""How long a run takes, before anything is measured: starts, warm-ups and blocks, from constants with evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kit.backends.catalog import CATALOG
from kit.profile.cell import Cell
from kit.profile.launch import StepPlan
from kit.profile.schema import Group
from kit.suites.plan import MemberPlan, SharedGroups, plan_shared_groups

# Of a fit at least, besides its reference's warm-up: two programs built, some stretches, two test passes. The fit of 50
# updates of mlp took 3 s, the one of cnn 8 (TensorFlow) to 25 s (JAX).
FIT_LEAST_S = 3.0


class Estimate(NamedTuple):
    """How long a run takes; `is_least` where fits, a user's own steps or a precision asked for leave that open."""

    seconds: float
    is_least: bool


def estimate(
    cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str], plan: StepPlan, rounds: int
) -> Estimate:
    """Return how long these rounds take where steps are short against a block."""
    seconds = sum(round_s(bundles_of(cells, groups, share, plan, number), plan) for number in range(rounds))
    is_least = any(cell.task == "fit" for cell in cells)
    return Estimate(seconds, is_least)


def bundles_of(
    cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str], plan: StepPlan, number: int
) -> list[SharedGroups]:
    """Return what a round measures where no cell fails: fits are repeated in the first rounds only."""
    is_fitted = plan.fit_rounds is None or number < plan.fit_rounds
    fits = {cell.key for cell in cells if cell.task == "fit"}
    return plan_shared_groups(cells, [group for group in groups if is_fitted or group.cells[0] not in fits], share)


def round_s(bundles: Sequence[SharedGroups], plan: StepPlan) -> float:
    """Return the seconds of a round, its fits at their least."""
    starts = sum(start_s(process) for bundle in bundles for process in bundle.members)
    return starts + sum(
        plan.warmup_s + FIT_LEAST_S if cell.task == "fit" else plan.cycles * block_s(plan)
        for bundle in bundles
        for cell in _members(bundle)
    )


def start_s(process: MemberPlan) -> float:
    """Return the seconds of a member's start, from its interpreter to its first program."""
    return CATALOG[process.cells[0].backend].start_s


def block_s(plan: StepPlan) -> float:
    """Return the seconds of a block with its share of what a member does once a round: warm-up and energy."""
    return plan.block_s + (plan.warmup_s + plan.energy_s) / plan.cycles


def _members(bundle: SharedGroups) -> list[Cell]:
    """Return the members of all groups of a bundle; a cell that is in two parts of a group is measured twice."""
    by_key = {cell.key: cell for process in bundle.members for cell in process.cells}
    return [by_key[key] for group in bundle.groups for key in group.cells]
