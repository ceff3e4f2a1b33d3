"""Which threads of this process computed: CPU time of each, before a program's first block and after its last one."""

from __future__ import annotations

from pathlib import Path

from kit.profile.reason import Reason, reason
from kit.sensors.linux import TICK_NS
from kit.sensors.protocol import FAILURES

TASKS = Path("/proc/self/task")
# A thread counts if it has this fraction of the busiest thread's time: one that only waits and hands over has less.
USED_SHARE_LEAST = 0.05
# The busiest thread has at least this: with fewer ticks of the kernel, chance decides who has the share.
BUSIEST_LEAST_NS = 20 * TICK_NS


class ThreadUse:
    """Reads outside of the blocks' edges: nothing of it is in any figure."""

    def __init__(self, tasks: Path = TASKS) -> None:
        self._tasks = tasks
        self._before: dict[str, int] | None = None
        self._after: dict[str, int] = {}

    def block_begins(self) -> None:
        """Read, if this is the first block."""
        if self._before is None:
            self._before = _times_ns(self._tasks)

    def block_ends(self) -> None:
        """Read: this may be the last block."""
        self._after = _times_ns(self._tasks)

    def used(self) -> int | Reason:
        """Return how many threads computed in between, or why that is not known."""
        before = self._before or {}
        used_ns = [time_ns - before.get(thread, 0) for thread, time_ns in self._after.items()]
        busiest_ns = max(used_ns, default=0)
        if not self._after:
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
