"""Cells whose CPUs a cgroup's quota stopped, or that lost CPU time to others and to the hypervisor."""

from __future__ import annotations

from kit.audit.finding import Severity
from kit.audit.rule import Member, Outcome, rule, why_unread
from kit.compare.cpu_loss import TAKEN_BAD_PCT, cpu_loss
from kit.profile.reason import Value, reason

NO_QUOTA_POSSIBLE = ("no_throttling_count",)


@rule("member", worst="warning")
def throttled(member: Member) -> Outcome:
    """Find cells whose CPUs were stopped by a cgroup quota."""
    lost = member.once((cpu_loss, member.key), lambda: cpu_loss(member.cell, member.launches.values()))
    if lost is None or lost.throttled_pct is None:
        why = why_unread(member.profile, "cgroup.throttled_ns")
        # A group that counts no throttling can have no quota: nothing was throttled.
        return None if why.code in NO_QUOTA_POSSIBLE else why
    if not lost.is_throttled:
        return None
    evidence: dict[str, Value] = {"throttled_pct": lost.throttled_pct, "cpus": lost.cpus}
    explains = ("cpus_idle", "stalls", "contention", "cpu_pressure")
    return member.finding("throttled", "warning", evidence, lost.throttled_pct, reason("raise_quota"), explains)


@rule("member", worst="bad", also=("cycles_left_out",))
def contention(member: Member) -> Outcome:
    """Find cells that lost CPU time to other programs or to the hypervisor."""
    launches = member.all_launches.values()
    lost = member.once((cpu_loss, contention, member.key), lambda: cpu_loss(member.cell, launches))
    if lost is None or lost.others_pct is None:
        return why_unread(member.profile, "process.cpu_ns", "machine.busy_ns")
    if not lost.is_contended:
        return None
    evidence: dict[str, Value] = {
        "contention_pct": lost.contention_pct,
        "steal_pct": lost.steal_pct or 0.0,
        "cpus": lost.cpus,
    }
    rounds = member.rounds.values()
    if any(of_round.counts for of_round in rounds):
        cycles = sum(of_round.ran for of_round in rounds)
        evidence |= {"cycles": cycles, "left_out": cycles - sum(of.clean for of in rounds if of.counts)}
        if not evidence["left_out"]:
            return None
        return member.finding("cycles_left_out", "note", evidence, lost.contention_pct, reason("quiet_machine"))
    severity: Severity = "bad" if lost.contention_pct >= TAKEN_BAD_PCT else "warning"
    explains = ("cpus_idle", "cpu_pressure")
    return member.finding("contention", severity, evidence, lost.contention_pct, reason("quiet_machine"), explains)
