"""Cells whose step time is bimodal."""

from __future__ import annotations

import math

import numpy as np

from kit.audit.kernel_time import other_allocator
from kit.audit.rule import Member, Outcome, rule
from kit.compare.modes import modes_of
from kit.profile.reason import Value


@rule("member", worst="warning", also=("bimodal_page_faults",))
def bimodal(member: Member) -> Outcome:
    """Find cells whose step time is bimodal, and whether page faults differ between the modes."""
    modes = modes_of(member.cell, member.launches, member.others)
    if modes is None:
        return None
    values: dict[str, Value] = {
        "fast_step_ns": modes.step_ns[0],
        "slow_step_ns": modes.step_ns[1],
        "slow_share_pct": 100 * float(np.mean(list(modes.is_slow.values()))),
    }
    rank = 100 * (1 - math.exp(-modes.slowed_log))
    if modes.faults_per_step is None:
        return member.finding("bimodal", "warning", values, rank, explains=("stalls",))
    fast, slow = modes.faults_per_step
    values |= {"fast_faults_per_step": fast, "slow_faults_per_step": slow}
    explains = ("stalls", "page_faults", "kernel_share")
    return member.finding("bimodal_page_faults", "warning", values, rank, other_allocator(member.variant), explains)
