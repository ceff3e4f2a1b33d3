"""CPUs used against threads: a framework that leaves CPUs idle, or takes more than it was given."""

from __future__ import annotations

from kit.audit.finding import Finding, Member
from kit.audit.launch_arrays import cpus_used
from kit.profile.reason import reason

# Of the threads asked for. Small steps never fill all CPUs: below a half, the threads mostly wait.
IDLE_USE_MAX = 0.5
# Counters and threads that come and go blur the use by a few percent; a quarter more is another thread pool.
BEYOND_USE_LEAST = 1.25
# With one thread there is nothing to share.
THREADS_LEAST = 2
# An idle CPU is often in the nature of a small step: half as urgent as time that is spent on something useless.
IDLE_RANK = 0.5


def find(member: Member) -> Finding | None:
    """Find cells on a CPU that use far fewer CPUs than they have threads, or more."""
    threads = next((launch.threads.requested for launch in member.launches.values() if launch.threads is not None), 0)
    used = cpus_used(member.launches.values())
    if used is None or threads < 1 or member.cell.device != "cpu":
        return None
    values = {"cpus_used": used, "threads": threads}
    if used > BEYOND_USE_LEAST * threads:
        return member.finding("cpus_beyond", values, 100 * (used / threads - 1), reason("equal_threads"))
    if threads >= THREADS_LEAST and used < IDLE_USE_MAX * threads:
        return member.finding("cpus_idle", values, 100 * (1 - used / threads) * IDLE_RANK, reason("larger_batch"))
    return None
