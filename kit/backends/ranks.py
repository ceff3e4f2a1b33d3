"""The processes of one cell, its ranks: each computes its part of every batch, and gradients are averaged over all.

Rank 0 alone has a runner. What joins the ranks while they compute is their framework's own collectives.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from kit.environment import NO_ALL_REDUCE


class RankPlace(NamedTuple):
    """Which of a cell's processes this is, and where all are."""

    number: int
    addresses: tuple[str, ...]  # host:port of each rank, free for the framework's own rendezvous

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.addresses)


# Ranks are stopped while other members run: no framework may take that for an end. The kit itself sees one end at once.
HEARTBEAT_LIMIT_S = 7 * 24 * 3600

ALONE = RankPlace(0, ("",))


def all_reduces() -> bool:
    """Whether gradients are averaged over ranks and devices."""
    return os.environ.get(NO_ALL_REDUCE, "") in ("", "0")
