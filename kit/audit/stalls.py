"""Stalls: a few steps take long; the step time has them in it, the median step does not see them.

▁▁▁█▁▁▁▁▁▁▁█▁▁▁▁▁
"""

from __future__ import annotations

import math

import numpy as np

from kit.audit.rule import Member, Outcome, rule
from kit.compare.launch_arrays import block_arrays
from kit.profile.launch import Launch
from kit.profile.reason import reason
from kit.stats.difference import Difference, over_rounds
from kit.stats.rounds import By, launch_time_ns, mean_step_ns
from kit.stats.verdict import ROUNDS_FOR_VERDICT

# Of the whole time, beyond what the median says. A mean lies 1 to 3 % above its median by common jitter.
STALLED_LEAST_PCT = 5.0


@rule("member", worst="warning")
def stalls(member: Member) -> Outcome:
    """Find cells in which occasional slow steps take a noticeable part of the time."""
    excesses = [over_rounds(logs) for logs in _excess_logs(member) if len(logs) >= ROUNDS_FOR_VERDICT]
    if not excesses:
        return reason("too_few_rounds", rounds=len(member.launches), needed=ROUNDS_FOR_VERDICT)
    least = min((excess for excess in excesses if excess is not None), key=_low, default=None)
    if least is None or _low(least) <= 1 + STALLED_LEAST_PCT / 100:
        return None
    stalled_pct = 100 * (1 - 1 / least.ratio)
    evidence = {"stalled_pct": stalled_pct, "rounds": least.count}
    return member.finding("stalls", "warning", evidence, stalled_pct, reason("see_latency"))


def _low(excess: Difference) -> float:
    return excess.interval()[0]


def _excess_logs(member: Member) -> list[list[float]]:
    """Return, over rounds, ln of the mean step over the usual one, less that of each other member.

    The machine's drift within a round is in both. Without others the usual step is that of each block.
    """
    if not member.others:
        return [[_within_blocks(launch) for launch in member.launches.values()]]

    def excess_log(launch: Launch) -> float:
        return member.once((_excess_log, id(launch)), lambda: _excess_log(launch))

    excess = {number: excess_log(launch) for number, launch in member.launches.items()}
    return [
        [log - excess_log(other[number]) for number, log in excess.items() if number in other]
        for other in member.others
    ]


def _within_blocks(launch: Launch) -> float:
    blocks = block_arrays(launch)
    return _log(np.sum(blocks.duration_ns) / np.sum(blocks.steps * blocks.times_ns(_usual(launch))))


def _excess_log(launch: Launch) -> float:
    blocks = block_arrays(launch)
    return _log(mean_step_ns(blocks) / launch_time_ns(blocks, _usual(launch)))


def _usual(launch: Launch) -> By:
    """Return what a usual step is: on an accelerator one that is waited for by itself is longer than the others."""
    return "step" if launch.blocks.per_wait else "latency"


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else math.nan
