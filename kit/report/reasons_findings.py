"""Findings of the audit as sentences: first the evidence, then what to try. docs/findings.md says more of each."""

from __future__ import annotations

from typing import NamedTuple

from kit.audit.finding import Finding
from kit.report.reasons import Templates, said

# `{who}` is the member's name within its group; of what is the machine's, how many cells.
FINDINGS: Templates = {
    "page_faults": (
        "{who} spends {kernel_share_pct:.0f} % of its CPU time in the kernel: "
        "{faults_per_step:,.0f} page faults a step, on this host."
    ),
    "kernel_share": (
        "{who} spends {kernel_share_pct:.0f} % of its CPU time in the kernel, {kernel_per_step_ns} a step, "
        "and not on page faults."
    ),
    "two_modes": (
        "{who} runs in two modes: {fast_step_ns} and {slow_step_ns} a step, "
        "the slow one in {slow_share_pct:.0f} % of its blocks."
    ),
    "two_modes_page_faults": (
        "{who} runs in two modes: {slow_faults_per_step:,.0f} page faults a step in the slow one, "
        "{fast_faults_per_step:,.0f} in the fast one."
    ),
    "stalls": "{who} stalls for {stalled_pct:.0f} % of its time: in its step, not in its median step.",
    "cpus_idle": "{who} uses {cpus_used:.1f} CPUs with {threads} threads.",
    "cpus_beyond": "{who} uses {cpus_used:.1f} CPUs although {threads} threads were asked for.",
    "recompiles": "{who} compiled again after its first step: {recompiles} times, in {launches} of {of_launches}.",
    "throttled": "{who} were throttled by cgroup quota, at worst {throttled_pct:.0f} % of the time.",
    "contention": (
        "contention in {who}: at worst others took {taken_pct:.0f} % of the {cpus} CPUs "
        "(the hypervisor {steal_pct:.0f} %) while none was idle."
    ),
}

REMEDIES: Templates = {
    "try_variant": "Try --variant {variant} (apt: {package})",
    "count_system_calls": "Count its system calls: strace -c -f -p PID, or perf top",
    "see_latency": "See median, p95 and p99 in --wide, or judge by the median step: --by latency",
    "larger_batch": "Try a larger --batch, or fewer CPUs (taskset)",
    "equal_threads": "See kit show for its threads; equal numbers compare",
    "log_recompiles": "Set {setting} to see why",
    "raise_quota": "Raise the quota (docker run --cpus), or give whole CPUs (--cpuset-cpus)",
    "quiet_machine": "Stop other work, or run more rounds",
}


class FindingLine(NamedTuple):
    """A finding for people."""

    evidence: str
    remedy: str | None  # what to try, without a full stop
    more: str  # where to read on


def finding_line(finding: Finding, who: str) -> FindingLine:
    """Return the finding in words; `who` is the member's name within its group."""
    evidence = said(FINDINGS, finding.code, {"who": who, **finding.values})
    remedy = None if finding.remedy is None else said(REMEDIES, finding.remedy.code, finding.remedy.values)
    return FindingLine(evidence, remedy, f"docs/findings.md#{finding.anchor}")
