"""What a fleet is to be measured with: written for ReFrame's process, which reads it in `check` and `site_settings`."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from kit.profile.unfinished import folder_of
from kit.suites.request import RunRequest

# Beside the profiles, hidden: plan, ReFrame's log and report, scripts and output of jobs.
HIDDEN = ".fleet"


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of some nodes."""

    nodes: list[str]
    folder: str  # of the profiles, absolute; every node sees it
    run_in: str  # folder, absolute: names in the request are relative to it
    command: list[str]  # that starts the kit on a node
    request: RunRequest  # what each node is asked for, but for its label and profile
    scheduler: str
    partition: str = ""
    time_limit_s: int | None = None
    job_options: list[str] = []  # handed to the scheduler as they are
    is_again: bool = (
        False  # a second measurement of nodes that have a profile: beside it, under a name that no node has
    )

    @property
    def hidden(self) -> Path:
        """Folder of everything but profiles."""
        return Path(self.folder) / HIDDEN / ("again" if self.is_again else "")

    def profile(self, node: str) -> Path:
        """Return the file that this node alone writes."""
        return Path(self.folder) / f"{node}{'+again' if self.is_again else ''}.json"

    def rounds(self, node: str) -> Path:
        """Return where an unfinished run of it is kept."""
        return folder_of(self.profile(node))

    def script(self, node: str) -> str:
        """Return what a node runs, for a shell: an unfinished run is resumed, a finished one is left as it is."""
        profile, rounds = self.profile(node), self.rounds(node)
        request = msgspec.structs.replace(self.request, label=node, out=str(profile))
        run = shlex.join([*self.command, "run", *request.to_argv()])
        return (
            f"cd {shlex.quote(self.run_in)} || exit; if [ -d {shlex.quote(str(rounds))} ]; then exec {run} --resume; "
            f"elif [ -e {shlex.quote(str(profile))} ]; then exit 0; fi; exec {run}"
        )


def read_plan(path: str) -> FleetPlan:
    """Return the plan of a file."""
    return msgspec.json.decode(Path(path).read_bytes(), type=FleetPlan)
