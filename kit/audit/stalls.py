"""Stalls: a few steps take long; the median step does not see them, samples per second does.

▁▁▁█▁▁▁▁▁▁▁█▁▁▁▁▁
"""

from __future__ import annotations

import math

from kit.audit.finding import Finding
from kit.audit.member import Member, block_arrays
from kit.profile.reason import reason
from kit.stats.difference import over_rounds
from kit.stats.rounds import round_ratio
from kit.stats.verdict import ROUNDS_FOR_VERDICT

# Of the whole time, beyond what the median says. A mean lies 1 to 3 % above its median by common jitter.
STALLED_LEAST_PCT = 5.0


def find(member: Member) -> Finding | None:
    """Find members whose whole time says something else than their median step, against every other of the group."""
    excesses = [over_rounds(logs) for logs in _excess_logs(member) if len(logs) >= ROUNDS_FOR_VERDICT]
    least = min((one for one in excesses if one is not None), key=lambda one: one.low, default=None)
    if least is None or least.low <= 1 + STALLED_LEAST_PCT / 100:
        return None
    stalled_pct = 100 * (1 - 1 / least.ratio)
    evidence = {"stalled_pct": stalled_pct, "rounds": least.rounds}
    return Finding("stalls", member.cell.key, member.group, evidence, stalled_pct, reason("compare_whole_time"))


def _excess_logs(member: Member) -> list[list[float]]:
    """Return for each other member, over rounds, ln of the ratio of whole times less that of medians.

    Without others it is the launch's own: whole time over what its blocks would take at their own medians.
    """
    own = {number: block_arrays(launch) for number, launch in member.launches.items()}
    if not member.others:
        return [[math.log(one.duration_ns.sum() / (one.steps * one.median_ns).sum()) for one in own.values()]]
    logs = []
    for other in member.others:
        ratios = [
            round_ratio(one, block_arrays(other[number]), paired=member.paired)
            for number, one in own.items()
            if number in other
        ]
        logs.append([ratio.whole_log_ratio - ratio.log_ratio for ratio in ratios if ratio is not None])
    return logs
