"""How many cycles the rounds to come have, and how narrow intervals will be: by what rounds so far have shown.

rounds 1, 2    as the suite says
from then on   as many cycles in each group as make intervals narrowest in the time that is left; looked at again after
               4, 8, 16 … rounds

It concerns runs that end by a precision or by a budget. What was measured before by the same plan, on the same
hardware, says the same of a run that has not begun.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from kit.compare.clean import count_blocks
from kit.compare.metrics import METRICS, usual_metric
from kit.compare.ratios import cycle_log_ratios, series
from kit.compare.runs import Sample, group_samples
from kit.compare.same_code import blocked_by_code
from kit.errors import KitError
from kit.fingerprint.fingerprint import hardware_sha256
from kit.profile.cell import Cell
from kit.profile.program_source import CommandSource
from kit.profile.schema import CellResult, Group, Launch, StepPlan, SuiteUsed
from kit.profile.store import read_profile
from kit.profile.unfinished import RunPlan
from kit.report.plan_report import Ahead
from kit.runner.rounds_left import ROUNDS_MAX
from kit.stats.estimate import ROUNDS_FOR_VERDICT
from kit.stats.two_components import GroupSeen, best_cycles, components, half_width, rounds_for_half_width
from kit.suites.groups import Bundle

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
            if pairs and ran and all(windows):
                seconds = (max(of[-1][1] for of in windows) - min(of[0][0] for of in windows)) / 1e9
                cycles_s[number] += seconds
                each_s.append(seconds / ran)
        if each_s:
            known[group.key] = GroupSeen(pairs, fmean(each_s))
    seconds_of = {number: round_s([launch for launch in launches if launch.round == number]) for number in numbers}
    start_s = fmean(max(0.0, seconds_of[number] - cycles_s[number]) for number in numbers) if numbers else 0.0
    return Seen(known, start_s, len(numbers))


def round_s(launches: Iterable[Launch]) -> float:
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
    samples, step = group_samples(suite, group, of_group, table), METRICS[usual_metric(suite)]
    if len(of_group) == 1:
        (sample,) = samples.values()
        return [[[math.log(ns) for ns in seen.blocks if ns > 0] for seen in series(step, sample).values()]]
    pairs: list[tuple[Sample, Sample]] = [*combinations(samples.values(), 2)]
    return [
        [[*cycles.values()] for cycles in cycle_log_ratios(step, *pair).values()]
        for pair in pairs
        if not blocked_by_code(suite, *pair)
    ]


def look_ahead(
    plan: RunPlan,
    bundles: Iterable[Bundle],
    launches: Sequence[Launch],
    rounds_s: Sequence[float],
    left_s: float | None,
) -> Ahead | None:
    """Return what is foreseen of a run after some of its rounds; None where they show nothing.

    Args:
        plan: of a run that ends by a precision or a budget.
        bundles: of its next round.
        launches: of the rounds so far.
        rounds_s: what those of them took that this process has run.
        left_s: of the budget; None: there is none.
    """
    suite = plan.suite
    groups = [group for bundle in bundles for group in bundle.groups]
    seen = seen_in(suite, groups, plan.cells, launches)
    if not seen.groups:
        return None
    if rounds_s:
        # They have idle stretches, which no launch knows of. The first one alone proves cells, and later ones may have
        # other numbers of cycles.
        cycles_s = sum(suite.plan.cycles * group.cycle_s for group in seen.groups.values())
        seen = seen._replace(start_s=max(seen.start_s, min(rounds_s[:FIRST_LOOK]) - cycles_s))
    most = suite.rounds if suite.precision_pct is None else ROUNDS_MAX
    cycles = best_cycles(seen.groups, seen.start_s, seen.rounds, left_s, most)
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
    more = {
        key: max(0, _rounds_of(group, cycles[key], planned, precision_pct) - seen.rounds)
        for key, group in seen.groups.items()
    }

    def seconds(rounds: int) -> float:
        """A group that is precise enough is in no further round."""
        of_groups = (min(rounds, more[key]) * cycles[key] * group.cycle_s for key, group in seen.groups.items())
        return rounds * seen.start_s + sum(of_groups)

    rounds = max(more.values())
    if left_s is not None:
        # A round that has begun is finished.
        rounds = next((count for count in range(rounds) if seconds(count) >= left_s), rounds)
    in_the_end = {key: seen.rounds + min(rounds, more[key]) for key in seen.groups}
    ends = [
        half_width(pair, cycles[key], in_the_end[key])
        for key, group in seen.groups.items()
        for pair in group.pairs
        if in_the_end[key] >= ROUNDS_FOR_VERDICT
    ]
    return Ahead(cycles, seen.rounds + rounds, seconds(rounds), ends)


def _rounds_of(group: GroupSeen, cycles: int, planned: int, precision_pct: float | None) -> int:
    """Return after how many rounds a group is at its end."""
    if precision_pct is None:
        return planned
    most = math.log1p(precision_pct / 100)
    needed = max(rounds_for_half_width(pair, cycles, most) for pair in group.pairs)
    return min(max(planned, needed), ROUNDS_MAX)


class Earlier(NamedTuple):
    """What an earlier profile says of a run that has not begun."""

    path: Path
    ahead: Ahead


def by_earlier_profiles(
    plan: RunPlan, folder: Path, budget_s: float | None, hardware: Callable[[], str] = hardware_sha256
) -> Earlier | None:
    """Return what the newest profile in a folder foresees that measured the cells of a plan alike, on this hardware.

    `hardware` returns the hash of this machine's, which the plan of a dry run does not have.
    """
    keys, commands = {cell.key for cell in plan.cells}, _commands(plan.suite)
    paths = list[tuple[float, Path]]()
    with suppress(OSError):
        paths = [(path.stat().st_mtime, path) for path in folder.glob("*.json")]
    for _, path in sorted(paths, reverse=True)[:PROFILES_READ]:
        try:
            profile = read_profile(path)
        except (KitError, OSError):
            continue
        is_alike = _steps_alike(profile.suite.plan, plan.suite.plan) and keys <= {each.key for each in profile.cells}
        is_alike = is_alike and commands.items() <= _commands(profile.suite).items()
        if is_alike and profile.identity.hardware_sha256 == hardware():
            launches = [launch for result in profile.cells if result.key in keys for launch in result.launches]
            seen = seen_in(profile.suite, plan.groups, plan.cells, launches)
            if seen.groups.keys() == {group.key for group in plan.groups} and seen.rounds >= ROUNDS_FOR_VERDICT:
                cycles = dict.fromkeys(seen.groups, plan.suite.plan.cycles)
                begun = seen._replace(rounds=0)
                return Earlier(path, foreseen(begun, cycles, plan.suite.rounds, plan.suite.precision_pct, budget_s))
    return None


def _commands(suite: SuiteUsed) -> dict[str, CommandSource | None]:
    return {name: source.command for name, source in suite.programs.items()}


def _steps_alike(plan: StepPlan, other: StepPlan) -> bool:
    """Return whether the launches of both measure alike, however many cycles they have and whatever joules need."""
    alike, other_alike = (replace(each, cycles=1, energy_s=0.0, energy_rounds="last") for each in (plan, other))
    return alike == other_alike
