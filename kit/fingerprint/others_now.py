"""What other programs use of some CPUs at this moment, and which they are: shown before a run, and by `kit doctor`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from kit.devices.limits import OTHERS_MOST
from kit.printable import printable_line
from kit.profile.reason import Reason, reason
from kit.sensors.linux import times_parser
from kit.sensors.protocol import FAILURES, now_ns

# Thirty ticks of the kernel on each CPU: one of them is 3 % of one CPU.
LOOK_S = 0.3
# A program that uses less than this fraction of a CPU is not worth a name.
NAMED_LEAST = 0.05
NAMED_MAX = 3
# The names of these programs say nothing: the name of the script counts.
INTERPRETERS = re.compile(r"(python|perl|ruby|node|java|bash|sh$|R$|julia)")


class OthersNow(NamedTuple):
    """What others used during the look."""

    fraction: float | None  # of the CPUs' time; null: the kernel does not count it here
    busiest: list[str]  # name and process id, the busiest first; empty where no other process can be seen

    @property
    def is_quiet(self) -> bool:
        """Whether a block that is measured now would be clean, as far as is known."""
        return self.fraction is None or self.fraction <= OTHERS_MOST

    @property
    def reason(self) -> Reason:
        """The finding as a code with values."""
        if self.fraction is None:
            return reason("others_unknown")
        code = "others_quiet" if self.is_quiet else "others_now" if self.busiest else "others_unseen"
        return reason(code, others_pct=100 * self.fraction, who=", ".join(self.busiest))


def others_now(cpus: Sequence[int], look_s: float = LOOK_S, root: Path = Path("/")) -> OthersNow:
    """Look for `look_s` seconds at what others use of `cpus`, at least one; `root`: where /proc is looked for."""
    times, stat = times_parser(cpus), root / "proc/stat"
    try:
        times(stat.read_bytes())
        processes_before = _cpu_s_of_processes(cpus)
        begin_ns, before, own_before_ns = now_ns(), times(stat.read_bytes()), time.process_time_ns()
        time.sleep(look_s)
        span_ns, after = now_ns() - begin_ns, times(stat.read_bytes())
    except FAILURES:  # not counted here, or a CPU went
        return OthersNow(None, [])
    used_s = {
        process: now_s - processes_before[process]
        for process, now_s in _cpu_s_of_processes(cpus).items()
        if process in processes_before and now_s - processes_before[process] >= NAMED_LEAST * look_s
    }
    busiest = [f"{name} {pid}" for pid, name in sorted(used_s, key=lambda process: -used_s[process])[:NAMED_MAX]]
    taken_ns = sum(after) - sum(before) - (time.process_time_ns() - own_before_ns)
    return OthersNow(min(1.0, max(0.0, taken_ns / (span_ns * len(cpus)))), busiest)


def _cpu_s_of_processes(cpus: Collection[int]) -> dict[tuple[int, str], float]:
    """Return the CPU time of each other process that can be seen and ran last on one of `cpus`, by its id and name.

    The name of an interpreter comes with the script or module that it runs.
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
