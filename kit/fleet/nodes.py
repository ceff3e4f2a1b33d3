"""Which nodes are measured: those of a partition of Slurm, with those that take no job, or hosts by their names."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from typing import NamedTuple

from kit.errors import KitError
from kit.fleet.reframe_run import SLURM
from kit.report.values_in_words import several

# As sinfo calls them. Others are down, drained, failing, reserved for maintenance, or unknown.
USABLE = frozenset({"idle", "mixed", "allocated", "completing", "reserved", "powered_down", "powering_up", "planned"})
# After a state: it powers up, is planned for a job, or does not answer right now; where that lasts, it is down.
SUFFIXES = "~#!%$@^-*"
# A node names a file.
NODE_NAME = re.compile(r"\w[\w.@-]*", re.ASCII)


class FleetNode(NamedTuple):
    """A node, and what Slurm says of it."""

    name: str
    state: str = "idle"
    why: str = ""  # that an administrator gave; empty: none

    @property
    def is_usable(self) -> bool:
        """Whether it takes jobs, now or once its present ones have ended."""
        return self.state.rstrip(SUFFIXES) in USABLE


def nodes_of(scheduler: str, partition: str | None, wanted: str | None) -> tuple[str, list[FleetNode]]:
    """Return the partition, empty where there is none, and its nodes, or those of them that are wanted.

    Raises:
        KitError: there are none, or `_slurm_nodes` refuses.
    """
    if scheduler in SLURM:
        return _slurm_nodes(partition, wanted)
    if partition is not None:
        raise KitError(f"--partition is an option for Slurm; leave it out with --scheduler {scheduler}")
    if scheduler == "local" and wanted is None:
        wanted = socket.gethostname().partition(".")[0]
    if not wanted:
        raise KitError("--scheduler ssh needs --nodes: the hosts, such as node1,node2")
    names = [name for name in wanted.split(",") if name]
    unfit = [name for name in names if not NODE_NAME.fullmatch(name) or names.count(name) > 1]
    if unfit:
        raise KitError(f"--nodes: {unfit[0]!r}: give each host once, by a name that can be a file name")
    return "", [FleetNode(name) for name in names]


def _slurm_nodes(partition: str | None, wanted: str | None) -> tuple[str, list[FleetNode]]:
    """Return the partition and its nodes, or those of them that are wanted; Slurm's notation may name these.

    Raises:
        KitError: there is no Slurm, no such partition, or no such node in it.
    """
    lines = _command("sinfo", "-h", "-o", "%R|%P")
    partitions = dict.fromkeys(line.partition("|")[0] for line in lines)
    default = next((line.partition("|")[0] for line in lines if line.endswith("*")), None)
    chosen = partition or default or next(iter(partitions), "")
    if chosen not in partitions:
        raise KitError(f"--partition {chosen!r}: Slurm has no such partition; choose from {', '.join(partitions)}")
    rows = [line.split("|", 2) for line in _command("sinfo", "-h", "-N", "-p", chosen, "-o", "%N|%T|%E")]
    nodes = {name: FleetNode(name, state, "" if why == "none" else why) for name, state, why in rows}
    if wanted is not None:
        names = _command("scontrol", "show", "hostnames", wanted)
        missing = [name for name in names if name not in nodes]
        if missing:
            raise KitError(f"--nodes: {', '.join(missing)}: not in partition {chosen}; it has {several(list(nodes))}")
        nodes = {name: nodes[name] for name in names}
    if not nodes:
        raise KitError(f"--partition {chosen} has no nodes; choose another")
    return chosen, list(nodes.values())


def _command(name: str, *words: str) -> list[str]:
    if shutil.which(name) is None:
        raise KitError(
            f"{name} was not found: this machine has no Slurm; run on one that has, or give --scheduler ssh or local"
        )
    done = subprocess.run([name, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        errors = done.stderr.strip().splitlines()
        raise KitError(f"{name}: {errors[-1] if errors else f'ended with {done.returncode}'}; is slurmctld running?")
    return done.stdout.splitlines()
