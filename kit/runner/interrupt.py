"""Signals that end a run as Ctrl-C does: their handler sets a flag, which is looked at where nothing is half done."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Ctrl-C, an orderly end, and the terminal that has gone.
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# How soon an interrupt is heeded while a worker works, or the machine idles.
LOOK_EVERY_S = 0.5


class StopFlag:
    """Whether an interrupt has come."""

    def __init__(self) -> None:
        self.requested = False

    @contextmanager
    def deferring_interrupts(self) -> Iterator[None]:
        """Take note of interrupts within, in place of what their handlers did; those that are ignored stay so."""
        before = {number: signal.getsignal(number) for number in INTERRUPTS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt where one has come."""
        if self.requested:
            raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        """Sleep so long, or raise KeyboardInterrupt where one comes."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left_s, LOOK_EVERY_S))

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
