"""An address of this host that the other ranks of a cell reach, where nobody listens."""

from __future__ import annotations

import os
import socket

LOOPBACK = "127.0.0.1"
# The address of the host on which srun was called, as Slurm gives it to what srun has started.
SRUN_ADDRESS = "SLURM_LAUNCH_NODE_IPADDR"
# Any port will do: connecting a datagram socket sends nothing, it only chooses a route.
ROUTE_PORT = 9


def free_address(towards: str) -> str:
    """Return host:port of this host, by the route to an address.

    `towards`: empty: to the host on which srun was called.
    """
    other = towards or os.environ.get(SRUN_ADDRESS, LOOPBACK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        route.connect((other, ROUTE_PORT))
        host = route.getsockname()[0]
    with socket.create_server((host, 0)) as server:
        return f"{host}:{server.getsockname()[1]}"
