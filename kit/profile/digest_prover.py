"""Hashing in a thread of its own, while the thread that asked decodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread

from kit.profile.canonical import digest_proven_by


class DigestProver:
    """Proves digests one after the other in a thread of its own."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[bytearray, int] | None] = SimpleQueue()
        self._proven: SimpleQueue[str | None] = SimpleQueue()

    def ask(self, buffer: bytearray, size: int) -> None:
        """Begin with a file that takes the first `size` bytes of `buffer`."""
        self._asked.put((buffer, size))

    def answer(self) -> str | None:
        """`digest_proven_by` of the file asked first of those not answered."""
        return self._proven.get()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Ends with the thread gone."""
        thread = Thread(target=self._prove, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._asked.put(None)
            thread.join()

    def _prove(self) -> None:
        while (asked := self._asked.get()) is not None:
            try:
                self._proven.put(digest_proven_by(*asked))
            except MemoryError:  # an answer is waited for
                self._proven.put(None)
