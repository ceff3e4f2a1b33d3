"""Interrupts of a command that keeps none back: the first raises, so that what was half made is removed; the next ends.

What Python's own handler raises can be swallowed, or turn into another error, in the middle of an import; and the first
process of a container ends of a signal only where it has a handler. A run has handlers of its own (`kit.engines`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kit.engines.interrupts import INTERRUPTS

# What a shell gives a command that a signal has ended.
EXIT_OF_SIGNAL = 128


class _First:
    """The first interrupt; None: there was none."""

    number: int | None = None


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Let an interrupt that ends the block end the process as its signal does, without a word.

    A shell's loop then ends, too, and a service manager takes it for an orderly end. Those that whoever started the
    command has ignored stay so.
    """
    for number in INTERRUPTS:
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, _raise_once)
    try:
        yield
    except BaseException:
        if _First.number is not None:
            _end(_First.number)
        raise
    finally:
        # While the interpreter ends, nothing is there to be removed, and nobody to take an exception.
        for number in INTERRUPTS:
            if signal.getsignal(number) is _raise_once:
                signal.signal(number, signal.SIG_DFL)


def _raise_once(number: int, _frame: FrameType | None) -> None:
    if _First.number is not None:
        _end(number)
    _First.number = number
    raise KeyboardInterrupt


def _end(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    # A container's first process is still there.
    os._exit(EXIT_OF_SIGNAL + number)
