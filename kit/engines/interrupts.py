"""Signals that end a run as Ctrl-C does, heeded only where nothing is lost or left half done.

held back ├─ heed ─ begin ─┤ the worker runs: heed each second ├─ ended, record read, in the journal, told ─┤ heed …

A handler that raises does so between any two instructions: in the middle of an import, whose module stays half made, or
in a callback of the interpreter's own, which swallows it. Ours takes note, and `heed_interrupts` raises. Who insists is
let through: a call that blocks, on a terminal that is stopped, say, would otherwise hold a run for good.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Ctrl-C, an orderly end, and the terminal that has gone.
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A user who sees nothing happen tries once more; a terminal that goes can send two.
NOTED_MAX = 2


class _Interrupts:
    """Whether interrupts are held back, and how many have been noted. Signals are the whole process's: there is one."""

    def __init__(self) -> None:
        self.held_back = False
        self.noted = 0


_INTERRUPTS = _Interrupts()


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let interrupts that arrive within wait for `heed_interrupts`, or the end; within another, for that one's.

    In the main thread only, as Python's handlers are. The third that has not been heeded does what it did before.

    Raises:
        KeyboardInterrupt: at the end, where one was not heeded and nothing else is being raised; what a function gives
            from within is lost then, so whoever needs it holds interrupts back around the call.
    """
    if _INTERRUPTS.held_back:
        yield
        return
    before = {number: signal.getsignal(number) for number in _not_ignored()}
    whole = False
    try:
        for number, handler in before.items():
            signal.signal(number, _noted_before(handler))
        _INTERRUPTS.noted, _INTERRUPTS.held_back = 0, True
        yield
        whole = True
    finally:
        _INTERRUPTS.held_back = False
        for number, handler in before.items():
            signal.signal(number, handler)
        if whole:
            heed_interrupts()
        _INTERRUPTS.noted = 0


def heed_interrupts() -> None:
    """End what is under way if an interrupt has been noted: called where nothing would be lost.

    Raises:
        KeyboardInterrupt: one had been, within `interrupts_held_back`; by this all that were have been heeded.
    """
    if _INTERRUPTS.noted:
        _INTERRUPTS.noted = 0
        raise KeyboardInterrupt


def _noted_before(handler: Any) -> Callable[[int, FrameType | None], None]:  # noqa: ANN401 - what getsignal gives
    """A handler that takes note while interrupts are held back, and else does what `handler` does."""

    def note_or_handle(number: int, frame: FrameType | None) -> None:
        if _INTERRUPTS.held_back and _INTERRUPTS.noted < NOTED_MAX:
            _INTERRUPTS.noted += 1
        elif callable(handler):
            handler(number, frame)
        else:
            signal.signal(number, handler)
            signal.raise_signal(number)

    return note_or_handle


def _not_ignored() -> list[signal.Signals]:
    """Those that nobody has asked to ignore, as `nohup` does with SIGHUP; nor handles outside Python."""
    return [number for number in INTERRUPTS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
