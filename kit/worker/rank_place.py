"""The place of a rank on its host: the CPUs that it takes, and the port at which the other ranks reach it.

CPUs are whole cores of one node of memory, next to the rank's board, as far as they divide so. The port is held until
a framework binds it.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from kit.devices import DEVICES
from kit.errors import KitError
from kit.fingerprint.this_machine import cpu_lists
from kit.profile.facts import cpus_listed
from kit.sensors.linux import CPU_ROOT
from kit.worker.messages import Prepare
from kit.worker.private_network import LOOPBACK

# The address of the host on which srun was called, as Slurm gives it to what srun has started.
SRUN_ADDRESS = "SLURM_LAUNCH_NODE_IPADDR"
# Any port will do: connecting a datagram socket sends nothing, it only chooses a route.
ROUTE_PORT = 9


def cpus_of_rank(request: Prepare, cpu_root: Path = CPU_ROOT) -> Sequence[int]:
    """Return the CPUs of a rank, its part of its host's; all of them where an accelerator's ranks are more.

    Args:
        request: which part the rank takes.
        cpu_root: where the kernel tells cores and nodes.

    Raises:
        KitError: ranks that compute on CPUs are more than there are.
    """
    parts, cpus = request.parts, request.cpus or sorted(os.sched_getaffinity(0))
    if parts == 1:
        return cpus
    if len(cpus) < parts:
        if request.device == "cpu":
            raise KitError(f"{parts} ranks need a CPU each, and {len(cpus)} are usable; give fewer --devices")
        return cpus
    near = DEVICES[request.device].cpus_near(parts, os.environ) if parts == request.devices else []
    return divided(_by_core(cpus, cpu_root), request.part, parts, near)


def divided(cpus: Sequence[int], part: int, parts: int, near: Sequence[Collection[int]]) -> list[int]:
    """Return one of so many parts of a host's CPUs.

    Args:
        cpus: the host's, those of a core next to each other, and cores of a node.
        part: which one.
        parts: that there are.
        near: of each part the CPUs next to its board, which boards of one node share; none: they are not known.
    """
    shares = [tuple(cpu for cpu in cpus if cpu in board_cpus) for board_cpus in near]
    sharers = Counter(shares)
    # CPUs of two boards that are neither the same nor apart, or fewer than their ranks, cannot be divided so.
    are_apart = sum(map(len, sharers)) == len({cpu for share in sharers for cpu in share})
    if len(shares) != parts or not are_apart or any(len(share) < count for share, count in sharers.items()):
        shares = [tuple(cpus)] * parts
    share_of_rank = shares[part]
    index, count = shares[:part].count(share_of_rank), shares.count(share_of_rank)
    return sorted(share_of_rank[index * len(share_of_rank) // count : (index + 1) * len(share_of_rank) // count])


def _by_core(cpus: Sequence[int], cpu_root: Path) -> list[int]:
    """Return the CPUs, those of a core next to each other and cores of a node, too, as far as the kernel tells them."""
    cores = cpu_lists(cpu_root / f"cpu{cpu}/topology/thread_siblings_list" for cpu in cpus)
    nodes = cpu_lists((cpu_root.parent / "node").glob("node[0-9]*/cpulist"))
    core_of = {cpu: core[0] for core in map(cpus_listed, cores) for cpu in core}
    node_of = {cpu: node[0] for node in map(cpus_listed, nodes) for cpu in node}
    return sorted(cpus, key=lambda cpu: (node_of.get(cpu, 0), core_of.get(cpu, cpu), cpu))


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
