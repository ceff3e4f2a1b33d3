"""A small file of /proc or /sys that is kept open and read again and again.

Ten times a second between sleeps, psutil and pathlib run from cold caches: 170 µs for one process and 120 µs for one
control group, against 30 µs and 10 µs for a read of a file that is already open.
"""

from __future__ import annotations

import os
from pathlib import Path


class HeldFile:
    """Reads a file of at most `size` bytes from its beginning, as often as asked.

    A held /proc/PID file stays with its process: when that is gone it answers ProcessLookupError, even if the pid is
    given to another.

    Raises:
        OSError: from the constructor and from `read`: missing, not permitted, or gone.
    """

    def __init__(self, file: Path, size: int = 4096) -> None:
        self._size = size
        self._fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """Fresh content: the kernel writes these files anew for every read from the beginning."""
        return os.pread(self._fd, self._size, 0)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
