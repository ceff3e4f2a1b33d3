"""What the verdict of a row rests on: its ratio to the baseline in each round, and in each cycle that counts or not."""

from __future__ import annotations

import math
from typing import NamedTuple

from kit.compare.contrast import cycle_log_ratios, log_ratios
from kit.compare.metrics import METRICS
from kit.compare.rows import GroupRows
from kit.compare.sample import read_run
from kit.profile.schema import Profile
from kit.stats.estimate import Estimate


class RoundRatios(NamedTuple):
    """The ratios of step times of a row: below 1 it is faster than the baseline."""

    name: str
    versus: Estimate  # of the whole run
    by_round: dict[int, float]  # of the cycles that count; of a round that does not: of all
    by_cycle: dict[int, list[float]]  # of each round, in order of cycle; none where cells ran one after another
    counting: dict[int, list[bool]]  # of each round that counts, which of its `by_cycle` do


def round_ratios(label: str, profile: Profile, group: GroupRows) -> list[RoundRatios]:
    """Return them of every row of a group that has a common round with the baseline, in the group's order.

    Args:
        label: of the profile.
        profile: whole, as it was read.
        group: of its comparison.
    """
    base = next((row for row in group.rows if row.is_baseline), None)
    if base is None:
        return []
    step, base_key = METRICS["step_ns"], base.samples[0].cell_key
    every = next(of.samples for of in read_run(label, profile, all_cycles=True).groups if of.key == group.key)
    ratios = []
    for row in group.rows:
        sample, of_all = row.samples[0], every.get(row.samples[0].cell_key)
        if row.versus is None or of_all is None:
            continue
        logs = log_ratios(step, of_all, every[base_key])
        if not logs:
            continue
        clean_logs, clean = log_ratios(step, sample, base.samples[0]), cycle_log_ratios(step, sample, base.samples[0])
        in_cycles, counting = cycle_log_ratios(step, of_all, every[base_key]), dict[int, list[bool]]()
        if sample.together is not None and not any(
            sample.together.counted.is_disturbed(launch.group) for launch in sample.launches
        ):
            counting = {
                number: [cycle in clean.get(number, {}) for cycle in in_cycles.get(number, {})] for number in clean_logs
            }
        by_round = {number: math.exp(log) for number, log in (logs | clean_logs).items()}
        by_cycle = {number: [math.exp(log) for log in of_round.values()] for number, of_round in in_cycles.items()}
        ratios.append(RoundRatios(row.name, row.versus, by_round, by_cycle, counting))
    return ratios
