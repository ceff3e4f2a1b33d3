"""A disk that is full where the launch writes: no fault of the cell, so the engine must be able to tell."""

from __future__ import annotations

import errno
import os

# Full, or the user's share of it is.
ERRNOS = (errno.ENOSPC, errno.EDQUOT)
# The worker's, where it cannot write its record: there is no room for a reason, nor in standard error's file.
# EX_IOERR of <sysexits.h>.
EXIT_NO_ROOM = 74
# Python's own, where what it had for standard output could not be written at its end.
EXIT_NOT_FLUSHED = 120


def says_no_room(text: str) -> bool:
    """Whether a message is of a full disk: what libraries raise seldom keeps the number."""
    return any(os.strerror(number) in text for number in ERRNOS)
