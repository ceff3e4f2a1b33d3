"""Stalls: a few steps take long; the step time has them in it, the median step does not see them.

▁▁▁█▁▁▁▁▁▁▁█▁▁▁▁▁
"""

from __future__ import annotations

import math

import numpy as np

from kit.audit.finding import Finding
from kit.audit.member import Member, block_arrays
from kit.profile.reason import reason
from kit.stats.difference import over_rounds
from kit.stats.rounds import BlockArrays, By, launch_time_ns, mean_step_ns
from kit.stats.verdict import ROUNDS_FOR_VERDICT

# Of the whole time, beyond what the median says. A mean lies 1 to 3 % above its median by common jitter.
STALLED_LEAST_PCT = 5.0


def find(member: Member) -> Finding | None:
    """Find members whose whole time says something else than their usual step, against every other of the group."""
    excesses = [over_rounds(logs) for logs in _excess_logs(member) if len(logs) >= ROUNDS_FOR_VERDICT]
    least = min((excess for excess in excesses if excess is not None), key=lambda excess: excess.low, default=None)
    if least is None or least.low <= 1 + STALLED_LEAST_PCT / 100:
        return None
    stalled_pct = 100 * (1 - 1 / least.ratio)
    evidence = {"stalled_pct": stalled_pct, "rounds": least.rounds}
    return Finding("stalls", member.cell.key, member.group, evidence, stalled_pct, reason("see_latency"))


def _excess_logs(member: Member) -> list[list[float]]:
    """Return, over rounds, ln of the mean step over the usual one, less that of each other member.

    The machine's drift within a round is in both. Without others the usual step is that of each block.
    """
    # On an accelerator a step that is waited for by itself is longer than one that is not.
    by: By = "latency" if member.cell.device == "cpu" else "step"
    blocks = {number: block_arrays(launch) for number, launch in member.launches.items()}
    if not member.others:
        return [[_log(np.sum(one.duration_ns) / np.sum(one.steps * one.times_ns(by))) for one in blocks.values()]]
    return [
        [_excess_log(blocks[number], by) - _excess_log(block_arrays(launch), by) for number, launch in other.items()]
        for other in ({number: other[number] for number in blocks if number in other} for other in member.others)
    ]


def _excess_log(blocks: BlockArrays, by: By) -> float:
    return _log(mean_step_ns(blocks) / launch_time_ns(blocks, by))


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else math.nan
