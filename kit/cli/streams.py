"""Standard output and standard error that do not end a command.

standard output   its reader has gone (`kit compare … | head`)      the rest goes nowhere, the exit code stays
                  anything else (a full disk)                        an error, which is told
standard error    its reader has gone, a full disk, no terminal      what was to be said is lost, and nothing else:
                                                                     a run measures on
either            closed (`kit compare … >&-`)                         the same: it goes nowhere
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# Input, output, errors.
STANDARD = (0, 1, 2)
READER_GONE = frozenset({errno.EPIPE})


class _Losing(io.RawIOBase):
    """Writes to a descriptor, until an error comes that may be ignored; from then on nowhere."""

    def __init__(self, descriptor: int, ignored: Collection[int] | None) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._ignored = ignored
        self._lost = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: ReadableBuffer, /) -> int:
        if not self._lost:
            try:
                return os.write(self._descriptor, data)
            except OSError as error:
                if self._ignored is not None and error.errno not in self._ignored:
                    raise
                self._lost = True
        return len(memoryview(data))


def protect() -> None:
    """Put them in place of the interpreter's own; others (of a test) are left alone."""
    _fill_closed()
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _losing(sys.stdout, READER_GONE, line_buffering=sys.stdout.isatty())
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _losing(sys.stderr, None, line_buffering=True)


def _fill_closed() -> None:
    """A journal that is opened later would get a closed stream's number, and in it what a library prints there."""
    for descriptor in STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is None:
        sys.stdout = _writer(1)
    if sys.stderr is None:
        sys.stderr = _writer(2)


def _writer(descriptor: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(_Losing(descriptor, None)), "utf-8", line_buffering=True)


def _losing(stream: io.TextIOWrapper, ignored: Collection[int] | None, *, line_buffering: bool) -> io.TextIOWrapper:
    raw = io.BufferedWriter(_Losing(stream.fileno(), ignored))
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=line_buffering)
