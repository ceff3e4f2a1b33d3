"""A port of this host, held until a framework binds it, by an address that the other ranks of a cell reach."""

from __future__ import annotations

import os
import socket

from kit.worker.private_network import LOOPBACK

# The address of the host on which srun was called, as Slurm gives it to what srun has started.
SRUN_ADDRESS = "SLURM_LAUNCH_NODE_IPADDR"
# Any port will do: connecting a datagram socket sends nothing, it only chooses a route.
ROUTE_PORT = 9


def held_port(towards: str) -> socket.socket:
    """Return a socket with a port of this host, by the route to an address. Nobody else gets the port until it closes.

    `towards`: empty: to the host on which srun was called.
    """
    other = towards or os.environ.get(SRUN_ADDRESS, LOOPBACK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        route.connect((other, ROUTE_PORT))
        host = route.getsockname()[0]
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.bind((host, 0))
    return held


def address_of(held: socket.socket) -> str:
    """Return host:port."""
    host, port = held.getsockname()
    return f"{host}:{port}"
