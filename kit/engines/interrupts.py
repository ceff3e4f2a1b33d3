"""Signals that end a run as Ctrl-C does, and where they have to wait."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

# Ctrl-C, an orderly end, and the terminal that has gone.
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    """Let interrupts that arrive within wait until its end. In the main thread only, as Python's handlers are."""
    arrived: list[int] = []
    before = {number: signal.signal(number, lambda signum, _: arrived.append(signum)) for number in _heeded()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for signum in arrived:
            signal.raise_signal(signum)


def _heeded() -> list[signal.Signals]:
    """Those that nobody has asked to ignore, as `nohup` does with SIGHUP."""
    return [number for number in INTERRUPTS if signal.getsignal(number) != signal.SIG_IGN]
