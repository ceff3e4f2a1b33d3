"""A fleet's measurement through ReFrame: what is to be measured, and what came of each node's job.

FleetPlan ─► plan.json, site.py ─► ReFrame, which reads the plan in `reframe_check` ─► a job, a profile a node
                                   └► report.json ─► why a node has no whole profile
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil

from kit.environment import FLEET_PLAN
from kit.errors import EXIT_INTERRUPTED, KitError
from kit.files import write_atomically
from kit.profile.fields import Reason, reason
from kit.profile.unfinished import folder_of

# Beside the profiles, hidden: plan, ReFrame's log and report, scripts and output of jobs.
HIDDEN = ".fleet"
SLURM = ("squeue", "slurm")
SYSTEM = "kit"
STDOUT = {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}
CHECK = Path(__file__).with_name("reframe_check.py")
START = "import sys; from reframe.frontend.cli import main; sys.exit(main())"
OUR_LINE = re.compile(r"^kit: (?!skipped|this run does not use)(.+)", re.MULTILINE)
# What `kit run` advises would go on here, on another machine.
RESUMED_ALONE = re.compile(r"[;,.]?[^;,.]*`[^`]* --resume [^`]*`.*$")
# What Slurm's step daemon writes to the job's standard error, and what ReFrame says.
OVER_TIME = re.compile(r"slurmstepd.* DUE TO TIME LIMIT"), re.compile(r"job timed out|TIMEOUT")
# More than ReFrame's report takes.
REPORT_B = 1 << 20
LOOK_EVERY_S = 10.0
# ReFrame 4 expands variables and commands that stand in its folders' names, and splits a local job's path at blanks.
REWRITTEN = re.compile(r"""[\s"'$`\\]""")


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


class InterruptedFleetError(KitError):
    """Ctrl-C; ReFrame has taken its jobs back."""

    exit_code = EXIT_INTERRUPTED


def nodes_left(plan: FleetPlan, *, resume: bool) -> list[str]:
    """Return the nodes that are left to measure.

    Raises:
        KitError: there are profiles and none are to be resumed, or ReFrame would take a folder's name for another.
    """
    for path, remedy in ((plan.folder, "choose another --out"), (str(CHECK), "install Steadykit elsewhere")):
        if (odd := REWRITTEN.search(path)) is not None:
            raise KitError(f"{path}: ReFrame reads {odd[0]!r} in a folder's name as something else; {remedy}")
    begun = [node for node in plan.nodes if plan.is_begun(node)]
    if begun and not resume:
        remedy = "add --resume to measure what is missing, or choose another --out"
        raise KitError(f"{plan.profile(begun[0])}: this profile exists; {remedy}")
    before = plan.hidden / "plan.json"
    if begun and before.is_file() and (words := read_plan(str(before)).words) != plan.words:
        began = shlex.join(words)
        raise KitError(f"{plan.folder}: this fleet began with `{began}`; resume with that, or choose another --out")
    return [node for node in plan.nodes if not plan.is_whole(node)]


def measure(plan: FleetPlan, retries: int, say: Callable[[str], None]) -> dict[str, Reason]:
    """Let ReFrame run the plan's jobs until all have ended, and return why nodes have no whole profile.

    Args:
        plan: of the nodes that are left.
        retries: how often a job that failed is begun again.
        say: gets a line with the number of nodes that are measured, each time that it has grown.

    Raises:
        KitError: the folder cannot be written, ReFrame could not begin, or an interrupt has ended it.
    """
    report, log = plan.hidden / "report.json", plan.hidden / "reframe.out"
    try:
        plan.hidden.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        write_atomically(plan.hidden / "plan.json", msgspec.json.encode(plan))
        write_atomically(plan.hidden / "site.py", f"site_configuration = {plan.settings()!r}\n".encode())
        output = log.open("w")
    except OSError as error:
        raise KitError(f"{plan.folder} cannot be written: {error.strerror}; choose another --out") from None
    words = ["-C", str(plan.hidden / "site.py"), "-c", str(CHECK), "--system", SYSTEM, "--prefix", str(plan.hidden)]
    words += ["--nocolor", "--keep-stage-files", "--report-file", str(report), "--max-retries", str(retries), "--run"]
    with output:
        _run_reframe(plan, words, output.fileno(), say)
    try:
        runs = msgspec.json.decode(report.read_bytes())["runs"]
    except (OSError, msgspec.DecodeError, KeyError):
        runs = []
    # The last try of each node counts.
    cases = {case["node"]: case for run in runs for case in run["testcases"]}
    if not cases and psutil.disk_usage(str(plan.folder)).free < REPORT_B:
        raise KitError(f"{plan.folder}: the disk is full; make room, then give --resume")
    if not cases and not any(map(plan.is_begun, plan.nodes)):
        errors = [line for line in log.read_text(errors="replace").splitlines() if "ERROR" in line.upper()]
        raise KitError(f"ReFrame started no job: {errors[0] if errors else 'no reason given'} ({log})")
    return {node: _why(cases.get(node, {})) for node in plan.nodes if not plan.is_whole(node)}


def _run_reframe(plan: FleetPlan, words: list[str], output: int, say: Callable[[str], None]) -> None:
    """Run ReFrame to its end. An interrupt of this process alone is passed on, so that ReFrame takes its jobs back."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", START, *words],
        env={**os.environ, FLEET_PLAN: str(plan.hidden / "plan.json")},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        # Ctrl-C reaches this process alone: a second one would end ReFrame before it has taken its jobs back.
        process_group=0,
    )
    measured = 0
    try:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY_S)
            now = sum(map(plan.is_whole, plan.nodes))
            if now > measured:
                measured = now
                say(f"{measured} of {len(plan.nodes)} nodes measured")
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise InterruptedFleetError("interrupted; finished profiles are saved, and --resume continues") from None


def _why(case: dict[str, Any]) -> Reason:
    """Return why a job gave no whole profile, as the kit or what starts it said there, else as ReFrame does."""
    folder = Path(case.get("stagedir") or os.devnull)
    output = "".join(path.read_text(errors="replace") for path in folder.glob("rfm_job.err"))
    first, *more = [
        line
        for line in str(case.get("fail_reason") or "no job of it has run").splitlines()
        if line.strip() and not line.startswith("---")  # ReFrame's own lines between what a command wrote
    ]
    failed = f"{first} {more[0]}" if first.endswith(":") and more else first
    if OVER_TIME[0].search(output) or OVER_TIME[1].search(failed):
        return reason("node_time_limit")
    lines = OUR_LINE.findall(output) or [line for line in output.splitlines() if line.strip()]
    return reason("node_failed", line=RESUMED_ALONE.sub("; --resume continues", lines[-1] if lines else failed))
