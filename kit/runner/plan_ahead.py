"""How many cycles the rounds to come have, and how narrow intervals will be: by what rounds so far have shown.

rounds 1, 2    as the suite says
from then on   as many cycles in each group as make intervals narrowest in the time that is left; looked at again after
               4, 8, 16 … rounds

It concerns runs that end by a precision or by a budget. What was measured before by the same plan, on the same
hardware, says the same of a run that has not begun.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from kit.compare.clean import count_blocks
from kit.compare.metrics import METRICS
from kit.compare.ratios import cycle_log_ratios, series
from kit.compare.runs import Sample, group_samples
from kit.compare.same_code import blocked_by_code
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.schema import CellResult, Group, Launch, Profile, SuiteUsed
from kit.profile.store import read_profile
from kit.profile.unfinished import RunPlan
from kit.report.plan_report import Ahead
from kit.stats.estimate import ROUNDS_FOR_VERDICT
from kit.stats.two_components import (
    GroupSeen,
    best_cycles,
    components,
    half_width,
    rounds_for_half_width,
)

# Before a run only so many profiles are read, the newest first: a folder may have thousands.
PROFILES_READ = 20
# The first look. Two rounds show a start's part poorly, but a cycle's well.
FIRST_LOOK = 2


class Seen(NamedTuple):
    """What rounds have shown."""

    groups: dict[str, GroupSeen]
    start_s: float  # what a round takes beside its cycles
    rounds: int


def is_look(done: int) -> bool:
    """Return whether a run looks ahead after so many rounds: after 2, 4, 8 and so on."""
    return done >= FIRST_LOOK and done & (done - 1) == 0


def seen_in(suite: SuiteUsed, groups: Iterable[Group], cells: Sequence[Cell], launches: Sequence[Launch]) -> Seen:
    """Return what the launches of some rounds show; without groups where they show nothing yet."""
    numbers = sorted({launch.round for launch in launches if launch.gave_number})
    known, cycles_s = dict[str, GroupSeen](), dict.fromkeys(numbers, 0.0)
    for group in groups:
        of_group = [launch for launch in launches if launch.group == group.key]
        pairs = [pair for logs in logs_by_cycle(suite, group, cells, of_group) if (pair := components(logs))]
        each_s = list[float]()
        for number in numbers:
            windows = [launch.blocks.windows() for launch in of_group if launch.round == number and launch.gave_number]
            ran = max((len(launch.blocks.cycle) for launch in of_group if launch.round == number), default=0)
            if ran and all(windows):
                seconds = (max(of[-1][1] for of in windows) - min(of[0][0] for of in windows)) / 1e9
                cycles_s[number] += seconds
                each_s.append(seconds / ran)
        if pairs and each_s:
            known[group.key] = GroupSeen(pairs, fmean(each_s))
    rounds_s = {number: _round_s([launch for launch in launches if launch.round == number]) for number in numbers}
    start_s = fmean(max(0.0, rounds_s[number] - cycles_s[number]) for number in numbers) if numbers else 0.0
    return Seen(known, start_s, len(numbers))


def _round_s(launches: Iterable[Launch]) -> float:
    """Return the seconds from the first phase of a round to the last."""
    phases = [phase for launch in launches for phase in launch.phases]
    begin_ns = min((phase.begin_ns for phase in phases), default=0)
    return (max((phase.begin_ns + phase.duration_ns for phase in phases), default=0) - begin_ns) / 1e9


def logs_by_cycle(
    suite: SuiteUsed, group: Group, cells: Sequence[Cell], launches: Sequence[Launch]
) -> list[list[list[float]]]:
    """Return the log-ratio of each pair of a group in each cycle of each round that counts; of a lone cell its step's.

    Pairs that loaded the same code are left out.
    """
    of_group = [cell for cell in cells if cell.key in group.cells]
    results = [
        CellResult(key=cell.key, cell=cell, launches=[each for each in launches if each.cell_key == cell.key])
        for cell in of_group
    ]
    table, _ = count_blocks(results, suite.plan.cycles)
    samples, step = group_samples(group, of_group, table), METRICS["step_ns"]
    if len(of_group) == 1:
        (sample,) = samples.values()
        return [[[math.log(ns) for ns in seen.blocks if ns > 0] for seen in series(step, sample).values()]]
    pairs: list[tuple[Sample, Sample]] = [*combinations(samples.values(), 2)]
    return [
        [[*cycles.values()] for cycles in cycle_log_ratios(step, *pair).values()]
        for pair in pairs
        if not blocked_by_code(suite, *pair)
    ]


def look_ahead(plan: RunPlan, launches: Sequence[Launch], left_s: float | None) -> Ahead | None:
    """Return what is foreseen of a run after some of its rounds; None where they show nothing.

    Args:
        plan: of a run that ends by a precision or a budget.
        launches: of the rounds so far.
        left_s: of the budget; None: there is none.
    """
    suite = plan.suite
    seen = seen_in(suite, plan.groups, plan.cells, launches)
    if not seen.groups:
        return None
    cycles = best_cycles(seen.groups, seen.start_s, seen.rounds, left_s)
    if suite.precision_pct is None:
        # A budget bounds what was planned, and does not make more of it.
        cycles = {key: min(count, suite.plan.cycles) for key, count in cycles.items()}
    return foreseen(seen, cycles, suite.rounds, suite.precision_pct, left_s)


def foreseen(
    seen: Seen, cycles: dict[str, int], planned: int, precision_pct: float | None, left_s: float | None
) -> Ahead:
    """Return how a run ends whose rounds have so many cycles.

    Args:
        seen: of its rounds so far, or of an earlier run's.
        cycles: of each group.
        planned: rounds; with a precision the first look at it.
        precision_pct: at which it ends; None: after the planned rounds.
        left_s: when it ends at the latest; None: there is no budget.
    """
    round_s = seen.start_s + sum(cycles[key] * group.cycle_s for key, group in seen.groups.items())
    pairs = [(pair, cycles[key]) for key, group in seen.groups.items() for pair in group.pairs]
    rounds = planned
    if precision_pct is not None:
        most = math.log1p(precision_pct / 100)
        rounds = max(rounds_for_half_width(pair, count, most) for pair, count in pairs)
    more = max(0, rounds - seen.rounds)
    if left_s is not None:
        more = min(more, math.ceil(max(0.0, left_s) / round_s))  # a round that has begun is finished
    whole = max(FIRST_LOOK, seen.rounds + more)
    return Ahead(cycles, seen.rounds + more, more * round_s, [half_width(pair, count, whole) for pair, count in pairs])


class Earlier(NamedTuple):
    """What an earlier profile says of a run that has not begun."""

    path: Path
    ahead: Ahead


def by_earlier_profiles(plan: RunPlan, folder: Path, budget_s: float | None) -> Earlier | None:
    """Return what the newest profile in a folder foresees that measured all groups of a plan on this hardware."""
    hardware, keys = plan.identity.hardware_sha256, {group.key for group in plan.groups}
    paths = list[tuple[float, Path]]()
    with suppress(OSError):
        paths = [(path.stat().st_mtime, path) for path in folder.glob("*.json")]
    for _, path in sorted(paths, reverse=True)[:PROFILES_READ]:
        try:
            profile = read_profile(path)
        except (KitError, OSError):
            continue
        if profile.identity.hardware_sha256 == hardware and keys <= {group.key for group in profile.groups}:
            seen = _seen_of(profile, keys)
            if seen.groups.keys() == keys and seen.rounds >= ROUNDS_FOR_VERDICT:
                cycles = dict.fromkeys(keys, plan.suite.plan.cycles)
                begun = seen._replace(rounds=0)
                return Earlier(path, foreseen(begun, cycles, plan.suite.rounds, plan.suite.precision_pct, budget_s))
    return None


def _seen_of(profile: Profile, keys: Iterable[str]) -> Seen:
    groups = [group for group in profile.groups if group.key in keys]
    launches = [launch for result in profile.cells for launch in result.launches]
    return seen_in(profile.suite, groups, [result.cell for result in profile.cells], launches)
