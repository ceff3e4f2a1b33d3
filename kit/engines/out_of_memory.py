"""Whether the kernel has killed for want of memory: a SIGKILL does not say where it came from."""

from __future__ import annotations

from pathlib import Path


def memory_kills() -> int | None:
    """Processes that the kernel has killed for want of memory since it started, a cgroup's limit included.

    None where it does not count them (before Linux 4.13).
    """
    try:
        lines = Path("/proc/vmstat").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
