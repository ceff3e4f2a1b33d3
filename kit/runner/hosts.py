"""The hosts of a Slurm allocation, over which a cell's devices are divided."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from kit.errors import KitError
from kit.profile.cell import Cell, Variant

# Slurm sets these in a job's script and in a step.
NODES, NODE = "SLURM_JOB_NODELIST", "SLURMD_NODENAME"


def allocated_hosts(count: int) -> list[str]:
    """Return so many hosts of the allocation, this one first; none where one host is enough.

    Raises:
        KitError: this is no host of an allocation, or it has fewer.
    """
    if count == 1:
        return []
    nodes, node = os.environ.get(NODES), os.environ.get(NODE)
    if not nodes or not node:
        raise KitError(
            f"--hosts {count}: this is no node of a Slurm allocation; run it in a script for `sbatch --nodes={count}`"
        )
    try:
        done = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise KitError(f"scontrol did not list the allocation's hosts: {error}; check that it is on PATH") from None
    names = done.stdout.split()
    if len(names) < count:
        raise KitError(f"--hosts {count}: the allocation has {len(names)} ({nodes}); give fewer, or allocate more")
    return [node, *(name for name in names if name != node)][:count]


def check_hosts(cells: Sequence[Cell], variants: Sequence[Variant], count: int) -> None:
    """Raise KitError where the devices of a cell cannot be divided over so many hosts, or these are not here."""
    if count > 1 and all(cell.devices == 1 for cell in cells):
        raise KitError(f"--hosts {count}: every cell has one device; give several, as --devices {count}")
    if count > 1 and any(variant.image for variant in variants):
        raise KitError(f"--hosts {count}: an image variant runs on only one host; leave out --hosts or the image")
    for devices in {cell.devices for cell in cells}:
        if devices % min(devices, count):
            raise KitError(f"--devices {devices} cannot be divided over {count} hosts; give a multiple of {count}")
    allocated_hosts(count)
