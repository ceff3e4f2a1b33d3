"""Which nodes Slurm has in a partition, and which of them take no job."""

from __future__ import annotations

import shutil
import subprocess
from typing import NamedTuple

from kit.errors import KitError

# As sinfo calls them. Others are down, drained, failing, reserved for maintenance, or unknown.
USABLE = frozenset({"idle", "mixed", "allocated", "completing", "reserved", "powered_down", "powering_up", "planned"})
# After a state: it powers up, is planned for a job, or does not answer right now; where that lasts, it is down.
SUFFIXES = "~#!%$@^-*"


class FleetNode(NamedTuple):
    """A node, and what Slurm says of it."""

    name: str
    state: str = "idle"
    why: str = ""  # that an administrator gave; empty: none

    @property
    def is_usable(self) -> bool:
        """Whether it takes jobs, now or once its present ones have ended."""
        return self.state.rstrip(SUFFIXES) in USABLE


def slurm_nodes(partition: str | None, wanted: str | None) -> tuple[str, list[FleetNode]]:
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
            raise KitError(f"--nodes: {', '.join(missing)}: not in partition {chosen}; it has {_some(list(nodes))}")
        nodes = {name: nodes[name] for name in names}
    if not nodes:
        raise KitError(f"--partition {chosen} has no nodes; choose another")
    return chosen, list(nodes.values())


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


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
