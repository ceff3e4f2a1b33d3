"""What a fleet is to be measured with: written for ReFrame's process, which reads it in `check`, and its settings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec

from kit.errors import KitError
from kit.profile.unfinished import folder_of

# Beside the profiles, hidden: plan, ReFrame's log and report, scripts and output of jobs.
HIDDEN = ".fleet"
SLURM = ("squeue", "slurm")
SYSTEM = "kit"
STDOUT = {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of some nodes."""

    nodes: list[str]
    folder: str  # of the profiles, absolute; every node sees it
    run_in: str  # folder, absolute: names among the words are relative to it
    command: list[str]  # that starts the kit on a node
    words: list[str]  # after `kit run`: what each node is asked for, but for its label and profile
    scheduler: str
    partition: str = ""
    time_limit_s: int | None = None
    job_options: list[str] = []  # handed to the scheduler as they are
    # A second measurement of nodes that have a profile lies beside the first, under a name that no node has.
    is_again: bool = False

    @property
    def hidden(self) -> Path:
        """Folder of everything but profiles."""
        return Path(self.folder) / HIDDEN / ("again" if self.is_again else "")

    def profile(self, node: str) -> Path:
        """Return the file that this node alone writes."""
        return Path(self.folder) / f"{node}{'+again' if self.is_again else ''}.json"

    def is_begun(self, node: str) -> bool:
        """Whether there is a profile of the node, or an unfinished run."""
        return self.profile(node).exists() or folder_of(self.profile(node)).exists()

    def is_whole(self, node: str) -> bool:
        """Whether the node's profile is there and nothing of it is left to measure."""
        return self.profile(node).is_file() and not folder_of(self.profile(node)).exists()

    def script(self, node: str) -> str:
        """Return what a node runs, for a shell: an unfinished run is resumed, a finished one is left as it is."""
        profile = str(self.profile(node))
        run = shlex.join([*self.command, "run", *self.words, "--label", node, "--out", profile])
        return (
            f"cd {shlex.quote(self.run_in)} || exit; "
            f"if [ -d {shlex.quote(str(folder_of(Path(profile))))} ]; then exec {run} --resume; "
            f"elif [ -e {shlex.quote(profile)} ]; then exit 0; fi; exec {run}"
        )

    def settings(self) -> dict[str, Any]:
        """Return ReFrame's settings: one system, whose partition has the requested scheduler."""
        # Begun again by Slurm, a job would wait for its own node for as long as that is down.
        access = ["--no-requeue", f"--partition={self.partition}"] if self.scheduler in SLURM else []
        partition: dict[str, Any] = {
            "name": "nodes",
            "scheduler": self.scheduler,
            # The job's own script starts the kit: Slurm would pin the CPUs of a step of `srun`.
            "launcher": "local",
            "environs": ["builtin"],
            "access": [*access, *self.job_options],
            "max_jobs": len(self.nodes),
        }
        if self.scheduler == "ssh":
            partition["sched_options"] = {"ssh_hosts": self.nodes}
        return {
            "systems": [{"name": SYSTEM, "hostnames": [".*"], "partitions": [partition]}],
            # ReFrame's own handlers are a file in /tmp, and figures that nobody asked for.
            "logging": [{"handlers": [STDOUT], "handlers_perflog": []}],
            "general": [{"check_search_recursive": False, "remote_detect": False}],
        }


def read_plan(path: str) -> FleetPlan:
    """Return the plan of a file; a KitError where another version of the kit wrote it."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=FleetPlan)
    except msgspec.DecodeError:
        raise KitError(f"{path} is from another version of the kit; choose another --out") from None
