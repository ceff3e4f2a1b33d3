"""The processes of one cell, its ranks: each computes its part of every batch, and gradients are averaged over all.

The runner asks every rank for the same. While they compute, their framework's own collectives join them.
"""

from __future__ import annotations

import os
import socket
from typing import NamedTuple

import psutil

from kit.environment import NO_ALL_REDUCE

# The variables of gloo and NCCL that name the interface by which ranks reach each other.
GLOO_INTERFACE, NCCL_INTERFACE = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"


class RankGroup(NamedTuple):
    """The ranks of a cell, and which of them this process is."""

    number: int  # of this process, from 0
    addresses: tuple[str, ...]  # host:port of each rank, for the framework's own rendezvous
    folder: str = ""  # that all ranks share and other users cannot enter; empty: they are on several hosts
    held: socket.socket | None = None  # has this rank's port until the framework binds it; None: nobody else is there

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.addresses)

    @property
    def host(self) -> str:
        """Return this rank's address without its port."""
        return self.addresses[self.number].rpartition(":")[0]

    def give_port(self) -> None:
        """Give the port to the framework, which binds it next."""
        if self.held is not None:
            self.held.close()

    def interface(self) -> str | None:
        """Return the name of the interface that has this rank's address; None if there is none."""
        named = psutil.net_if_addrs().items()
        return next((name for name, known in named if any(entry.address == self.host for entry in known)), None)

    def keep_to_interface(self) -> None:
        """Let the collectives of this process use only that interface.

        Over several hosts the user's choice is kept, and NCCL's own choice: it may use several networks at a time.
        """
        if (name := self.interface()) is None:
            return
        if self.folder:
            os.environ |= {GLOO_INTERFACE: name, NCCL_INTERFACE: name}
        else:
            os.environ.setdefault(GLOO_INTERFACE, name)


# The runner stops ranks while other workers run, and no framework may take that for their end. The runner itself sees
# an end at once.
HEARTBEAT_LIMIT_S = 7 * 24 * 3600

ALONE = RankGroup(0, ("",))


def all_reduces() -> bool:
    """Return whether gradients are averaged over ranks and devices."""
    return os.environ.get(NO_ALL_REDUCE, "") in ("", "0")
