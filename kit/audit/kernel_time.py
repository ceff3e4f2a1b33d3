"""CPU time spent in the kernel instead of in arithmetic: on memory fetched anew in each step, or whatever for."""

from __future__ import annotations

from typing import NamedTuple

from kit.audit.rule import Member, Outcome, rule
from kit.compare.launch_arrays import Counted
from kit.compare.modes import FAULTS_LEAST_PER_CPU_MS
from kit.profile.cell import Variant
from kit.profile.reason import Reason, Value, reason

# Cells that nothing was wrong with had 0 to 2 %, one that no remedy helped any further 10 %, those that one did
# 14 to 49 %.
KERNEL_SHARE_LEAST_PCT = 12.0
# The split into user and kernel is sampled at the kernel's ticks, 4 ms: half a second is 125 samples, and a share of
# 12 % is then right to 3 %.
CPU_TIME_LEAST_NS = 500_000_000
TCMALLOC_VARIANT, TCMALLOC_PACKAGE = "tcmalloc:env=LD_PRELOAD=libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"


@rule("member", worst="note")
def page_faults(member: Member) -> Outcome:
    """Find cells that spend much of their CPU time in the kernel, on page faults."""
    split, faulting = _split(member), member.counted("process.cpu_ns", "process.minor_faults")
    if isinstance(split, Reason) or isinstance(faulting, Reason):
        return split if isinstance(split, Reason) else faulting if isinstance(faulting, Reason) else None
    if split.share_pct < KERNEL_SHARE_LEAST_PCT or not _is_faulting(faulting):
        return None
    evidence: dict[str, Value] = {"kernel_share_pct": split.share_pct, "faults_per_step": faulting.per_step[1]}
    remedy = other_allocator(member.variant)
    return member.finding("page_faults", "note", evidence, split.share_pct, remedy, ("kernel_share",))


@rule("member", worst="note")
def kernel_share(member: Member) -> Outcome:
    """Find cells that spend much of their CPU time in the kernel, for another reason than page faults."""
    split = _split(member)
    if isinstance(split, Reason):
        return split
    if split.share_pct < KERNEL_SHARE_LEAST_PCT:
        return None
    evidence: dict[str, Value] = {"kernel_share_pct": split.share_pct, "kernel_per_step_ns": split.per_step_ns}
    return member.finding("kernel_share", "note", evidence, split.share_pct, reason("count_system_calls"))


class _Split(NamedTuple):
    share_pct: float  # of CPU time in the kernel
    per_step_ns: float


def _split(member: Member) -> _Split | Reason:
    blocks = member.counted("process.user_ns", "process.system_ns")
    if isinstance(blocks, Reason):
        return blocks
    user_ns, system_ns = blocks.sums
    if user_ns + system_ns < CPU_TIME_LEAST_NS:
        return reason("too_little_cpu_time", cpu_ns=user_ns + system_ns, needed_ns=CPU_TIME_LEAST_NS)
    return _Split(100 * system_ns / (user_ns + system_ns), blocks.per_step[1])


def _is_faulting(blocks: Counted) -> bool:
    cpu_ns, faults = blocks.sums
    return faults >= FAULTS_LEAST_PER_CPU_MS * cpu_ns / 1e6 > 0


def other_allocator(variant: Variant | None) -> Reason | None:
    """Return the remedy, unless the cell already runs with an allocator of its own."""
    if variant is not None and "LD_PRELOAD" in variant.env:
        return None
    return reason("try_variant", variant=TCMALLOC_VARIANT, package=TCMALLOC_PACKAGE)
