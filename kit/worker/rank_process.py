"""The process of a rank above 0: on rank 0's host, or by `srun` on another host of Slurm's allocation.

A rank of another host has no part in a signal to rank 0's process group: it ends when its connection to rank 0 does.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from kit.devices.catalog import DEVICES
from kit.environment import RANKS_TOKEN
from kit.errors import KitError
from kit.profile.reason import Reason, reason
from kit.worker.messages import Prepare

LOOPBACK = "127.0.0.1"
# Of rank 0's host, as Slurm tells it to what `srun` has started.
SRUN_ADDRESS = "SLURM_LAUNCH_NODE_IPADDR"
# What shells and srun add to the number of a signal.
SIGNAL_BASE = 128
# A step beside the job's own script, which rank 0 is part of; a node that has gone is not waited for.
SRUN = ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mpi=none", "--input=none")
SRUN_LIMIT_S = 30


# How a process ended that has not said why; see `how_it_ended`.
PROCESS_ENDED = frozenset({"signal", "rank_exit", "closed_its_pipes"})


def host_of(asked: Prepare, rank: int) -> str:
    """Return the name of a rank's host; empty: there is one host."""
    return asked.hosts[rank * len(asked.hosts) // asked.ranks] if asked.hosts else ""


def start_rank(asked: Prepare, rank: int, port: int, token: str) -> subprocess.Popen[bytes]:
    """Start the process of a rank; it connects to a port of rank 0's host.

    Raises:
        KitError: there is no srun.
    """
    host, environment = host_of(asked, rank), {**os.environ, RANKS_TOKEN: token}
    words = [sys.executable, "-m", "kit.worker", "--rank", f"{rank}/{asked.ranks}", "--lead"]
    if host:
        srun = [*SRUN, f"--immediate={SRUN_LIMIT_S}", "--export=ALL", f"--nodelist={host}"]
        words = [*srun, *words, f":{port}"]
        # Which devices this host's members see: there they have other names.
        for name in DEVICES[asked.programs[0].cell.device].shown_by(ranks_per_host(asked), os.environ):
            environment.pop(name, None)
    else:
        words = [*words, f"{LOOPBACK}:{port}", "--runner", str(os.getpid())]
    try:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, env=environment)
    except OSError as error:
        raise KitError(f"{words[0]} cannot run ({error.strerror}); several hosts need Slurm's commands") from None


def how_it_ended(process: subprocess.Popen[bytes], limit_s: float) -> Reason:
    """Return the signal or exit code of a rank's process, or that it has neither yet."""
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return reason("closed_its_pipes")
    number = -code if code < 0 else code - SIGNAL_BASE
    if number in {*signal.Signals}:
        return reason("signal", signal=signal.Signals(number).name)
    return reason("rank_exit", exit_code=code)


def ranks_per_host(asked: Prepare) -> int:
    """Return how many ranks each host has."""
    return asked.ranks // max(1, len(asked.hosts))


def free_address(host: str) -> str:
    """Return an address of this host as host:port, where nobody listens."""
    with socket.create_server((host, 0)) as server:
        return f"{host}:{server.getsockname()[1]}"
