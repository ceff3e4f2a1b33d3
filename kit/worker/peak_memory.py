"""The most memory that this process has held so far."""

from __future__ import annotations

from pathlib import Path


def peak_memory_b() -> int | None:
    """High-water mark of the resident set (VmHWM); None where the kernel does not say.

    Not `ru_maxrss`: that keeps the parent's mark across exec.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None
