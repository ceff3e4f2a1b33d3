"""Which threads of this process compute: CPU time of each, from a program's first block until its conclusion."""

from __future__ import annotations

from pathlib import Path

from kit.profile.fields import Reason, reason
from kit.sensors.linux import TICK_NS
from kit.sensors.sources import FAILURES

TASKS = Path("/proc/self/task")
# A thread counts if it has this fraction of the busiest thread's time: one that only waits and hands over has less.
USED_SHARE_LEAST = 0.05
# The busiest thread has at least this: with fewer ticks of the kernel, chance decides who has the share.
BUSIEST_LEAST_NS = 20 * TICK_NS


class ThreadUse:
    """CPU times of threads since an instant. One read takes up to a millisecond, so none stands beside each block."""

    def __init__(self, tasks: Path = TASKS) -> None:
        self._tasks = tasks
        self._before = _times_ns(tasks)

    def used(self) -> int | Reason:
        """Return how many threads have computed since, or why that is not known."""
        after = _times_ns(self._tasks)
        used_ns = [time_ns - self._before.get(thread, 0) for thread, time_ns in after.items()]
        busiest_ns = max(used_ns, default=0)
        if not after:
            return reason("not_shown", source=str(self._tasks))
        if busiest_ns < BUSIEST_LEAST_NS:
            return reason("threads_hardly_ran", busiest_ns=busiest_ns, needed_ns=BUSIEST_LEAST_NS)
        return sum(time_ns >= USED_SHARE_LEAST * busiest_ns for time_ns in used_ns)


def _times_ns(tasks: Path) -> dict[str, int]:
    """Return the CPU time of each thread; without those that end while they are listed."""
    times_ns = {}
    try:
        folders = list(tasks.iterdir())
    except OSError:
        return {}
    for folder in folders:
        try:
            # proc(5): the fields behind the name, which may hold anything; utime and stime in ticks.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            times_ns[folder.name] = (int(fields[11]) + int(fields[12])) * TICK_NS
        except FAILURES:
            continue
    return times_ns
