"""The host: what memory, other tasks, cores, nodes, heat and clocks did to all that was measured on it."""

from __future__ import annotations

from kit.audit.finding import Finding, Severity
from kit.audit.rule import Audited, Member, Outcome, rule
from kit.profile.launch import Threads
from kit.profile.reason import Reason, Value, reason

# Moved in a second of blocks. 256 pages from a fast disk, 100 µs each, are 2.5 % of the time; a machine that puts away
# what nobody touches moves less.
SWAPPED_LEAST_B_PER_S = 1 << 20
# Of the time, as for throttling: from here on the step is off by more than what is called the same.
MEMORY_PRESSURE_LEAST_PCT = 1.0
# Pools with more threads than CPUs wait for a CPU by themselves: cells that nothing was wrong with had up to 38 %.
CPU_PRESSURE_LEAST_PCT = 60.0
# 40 MiB: what nodes borrow of each other while a process starts is less.
NUMA_MISSES_LEAST = 10_000
# A second of the run: 1 MiB, as of swapped memory. Longer runs borrow more of whatever else the machine does.
NUMA_MISSES_LEAST_PER_S = 256


@rule("member", worst="warning")
def swapped(member: Member) -> Outcome:
    """Find cells during whose blocks the machine swapped memory in or out."""
    blocks = member.counted("machine.swapped_in_b", "machine.swapped_out_b")
    if isinstance(blocks, Reason):
        return blocks
    seconds = float(blocks.span_ns.sum()) / 1e9
    in_b, out_b = blocks.sums
    if (in_b + out_b) / seconds < SWAPPED_LEAST_B_PER_S:
        return None
    values: dict[str, Value] = {"in_b": int(in_b), "out_b": int(out_b), "blocks_s": seconds}
    faults = member.counted("process.major_faults")
    if not isinstance(faults, Reason):
        values["major_faults"] = int(faults.sums[0])
    return member.finding("swapped", "warning", values, 100.0, reason("more_memory"), ("memory_pressure", "stalls"))


@rule("member", worst="warning")
def memory_pressure(member: Member) -> Outcome:
    """Find cells during whose blocks tasks of the machine waited for memory."""
    blocks = member.counted("pressure.memory_some_ns", "pressure.memory_full_ns")
    if isinstance(blocks, Reason):
        return blocks
    some_pct, full_pct = (100 * total / float(blocks.span_ns.sum()) for total in blocks.sums)
    if some_pct < MEMORY_PRESSURE_LEAST_PCT:
        return None
    values: dict[str, Value] = {"some_pct": some_pct, "full_pct": full_pct}
    return member.finding("memory_pressure", "warning", values, some_pct, reason("more_memory"))


@rule("member", worst="note", on="cpu")
def cpu_pressure(member: Member) -> Outcome:
    """Find cells during whose blocks some task waited for a CPU most of the time."""
    blocks = member.counted("pressure.cpu_some_ns")
    if isinstance(blocks, Reason):
        return blocks
    some_pct = 100 * blocks.sums[0] / float(blocks.span_ns.sum())
    if some_pct < CPU_PRESSURE_LEAST_PCT:
        return None
    return member.finding("cpu_pressure", "note", {"some_pct": some_pct}, some_pct / 10, reason("quiet_machine"))


@rule("profile", worst="warning")
def quota_below_threads(audited: Audited) -> Outcome:
    """Find runs with more threads than their CPU quota can keep running."""
    limit = audited.profile.identity.number("container.cpu_limit")
    if limit is None:
        return None
    threads = _threads(audited)
    if not threads:
        return reason("not_recorded", what="threads")
    most = max(of.reported or of.requested for of in threads)
    if most <= limit:
        return None
    values: dict[str, Value] = {"threads": most, "cpu_limit": limit}
    return Finding(code="quota_below_threads", severity="warning", values=values, remedy=reason("raise_quota"))


@rule("profile", worst="warning")
def numa_remote(audited: Audited) -> Outcome:
    """Find runs that used several NUMA nodes, or whose memory was allocated on a non-preferred node."""
    nodes = audited.profile.identity.cpu_sets("cpu.node.")
    if not nodes:
        return audited.profile.identity.why_unknown("cpu.node")
    cpus = {cpu for of in _threads(audited) for cpu in of.cpus}
    used = [node for node in nodes if cpus & {*node}]
    if len(nodes) == 1:
        return None
    misses = _growth(audited, "numa_misses")
    grown = misses if isinstance(misses, int) else 0
    is_remote = grown >= max(NUMA_MISSES_LEAST, NUMA_MISSES_LEAST_PER_S * _run_s(audited))
    if len(used) == 1 and not is_remote:
        return misses if isinstance(misses, Reason) else None
    severity: Severity = "warning" if is_remote else "note"
    values: dict[str, Value] = {"nodes": len(used), "of_nodes": len(nodes), "pages": grown}
    return Finding(code="numa_remote", severity=severity, values=values, remedy=reason("one_node"))


@rule("profile", worst="note", on="cpu")
def smt_shared(audited: Audited) -> Outcome:
    """Find runs whose threads share CPU cores with each other, or may share them with other programs."""
    siblings = audited.profile.identity.cpu_sets("cpu.core.")
    if not siblings:
        return audited.profile.identity.why_unknown("cpu.core")
    threads = _threads(audited)
    cpus = {cpu for of in threads for cpu in of.cpus}
    cores = [core for core in siblings if cpus & {*core}]
    elsewhere = sum(len({*core} - cpus) for core in cores)
    most = max((of.requested for of in threads), default=0)
    if not cores or (most <= len(cores) and not elsewhere):
        return None
    values: dict[str, Value] = {"threads": most, "cores": len(cores), "cpus": len(cpus), "others_cpus": elsewhere}
    return Finding(code="smt_shared", severity="note", values=values, remedy=reason("whole_cores"))


@rule("profile", worst="warning")
def cpu_throttled(audited: Audited) -> Outcome:
    """Find runs during which heat throttled the CPU."""
    cores = _growth(audited, "core_throttled")
    if isinstance(cores, Reason):
        return cores
    packages = _growth(audited, "package_throttled")
    values: dict[str, Value] = {"cores": cores, "packages": packages if isinstance(packages, int) else 0}
    if not any(values.values()):
        return None
    return Finding(code="cpu_throttled", severity="warning", values=values, remedy=reason("cool_machine"))


@rule("profile", worst="note")
def clock_not_synchronized(audited: Audited) -> Outcome:
    """Find runs on machines whose wall clock was not synchronized."""
    synchronized = audited.profile.state.before.flag("clock_synchronized")
    if synchronized is None:
        return _why_of_state(audited, "clock_synchronized")
    if synchronized:
        return None
    return Finding(code="clock_not_synchronized", severity="note", remedy=reason("synchronize_clock"))


def _threads(audited: Audited) -> list[Threads]:
    launches = (launch for result in audited.results for launch in result.launches)
    return [launch.threads for launch in launches if launch.threads is not None]


def _growth(audited: Audited, counter: str) -> int | Reason:
    """Return what a counter of the machine's state grew by during the run, or why that is not known."""
    before, after = audited.profile.state.before, audited.profile.state.after
    first, last = before.integer(counter), None if after is None else after.integer(counter)
    return _why_of_state(audited, counter) if first is None or last is None else last - first


def _run_s(audited: Audited) -> float:
    """Return how long the run took; 0 where that is not known."""
    before, after = audited.profile.state.before, audited.profile.state.after
    if before.raw_ns is None or after is None or after.raw_ns is None:
        return 0.0
    return (after.raw_ns - before.raw_ns) / 1e9


def _why_of_state(audited: Audited, field: str) -> Reason:
    span = audited.profile.state
    reasons = span.before.reasons | (span.after.reasons if span.after is not None else {})
    return reasons.get(field, reason("not_recorded", what=field))
