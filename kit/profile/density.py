"""How much memory JSON may take once decoded, told from its bytes before it is.

``[],`` is three bytes in a file and eighty in memory: a file of nothing else would take 25 times its size. A profile is
mostly names and long numbers, and takes 3 to 5 times its size.
"""

from __future__ import annotations

import numpy as np

# Bytes in memory that a byte of JSON stands for at most, in CPython 3.11 to 3.13 on 64 bits. A comma or colon: the
# place of the value after it, and the number that it may be. A bracket: an empty list or object, and the smallest table
# of its members. A quote: half a short string.
COSTS_B = {b",": 43, b":": 24, b"{": 150, b"[": 100, b'"': 30}
# A character beyond ASCII: the string with it has a longer head, and more bytes a character.
WIDE_B = 40
# First bytes of such characters in UTF-8.
WIDE_FROM = 0xC0
# In memory over in the file, by these costs. A profile is decoded and, for its digest, encoded again: up to 7 all kinds
# of hostile files stay within 10 times their size. Profiles reach 6.5, and 6.8 with the most short steps they may hold.
PROFILE_MAX = 7.0
# A journal is decoded only, and all of it may be short steps: five digits and a comma make 7.2.
JOURNAL_MAX = 8.5
# Reading a smaller file takes less than the kit takes without it, whatever is in it.
SMALL_B = 256 << 10


def too_dense(data: bytes | memoryview) -> bool:
    """Whether decoding these bytes of a profile could take more than about ten times as much memory."""
    return len(data) > SMALL_B and _decoded_b(data) > PROFILE_MAX * len(data)


class JournalDensity:
    """The same of a journal, which is read and decoded a line at a time."""

    def __init__(self) -> None:
        self._size_b = self._decoded_b = 0

    def too_dense_with(self, data: bytes) -> bool:
        """Whether all that has been given, and `data`, could take more than about ten times as much memory."""
        self._size_b += len(data)
        self._decoded_b += _decoded_b(data)
        return self._size_b > SMALL_B and self._decoded_b > JOURNAL_MAX * self._size_b


def _decoded_b(data: bytes | memoryview) -> int:
    characters = np.frombuffer(data, np.uint8)
    cost_b = sum(cost * int(np.count_nonzero(characters == ord(mark))) for mark, cost in COSTS_B.items())
    return cost_b + WIDE_B * int(np.count_nonzero(characters >= WIDE_FROM))
