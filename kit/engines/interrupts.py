"""Signals that end a run as Ctrl-C does, and where they have to wait.

held back ├── start ──┤ let through: the worker runs ├── ended, record read, in the journal ──┤ those that have arrived

While they are held back a handler of ours stands before the one that was there, and asks whether to wait; that is one
assignment, so there is no moment at which a signal meets half of a change. (Masking them would not do: the kernel then
gives them to another thread, and Python runs their handlers in the main thread all the same.)
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Ctrl-C, an orderly end, and the terminal that has gone.
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _never() -> bool:
    return False


def _always() -> bool:
    return True


class _Waiting:
    """Whether interrupts have to wait, and those that do. Signals are the whole process's, so there is one of it."""

    def __init__(self) -> None:
        self.has_to: Callable[[], bool] = _never
        self.arrived: list[int] = []


_WAITING = _Waiting()


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a run as Ctrl-C does: worker ended, profile written, journal kept."""

    def interrupt(_signum: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _heeded() if number != signal.SIGINT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let interrupts that arrive within wait until its end; within another one, until the end of that.

    In the main thread only, as Python's handlers are.
    """
    if _WAITING.has_to():
        yield
        return
    before, had_to = {number: signal.getsignal(number) for number in _heeded()}, _WAITING.has_to
    try:
        for number, handler in before.items():
            signal.signal(number, _waiting_before(handler))
        _WAITING.arrived.clear()
        _WAITING.has_to = _always
        yield
    finally:
        _WAITING.has_to = had_to
        for number, handler in before.items():
            signal.signal(number, handler)
        _let_come()


@contextmanager
def interrupts_let_through(unless: Callable[[], bool] = _never) -> Iterator[None]:
    """Within `interrupts_held_back`: those that have arrived come now; until the end others do, at once.

    Args:
        unless: asked as one arrives; true: it waits all the same.
    """
    before = _WAITING.has_to
    try:
        _WAITING.has_to = unless
        _let_come()
        yield
    finally:
        _WAITING.has_to = before


def _let_come() -> None:
    arrived, _WAITING.arrived = _WAITING.arrived, []
    for number in arrived:
        signal.raise_signal(number)


def _waiting_before(handler: Any) -> Callable[[int, FrameType | None], None]:  # noqa: ANN401 - what getsignal gives
    """A handler that lets `handler` wait where it has to."""

    def wait_or_handle(number: int, frame: FrameType | None) -> None:
        if _WAITING.has_to():
            _WAITING.arrived.append(number)
        elif callable(handler):
            handler(number, frame)
        else:
            signal.signal(number, handler)
            signal.raise_signal(number)

    return wait_or_handle


def _heeded() -> list[signal.Signals]:
    """Those that nobody has asked to ignore, as `nohup` does with SIGHUP; nor handles outside Python."""
    return [number for number in INTERRUPTS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
