"""Rules on the host: what CPUs, memory, other tasks, cores, nodes, heat and clocks did to all that was measured."""

from __future__ import annotations

from contextlib import suppress

from kit.audit.remedies import larger_batch, other_allocator
from kit.audit.rule import Found, rule, says
from kit.audit.subject import MeasuredCell, MeasuredRun, NotMeasuredError, not_recorded
from kit.compare.clean import TAKEN_BAD_PCT, TAKEN_LEAST_PCT, THROTTLED_LEAST_PCT
from kit.compare.modes import FAULTS_LEAST_PER_CPU_MS
from kit.profile.fields import Reason, Value, reason

# Cells without a problem had 0 to 2 % of their CPU time in the kernel, one that no remedy helped any further 10 %,
# those that a remedy helped 14 to 49 %.
KERNEL_PCT = 12.0
# The kernel samples user and kernel time at its ticks, 4 ms: 0.5 s are 125 samples, and 12 % is then right to 3 %.
CPU_TIME_NEEDED_NS = 500_000_000
# A fraction of the threads. Small steps never fill all CPUs; below a half, the threads mostly wait.
CPUS_IDLE_FRACTION = 0.5
# An idle CPU is often in the nature of a small step: it is half as urgent as time that is spent on something useless.
IDLE_URGENCY = 0.5
# Counters and threads that come and go blur the use by a few percent; a quarter more is another thread pool.
CPUS_BEYOND_PCT = 25.0
# 256 pages from a fast disk, 100 µs each, are 2.5 % of the time; a machine that moves unused memory out swaps less.
SWAPPED_B_PER_S = 1 << 20
# As for throttling: from here on, a step is off by more than what a verdict calls the same.
MEMORY_PRESSURE_PCT = 1.0
# Pools with more threads than CPUs wait for a CPU by themselves: cells without a problem had up to 38 %.
CPU_PRESSURE_PCT = 60.0
# 40 MiB: nodes borrow less of each other while a process starts.
NUMA_PAGES = 10_000
# 1 MiB per second of the run, as of swapped memory. A longer run borrows more of whatever else the machine does.
NUMA_PAGES_PER_S = 256


@rule("warning", at_least=THROTTLED_LEAST_PCT, explains=("cpus_idle", "stalls", "contention", "cpu_pressure"))
@says("{who}: a cgroup quota stopped the CPUs up to {throttled_pct:.0f} % of the time.")
def throttled(cell: MeasuredCell) -> Found | None:
    """Find cells whose CPUs were stopped by a cgroup quota."""
    lost = cell.lost_in_clean_cycles
    if lost is None or lost.throttled_pct is None:
        unread = cell.unread("cgroup.throttled_ns")
        if unread.reason.code == "no_throttling_count":
            return None  # a cgroup that counts no throttling can have no quota
        raise unread
    values = {"throttled_pct": lost.throttled_pct, "cpus": lost.cpus}
    return Found(values, lost.throttled_pct, remedy=_fewer_threads(cell.run))


@rule("bad", "quiet_machine", at_least=TAKEN_LEAST_PCT, explains=("cpus_idle", "cpu_pressure"))
@says(
    "{who}: other programs took up to {contention_pct:.0f} % of the {cpus} CPUs ({steal_pct:.0f} % by the "
    "hypervisor); this inflates the times by an unknown amount."
)
@says(
    "{who}: other programs took {contention_pct:.0f} % of the {cpus} CPUs ({steal_pct:.0f} % by the hypervisor); "
    "{left_out} of {cycles} cycles are left out.",
    code="cycles_left_out",
)
def contention(cell: MeasuredCell) -> Found | None:
    """Find cells that lost CPU time to other programs or to the hypervisor."""
    lost, rounds = cell.lost, cell.rounds.values()
    if lost is None or lost.others_pct is None:
        raise cell.unread("process.cpu_ns", "machine.busy_ns")
    taken_pct = lost.contention_pct
    values: dict[str, Value] = {"contention_pct": taken_pct, "steal_pct": lost.steal_pct or 0.0, "cpus": lost.cpus}
    if not any(known.counts for known in rounds):
        return Found(values, taken_pct, severity="bad" if taken_pct >= TAKEN_BAD_PCT else "warning")
    cycles = sum(known.ran for known in rounds)
    left_out = cycles - sum(known.clean for known in rounds if known.counts)
    values |= {"cycles": cycles, "left_out": left_out}
    return Found(values, taken_pct, code="cycles_left_out", severity="note") if left_out else None


@rule("note", on="cpu")
@says("{who}: {threads} threads keep only {cpus_used:.1f} CPUs busy.")
def cpus_idle(cell: MeasuredCell) -> Found | None:
    """Find cells that use far fewer CPUs than they have threads."""
    used, threads = _cpus_and_threads(cell)
    program = cell.run.profile.suite.programs.get(cell.cell.workload)
    if program is not None and program.command is not None:  # its CPU time is a child's
        return None
    if threads == 1 or used >= CPUS_IDLE_FRACTION * threads:
        return None
    values = {"cpus_used": used, "threads": threads}
    return Found(values, IDLE_URGENCY * 100 * (1 - used / threads), remedy=larger_batch(cell))


@rule("warning", "fewer_threads", on="cpu", at_least=CPUS_BEYOND_PCT)
@says("{who}: {cpus_used:.1f} CPUs are busy, although {threads} threads were requested.")
def cpus_beyond(cell: MeasuredCell) -> Found:
    """Find cells that use more CPUs than they were given threads."""
    used, threads = _cpus_and_threads(cell)
    return Found({"cpus_used": used, "threads": threads}, 100 * (used / threads - 1))


def _cpus_and_threads(cell: MeasuredCell) -> tuple[float, int]:
    blocks, threads = cell.counted("process.cpu_ns"), cell.threads
    if threads is None or threads.requested < 1:
        raise cell.unread("process.cpu_ns")
    return blocks.sums[0] / blocks.total_ns, threads.requested


@rule("warning", "more_memory", at_least=SWAPPED_B_PER_S, explains=("memory_pressure", "stalls"))
@says("{who}: the machine swapped {in_b} in and {out_b} out during {blocks_s} of blocks.")
def swapped(cell: MeasuredCell) -> Found:
    """Find cells during whose blocks the machine swapped memory in or out."""
    blocks = cell.counted("machine.swapped_in_b", "machine.swapped_out_b")
    seconds, (in_b, out_b) = blocks.total_ns / 1e9, blocks.sums
    values: dict[str, Value] = {"in_b": int(in_b), "out_b": int(out_b), "blocks_s": seconds}
    with suppress(NotMeasuredError):
        values["major_faults"] = int(cell.counted("process.major_faults").sums[0])
    return Found(values, 100.0, value=(in_b + out_b) / seconds)


@rule("warning", "more_memory", at_least=MEMORY_PRESSURE_PCT)
@says("{who}: some task waited for memory {some_pct:.1f} % of the time, all tasks {full_pct:.1f} %.")
def memory_pressure(cell: MeasuredCell) -> Found:
    """Find cells during whose blocks tasks of the machine waited for memory."""
    some_pct, full_pct = cell.time_pct("pressure.memory_some_ns", "pressure.memory_full_ns")
    return Found({"some_pct": some_pct, "full_pct": full_pct}, some_pct)


@rule("note", "quiet_machine", on="cpu", at_least=CPU_PRESSURE_PCT)
@says("{who}: some task waited for a CPU {some_pct:.0f} % of the time.")
def cpu_pressure(cell: MeasuredCell) -> Found:
    """Find cells during whose blocks some task waited for a CPU most of the time."""
    (some_pct,) = cell.time_pct("pressure.cpu_some_ns")
    return Found({"some_pct": some_pct}, some_pct / 10, value=some_pct)


@rule("warning")
@says("{threads} threads share a quota of {cpu_limit:g} CPUs, and wait when it is used up.")
def quota_below_threads(run: MeasuredRun) -> Found | None:
    """Find runs with more threads than their CPU quota can keep running."""
    limit = run.profile.identity.number("container.cpu_limit")
    if limit is None:
        return None
    if not run.threads:
        raise not_recorded("threads")
    most = max(threads.reported or threads.requested for threads in run.threads)
    return Found({"threads": most, "cpu_limit": limit}, remedy=_fewer_threads(run)) if most > limit else None


def _fewer_threads(run: MeasuredRun) -> Reason:
    """Return the remedy against a quota: as many threads as it can keep running."""
    return reason("raise_quota", threads=max(1, int(run.profile.identity.number("container.cpu_limit") or 1)))


@rule("warning", "one_node")
@says("the run used {nodes} of {of_nodes} NUMA nodes; {pages:,} pages came from a non-preferred node.")
def numa_remote(run: MeasuredRun) -> Found | None:
    """Find runs that used several NUMA nodes, or whose memory was allocated on a non-preferred node."""
    nodes, pages = run.cpu_sets("cpu.node"), run.growth("numa_misses", 0)
    cpus = {cpu for threads in run.threads for cpu in threads.cpus}
    used = sum(bool(cpus & {*node}) for node in nodes)
    if len(nodes) == 1:
        return None
    before, after = run.profile.state.before, run.profile.state.after
    first_ns, last_ns = before.raw_ns, None if after is None else after.raw_ns
    run_s = 0.0 if first_ns is None or last_ns is None else (last_ns - first_ns) / 1e9
    is_remote = pages >= max(NUMA_PAGES, NUMA_PAGES_PER_S * run_s)
    if used == 1 and not is_remote:
        run.growth("numa_misses")  # raises where it was not recorded
        return None
    values = {"nodes": used, "of_nodes": len(nodes), "pages": pages}
    return Found(values, severity="warning" if is_remote else "note")


@rule("note", on="cpu")
@says(
    "CPU cores are shared (threads: {threads}, CPUs: {cpus}, cores: {cores}, CPUs of these cores that other "
    "programs may use: {others_cpus})."
)
def smt_shared(run: MeasuredRun) -> Found | None:
    """Find runs whose threads share CPU cores with each other, or may share them with other programs."""
    siblings, cpus = run.cpu_sets("cpu.core"), {cpu for threads in run.threads for cpu in threads.cpus}
    cores = [core for core in siblings if cpus & {*core}]
    elsewhere = sum(len({*core} - cpus) for core in cores)
    most = max((threads.requested for threads in run.threads), default=0)
    if not cores or (most <= len(cores) and not elsewhere):
        return None
    values = {"threads": most, "cores": len(cores), "cpus": len(cpus), "others_cpus": elsewhere}
    of_cores = ",".join(str(min(cpus & {*core})) for core in cores)
    return Found(values, remedy=reason("whole_cores", cpu_list=of_cores))


@rule("warning", "cool_machine")
@says("heat throttled the CPU during the run (cores: {cores:,} ×, packages: {packages:,} ×).")
def cpu_throttled(run: MeasuredRun) -> Found | None:
    """Find runs during which heat throttled the CPU."""
    values = {"cores": run.growth("core_throttled"), "packages": run.growth("package_throttled", 0)}
    return Found(values) if any(values.values()) else None


@rule("note", "synchronize_clock")
@says("the machine's wall clock is not synchronized; step times do not depend on it.")
def clock_not_synchronized(run: MeasuredRun) -> Found | None:
    """Find runs on machines whose wall clock was not synchronized."""
    return None if run.was("clock_synchronized") else Found({})


@rule("note", "try_variant", at_least=KERNEL_PCT, explains=("kernel_share",))
@says(
    "{who}: {kernel_share_pct:.0f} % of the CPU time goes to the kernel, with {faults_per_step:,.0f} page faults "
    "per step."
)
def page_faults(cell: MeasuredCell) -> Found | None:
    """Find cells that spend much of their CPU time in the kernel, on page faults."""
    kernel_pct, _ = _kernel_time(cell)
    blocks = cell.counted("process.cpu_ns", "process.minor_faults")
    cpu_ns, faults = blocks.sums
    if not faults >= FAULTS_LEAST_PER_CPU_MS * cpu_ns / 1e6 > 0:
        return None
    values = {"kernel_share_pct": kernel_pct, "faults_per_step": blocks.per_step[1]}
    return Found(values, kernel_pct, remedy=other_allocator(cell))


@rule("note", "count_system_calls", at_least=KERNEL_PCT)
@says(
    "{who}: {kernel_share_pct:.0f} % of the CPU time goes to the kernel ({kernel_per_step_ns} per step), and page "
    "faults are not the reason."
)
def kernel_share(cell: MeasuredCell) -> Found:
    """Find cells that spend much of their CPU time in the kernel, for another reason than page faults."""
    kernel_pct, per_step_ns = _kernel_time(cell)
    return Found({"kernel_share_pct": kernel_pct, "kernel_per_step_ns": per_step_ns}, kernel_pct)


def _kernel_time(cell: MeasuredCell) -> tuple[float, float]:
    """Return the kernel's part of the CPU time in percent, and its nanoseconds per step."""
    blocks = cell.counted("process.user_ns", "process.system_ns")
    user_ns, system_ns = blocks.sums
    if user_ns + system_ns < CPU_TIME_NEEDED_NS:
        why = reason("too_little_cpu_time", cpu_ns=user_ns + system_ns, needed_ns=CPU_TIME_NEEDED_NS)
        raise NotMeasuredError(why)
    return 100 * system_ns / (user_ns + system_ns), blocks.per_step[1]
