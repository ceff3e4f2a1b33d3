"""The record itself: whether it contradicts itself, has holes in its readings, and what the sampler took.

A broken digest is not among the rules: such a file is not read at all, and is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import numpy as np

from kit.audit.finding import Finding
from kit.audit.launch_arrays import counted
from kit.audit.rule import Audited, Member, Outcome, rule
from kit.profile.reason import Value, reason

# Of a fast run's clock reading to the second, and of clocks that NTP steps.
STARTED_SLACK_S = 2.0
# Reasons of energy that was refused because readings were missing.
GAPS = ("energy_low_coverage", "energy_gap", "sampler_failed")
SAMPLER_CPU = "sampler.cpu"
# Of a step, as everything that measures beside it together may take.
SAMPLER_COST_MAX_PCT = 0.5
# Of the member's CPUs: with one idle in the mean the sampler runs there, and takes nothing from a step.
IDLE_CPUS_LEAST = 1.0


@rule("profile", worst="bad")
def identity_contradicts_itself(audited: Audited) -> Outcome:
    """Find profiles whose launches contradict the machine that the profile describes."""
    return [
        Finding(
            code="identity_contradicts_itself",
            severity="bad",
            values={"fact": fact, "identity": of_identity, "launch": of_launch},
        )
        for fact, of_identity, of_launch in dict.fromkeys(_contradictions(audited))
    ]


def _contradictions(audited: Audited) -> Iterator[tuple[str, Value, Value]]:
    """Yield a fact, what the identity says, and what a launch does."""
    profile = audited.profile
    cpus, boards = profile.identity.cpu.cores_logical, {board.device_id for board in profile.identity.accelerators}
    began = profile.state.before.taken
    ended = None if profile.state.after is None else profile.state.after.taken
    for launch in (launch for result in audited.results for launch in result.launches):
        # Each number once: of several hosts all have a CPU 0.
        if cpus is not None and launch.threads is not None and len({*launch.threads.cpus}) > cpus:
            yield "cpus", cpus, len({*launch.threads.cpus})
        unknown = [board for board in launch.device_ids if boards - {None} and board not in boards]
        if unknown:
            yield "GPUs", len(boards), unknown[0]
        if _is_outside(began, ended, launch.started):
            yield "time", began, launch.started


def _is_outside(began: str, ended: str | None, started: str) -> bool:
    """Whether a launch started before the run began or after it had ended; False where a time cannot be read."""
    try:
        begin, start = datetime.fromisoformat(began), datetime.fromisoformat(started)
        end = None if ended is None else datetime.fromisoformat(ended)
        early_s = (begin - start).total_seconds()
        late_s = 0.0 if end is None else (start - end).total_seconds()
    except (ValueError, TypeError):
        return False
    return max(early_s, late_s) > STARTED_SLACK_S


@rule("member", worst="warning")
def sampling_gaps(member: Member) -> Outcome:
    """Find cells for which readings of sensors are missing."""
    launches = member.launches.values()
    ended = sum(any(mark.code == "sampler_failed" for mark in launch.marks) for launch in launches)
    gaps = sum(
        any(
            energy.of == "steady"
            and energy.tier != "external_meter"
            and energy.reason is not None
            and energy.reason.code in GAPS
            for energy in launch.energy
        )
        for launch in launches
    )
    if not ended and not gaps:
        return None
    evidence = {"launches": max(ended, gaps), "of_launches": len(launches)}
    return member.finding("sampling_gaps", "warning", evidence, remedy=reason("free_a_cpu"))


@rule("member", worst="note")
def sampler_cost(member: Member) -> Outcome:
    """Find cells during whose blocks the sampler took more CPU time than allowed."""
    shares = [launch.sensors[SAMPLER_CPU].mean for launch in member.launches.values() if SAMPLER_CPU in launch.sensors]
    if not shares:
        ran = any(sensor.sampled and sensor.status != "unavailable" for sensor in member.profile.sensors)
        return reason("not_recorded", what=SAMPLER_CPU) if ran else None
    share_pct = max(shares)
    if share_pct <= SAMPLER_COST_MAX_PCT or _idle_cpus(member) >= IDLE_CPUS_LEAST:
        return None
    values = {"share_pct": share_pct, "allowed_pct": SAMPLER_COST_MAX_PCT}
    return member.finding("sampler_cost", "note", values, share_pct, reason("free_a_cpu"))


def _idle_cpus(member: Member) -> float:
    """Return how many of the member's CPUs were idle in its blocks, in the mean; 0 where nothing counted them."""
    launches = member.launches.values()
    cpus = next((len(launch.threads.cpus) for launch in launches if launch.threads is not None), 0)
    blocks = counted(launches, "machine.busy_ns", "machine.steal_ns")
    return 0.0 if blocks is None else cpus - float(np.sum(blocks.sums) / blocks.span_ns.sum())
