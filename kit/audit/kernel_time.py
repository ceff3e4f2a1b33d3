"""CPU time spent in the kernel instead of in arithmetic: on memory fetched anew in each step, or whatever for."""

from __future__ import annotations

from kit.audit.finding import Finding, Member
from kit.profile.cell import Variant
from kit.profile.reason import Reason, reason

# Cells that nothing was wrong with had 0 to 2 %, one that no remedy helped any further 10 %, those that one did
# 14 to 49 %.
KERNEL_SHARE_LEAST_PCT = 12.0
# The split into user and kernel is sampled at the kernel's ticks, 4 ms: half a second is 125 samples, and a share of
# 12 % is then right to 3 %.
CPU_TIME_LEAST_NS = 500_000_000
# Page faults per millisecond of the member's CPU time. Measured where another allocator helped by a fifth to a half:
# 90 to 190; where none helped any more: 40. At 50, a fault that costs 1.4 to 1.9 µs takes 7 to 10 % of the time.
FAULTS_LEAST_PER_CPU_MS = 50.0
TCMALLOC_VARIANT, TCMALLOC_PACKAGE = "tcmalloc:env=LD_PRELOAD=libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"


def find(member: Member) -> Finding | None:
    """Find cells that spend their CPU time in the kernel, and whether on page faults."""
    blocks = member.counted("process.user_ns", "process.system_ns")
    if blocks is None:
        return None
    user_ns, system_ns = blocks.sums
    if user_ns + system_ns < CPU_TIME_LEAST_NS:
        return None
    share_pct = 100 * system_ns / (user_ns + system_ns)
    if share_pct < KERNEL_SHARE_LEAST_PCT:
        return None
    faulting = member.counted("process.cpu_ns", "process.minor_faults")
    if faulting is not None:
        cpu_ns, faults = faulting.sums
        if faults >= FAULTS_LEAST_PER_CPU_MS * cpu_ns / 1e6 > 0:
            evidence = {"kernel_share_pct": share_pct, "faults_per_step": faulting.per_step[1]}
            return member.finding("page_faults", evidence, share_pct, other_allocator(member.variant))
    evidence = {"kernel_share_pct": share_pct, "kernel_per_step_ns": blocks.per_step[1]}
    return member.finding("kernel_share", evidence, share_pct, reason("count_system_calls"))


def other_allocator(variant: Variant | None) -> Reason | None:
    """Return the remedy, unless the cell already runs with an allocator of its own."""
    if variant is not None and "LD_PRELOAD" in variant.env:
        return None
    return reason("try_variant", variant=TCMALLOC_VARIANT, package=TCMALLOC_PACKAGE)
