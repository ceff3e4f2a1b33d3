"""Who reaches the sockets of a worker's ranks, and the network that keeps others out.

one host       a network namespace of the worker's own: nobody else
               no namespace to be had: loopback, as far as the framework can be kept to it
several hosts  the network that joins them
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from functools import cache

import psutil

from kit.backends.backend_catalog import CATALOG
from kit.errors import KitError
from kit.profile.cell import Cell, Variant
from kit.profile.fields import Reason, reason
from kit.profile.unfinished import RunPlan
from kit.report.sentences import sentence
from kit.worker import private_network
from kit.worker.private_network import LOOPBACK_NAME, Refused

# Of the reasons that `who_reaches` returns, those in which no other program is a danger to what the ranks are sent.
PRIVATE, WITHOUT_NETWORK = "ranks_private", "ranks_without_network"


def who_reaches(backend: str, hosts: int) -> Reason:
    """Return who reaches the ranks of a worker.

    Args:
        backend: of the worker.
        hosts: over which its ranks are divided.
    """
    is_kept = CATALOG[backend].keeps_to_interface
    if hosts > 1:
        return reason("ranks_on_hosts_network" if is_kept else "ranks_exposed_on_hosts")
    refused = _refused()
    if refused is None:
        return reason(PRIVATE)
    if _has_only_loopback():
        return reason(WITHOUT_NETWORK)
    return reason("ranks_on_loopback" if is_kept else "ranks_exposed", call=refused.call, error=refused.error)


def has_ranks(cell: Cell, variant: Variant, hosts: int) -> bool:
    """Return whether several processes measure a cell, if it may use so many hosts."""
    return CATALOG[cell.backend].ranks(cell, {**os.environ, **variant.env}, min(cell.devices, hosts)) > 1


def lines_before(plan: RunPlan) -> list[str]:
    """Return a line for each way in which others reach the ranks of a run, to be read before they start."""
    variants, hosts = {variant.name: variant for variant in plan.suite.variants}, plan.suite.hosts
    titles: dict[str, dict[str, None]] = {}
    for cell in plan.cells:
        if has_ranks(cell, variants.get(cell.variant, Variant(name=cell.variant)), hosts):
            why = who_reaches(cell.backend, min(cell.devices, hosts))
            if why.code not in (PRIVATE, WITHOUT_NETWORK):
                titles.setdefault(sentence(why), {})[CATALOG[cell.backend].title] = None
    return [f"{', '.join(named)} on several devices: {words}" for words, named in titles.items()]


def network_of_ranks() -> list[int]:
    """Return the descriptors of a new network that only who has them enters.

    Raises:
        KitError: the kernel gives none any more. Ranks do not start then where the user was told that nobody reaches
            them.
    """
    try:
        return _made()
    except Refused as refused:
        raise KitError(
            f"the kernel gives ranks no network of their own any more ({refused.call}: {refused.error}); "
            "raise user.max_net_namespaces, or wait until other programs have ended"
        ) from None


def _made() -> list[int]:
    """Start what makes a namespace: this process has threads, and stays where it is."""
    try:
        here, there = socket.socketpair()
        with here, there:
            command = [sys.executable, "-I", "-S", private_network.__file__, str(there.fileno())]
            started = subprocess.Popen(
                command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            there.close()
            try:
                return private_network.receive(here)
            finally:
                started.wait()
    except OSError as error:  # of this process, such as too many open files
        raise Refused("exec", error) from None


@cache
def _refused() -> Refused | None:
    """Return why ranks get no network of their own here; None where they do. Tried once in a process."""
    try:
        descriptors = _made()
    except Refused as refused:
        return refused
    for descriptor in descriptors:
        os.close(descriptor)
    return None


def _has_only_loopback() -> bool:
    """Whether no other interface is up, as in a container without a network."""
    return all(name == LOOPBACK_NAME.decode() or not stats.isup for name, stats in psutil.net_if_stats().items())
