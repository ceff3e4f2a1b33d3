"""Interrupts while nothing is lost by them: the command ends there and then, without a word.

Python's own handler raises wherever it is, half-way through an import, say, where it can be swallowed or turn into
another error; and as a container's first process nothing but a handler ends a command. A run brings its own.
"""

from __future__ import annotations

import os
import signal

# What a shell gives a command that a signal has ended.
EXIT_OF_SIGNAL = 128


def end_at_once_on_interrupt() -> None:
    """Let Ctrl-C and SIGTERM end the process with 130 and 143, unless whoever started it has them ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, _end)


def _end(number: int, _frame: object) -> None:
    os._exit(EXIT_OF_SIGNAL + number)
