"""How much of some CPUs other programs use at this moment, and which: a run and `kit doctor` show it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from kit.devices.cpu import OTHERS_MOST
from kit.printable import printable_line
from kit.profile.fields import Reason, reason
from kit.sensors.linux import times_parser
from kit.sensors.sources import FAILURES, now_ns

# This is thirty ticks of the kernel on each CPU; one tick is 3 % of one CPU.
LOOK_S = 0.3
# A program that uses less than this fraction of a CPU is not worth a name.
NAMED_LEAST = 0.05
NAMED_MAX = 3
# The names of these programs say nothing, so the name of the script is shown, too.
INTERPRETERS = re.compile(r"(python|perl|ruby|node|java|bash|sh$|R$|julia)")


class OthersNow(NamedTuple):
    """What other programs used for a moment."""

    fraction: float | None  # of the CPUs' time; null: the kernel does not show it here
    busiest: list[str]  # name and process id, the busiest first; empty if no other process can be seen

    @property
    def is_quiet(self) -> bool:
        """Whether a block that is measured now would count as clean."""
        return self.fraction is None or self.fraction <= OTHERS_MOST

    @property
    def reason(self) -> Reason:
        """The finding as a code with values."""
        if self.fraction is None:
            return reason("others_unknown")
        code = "others_quiet" if self.is_quiet else "others_now" if self.busiest else "others_unseen"
        return reason(code, others_pct=100 * self.fraction, who=", ".join(self.busiest))


def others_now(cpus: Sequence[int], look_s: float = LOOK_S, root: Path = Path("/")) -> OthersNow:
    """Watch for `look_s` seconds how much others use of `cpus`, at least one; `root`: where /proc is."""
    times, stat = times_parser(cpus), root / "proc/stat"
    try:
        times(stat.read_bytes())
        processes_before = _cpu_s_of_processes(cpus)
        begin_ns, before, own_before_ns = now_ns(), times(stat.read_bytes()), time.process_time_ns()
        time.sleep(look_s)
        span_ns, after = now_ns() - begin_ns, times(stat.read_bytes())
    except FAILURES:  # the kernel does not show it here, or a CPU went offline
        return OthersNow(None, [])
    used_s = {
        f"{name} {pid}": later_s - processes_before.get((pid, name), later_s)
        for (pid, name), later_s in _cpu_s_of_processes(cpus).items()
    }
    busiest = [name for name in sorted(used_s, key=lambda name: -used_s[name]) if used_s[name] >= NAMED_LEAST * look_s]
    taken_ns = sum(after) - sum(before) - (time.process_time_ns() - own_before_ns)
    return OthersNow(min(1.0, max(0.0, taken_ns / (span_ns * len(cpus)))), busiest[:NAMED_MAX])


def _cpu_s_of_processes(cpus: Collection[int]) -> dict[tuple[int, str], float]:
    """Return the CPU time of each other process that can be seen and last ran on one of `cpus`, by its id and name.

    An interpreter's name is followed by the script or module that it runs.
    """
    used_s = {}
    for process in psutil.process_iter(["name", "cmdline", "cpu_times", "cpu_num"]):
        times, name = process.info["cpu_times"], process.info["name"] or "?"
        if process.pid == os.getpid() or times is None or process.info["cpu_num"] not in cpus:
            continue
        words = (process.info["cmdline"] or [])[1:]
        script = "" if "-c" in words else next((word for word in words if not word.startswith("-")), "")
        if INTERPRETERS.match(name) and script:
            name = f"{name} {Path(script).name}"
        used_s[process.pid, printable_line(name)] = times.user + times.system
    return used_s
