"""CPUs used against threads: a framework that leaves CPUs idle, or takes more than it was given."""

from __future__ import annotations

from kit.audit.rule import Member, Outcome, rule, why_unread
from kit.compare.launch_arrays import cpus_used
from kit.profile.reason import Reason, reason

# Of the threads asked for. Small steps never fill all CPUs: below a half, the threads mostly wait.
IDLE_USE_MAX = 0.5
# Counters and threads that come and go blur the use by a few percent; a quarter more is another thread pool.
BEYOND_USE_LEAST = 1.25
# With one thread there is nothing to share.
THREADS_LEAST = 2
# An idle CPU is often in the nature of a small step: half as urgent as time that is spent on something useless.
IDLE_RANK = 0.5


@rule("member", worst="note", on="cpu")
def cpus_idle(member: Member) -> Outcome:
    """Find cells that use far fewer CPUs than they have threads."""
    values = _use(member)
    if isinstance(values, Reason):
        return values
    used, threads = values["cpus_used"], values["threads"]
    if threads < THREADS_LEAST or used >= IDLE_USE_MAX * threads:
        return None
    return member.finding("cpus_idle", "note", values, 100 * (1 - used / threads) * IDLE_RANK, reason("larger_batch"))


@rule("member", worst="warning", on="cpu")
def cpus_beyond(member: Member) -> Outcome:
    """Find cells that use more CPUs than they were given threads."""
    values = _use(member)
    if isinstance(values, Reason):
        return values
    used, threads = values["cpus_used"], values["threads"]
    if used <= BEYOND_USE_LEAST * threads:
        return None
    return member.finding("cpus_beyond", "warning", values, 100 * (used / threads - 1), reason("equal_threads"))


def _use(member: Member) -> dict[str, float] | Reason:
    threads = next((launch.threads.requested for launch in member.launches.values() if launch.threads is not None), 0)
    used = cpus_used(member.launches.values())
    if used is None or threads < 1:
        return why_unread(member.profile, "process.cpu_ns")
    return {"cpus_used": used, "threads": threads}
