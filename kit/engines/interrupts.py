"""Signals that end a run as Ctrl-C does, heeded only where nothing is lost or left half done.

held back ├─ heed ─ begin ─┤ the worker runs: heed each second ├─ ended, record read, in the journal, told ─┤ heed …

A handler that raises does so between any two instructions: in the middle of an import, whose module stays half made, or
in a callback of the interpreter's own, which swallows it. Ours takes note, and `heed_interrupts` raises.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Ctrl-C, an orderly end, and the terminal that has gone.
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Interrupts:
    """Whether interrupts are held back, and whether one has arrived. Signals are the whole process's: there is one."""

    def __init__(self) -> None:
        self.held_back = False
        self.arrived = False


_OURS = _Interrupts()


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let interrupts that arrive within wait for `heed_interrupts`, or the end; within another, for that one's.

    In the main thread only, as Python's handlers are.

    Raises:
        KeyboardInterrupt: at the end, where one has arrived that was not heeded, and nothing else is being raised.
    """
    if _OURS.held_back:
        yield
        return
    before = {number: signal.getsignal(number) for number in _not_ignored()}
    whole = False
    try:
        for number, handler in before.items():
            signal.signal(number, _noted_before(handler))
        _OURS.arrived, _OURS.held_back = False, True
        yield
        whole = True
    finally:
        _OURS.held_back = False
        for number, handler in before.items():
            signal.signal(number, handler)
        if whole:
            heed_interrupts()


def heed_interrupts() -> None:
    """Here nothing would be lost.

    Raises:
        KeyboardInterrupt: an interrupt has arrived within `interrupts_held_back`; it has been heeded by this.
    """
    if _OURS.arrived:
        _OURS.arrived = False
        raise KeyboardInterrupt


def _noted_before(handler: Any) -> Callable[[int, FrameType | None], None]:  # noqa: ANN401 - what getsignal gives
    """A handler that takes note while interrupts are held back, and else does what `handler` does."""

    def note_or_handle(number: int, frame: FrameType | None) -> None:
        if _OURS.held_back:
            _OURS.arrived = True
        elif callable(handler):
            handler(number, frame)
        else:
            signal.signal(number, handler)
            signal.raise_signal(number)

    return note_or_handle


def _not_ignored() -> list[signal.Signals]:
    """Those that nobody has asked to ignore, as `nohup` does with SIGHUP; nor handles outside Python."""
    return [number for number in INTERRUPTS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
