"""The processes of one cell, its ranks: each computes its part of every batch, and gradients are averaged over all.

The runner asks every rank for the same. While they compute, their framework's own collectives join them.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from kit.environment import NO_ALL_REDUCE


class RankGroup(NamedTuple):
    """The ranks of a cell, and which of them this process is."""

    number: int  # of this process, from 0
    addresses: tuple[str, ...]  # host:port of each rank, free for the framework's own rendezvous

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.addresses)


# The runner stops ranks while other workers run, and no framework may take that for their end. The runner itself sees
# an end at once.
HEARTBEAT_LIMIT_S = 7 * 24 * 3600

ALONE = RankGroup(0, ("",))


def all_reduces() -> bool:
    """Return whether gradients are averaged over ranks and devices."""
    return os.environ.get(NO_ALL_REDUCE, "") in ("", "0")
