"""A plan handed to ReFrame, and what came of each node's job."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from kit.environment import FLEET_PLAN
from kit.errors import KitError
from kit.fleet.plan import FleetPlan, read_plan
from kit.fleet.site import SYSTEM, site_settings
from kit.profile.reason import Reason, reason
from kit.profile.store import write_atomically

CHECK = Path(__file__).with_name("check.py")
START = "import sys; from reframe.frontend.cli import main; sys.exit(main())"
OUR_LINE = re.compile(r"^kit: (?!skipped|this run does not use)(.+)", re.MULTILINE)
# What `kit run` advises would go on here, on another machine.
RESUMED_ALONE = re.compile(r"[;,.]?[^;,.]*`[^`]* --resume [^`]*`.*$")
# Of Slurm's step daemon in the job's standard error; of ReFrame.
OVER_TIME = re.compile(r"slurmstepd.* DUE TO TIME LIMIT"), re.compile(r"job timed out|TIMEOUT")


# More than ReFrame's report takes.
REPORT_B = 1 << 20
LOOK_EVERY_S = 10.0


class InterruptedFleetError(KitError):
    """Ctrl-C; ReFrame has taken its jobs back."""

    exit_code = 130


def check_reframe() -> None:
    """Raise a KitError where ReFrame is not installed."""
    if find_spec("reframe") is None:
        remedy = "pip install 'steadykit[fleet]', or in a checkout pip install '.[fleet]'"
        raise KitError(f"ReFrame, which starts the jobs, is not installed; {remedy}")


def nodes_left(plan: FleetPlan, *, resume: bool) -> list[str]:
    """Return the nodes that are left to measure; a KitError where there are profiles and none are to be resumed."""
    begun = [node for node in plan.nodes if plan.profile(node).exists() or plan.rounds(node).exists()]
    if begun and not resume:
        there = plan.profile(begun[0])
        raise KitError(
            f"{there}: this profile exists; add --resume to measure what is missing, or choose another --out"
        )
    before = plan.hidden / "plan.json"
    if begun and before.is_file() and (request := read_plan(str(before)).request) != plan.request:
        words = shlex.join(request.to_argv())
        raise KitError(f"{plan.folder}: this fleet began with `{words}`; resume with that, or choose another --out")
    return [node for node in plan.nodes if not is_whole(plan, node)]


def is_whole(plan: FleetPlan, node: str) -> bool:
    """Whether the node's profile is there and nothing of it is left to measure."""
    return plan.profile(node).is_file() and not plan.rounds(node).exists()


def measure(plan: FleetPlan, retries: int, on_progress: Callable[[int], None]) -> dict[str, Reason]:
    """Let ReFrame run the plan's jobs until all have ended, and return why nodes have no whole profile.

    Args:
        plan: of the nodes that are left.
        retries: how often a job that failed is begun again.
        on_progress: gets the number of nodes that are measured, each time that it has grown.

    Raises:
        KitError: the folder cannot be written, or ReFrame could not begin.
    """
    report, log = plan.hidden / "report.json", plan.hidden / "reframe.out"
    try:
        plan.hidden.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        write_atomically(plan.hidden / "plan.json", msgspec.json.encode(plan))
        write_atomically(plan.hidden / "site.py", f"site_configuration = {site_settings(plan)!r}\n".encode())
        output = log.open("w")
    except OSError as error:
        raise KitError(f"{plan.folder} cannot be written: {error.strerror}; choose another --out") from None
    words = ["-C", str(plan.hidden / "site.py"), "-c", str(CHECK), "--system", SYSTEM, "--prefix", str(plan.hidden)]
    words += ["--nocolor", "--keep-stage-files", "--report-file", str(report), "--max-retries", str(retries), "--run"]
    environment = {**os.environ, FLEET_PLAN: str(plan.hidden / "plan.json")}
    with output:
        process = subprocess.Popen(
            [sys.executable, "-c", START, *words], env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _wait(process, plan, on_progress)
    cases = _cases(report)
    if not cases and shutil.disk_usage(plan.folder).free < REPORT_B:
        raise KitError(f"{plan.folder}: the disk is full; make room, then give --resume")
    if not cases:
        errors = [line for line in log.read_text(errors="replace").splitlines() if "ERROR" in line.upper()]
        raise KitError(f"ReFrame started no job: {errors[0] if errors else 'no reason given'} ({log})")
    return {node: _why(cases.get(node, {})) for node in plan.nodes if not is_whole(plan, node)}


def _wait(process: subprocess.Popen[bytes], plan: FleetPlan, on_progress: Callable[[int], None]) -> None:
    """Wait until ReFrame ends; at Ctrl-C it has been told, too, and takes its jobs back first."""
    measured = 0
    try:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY_S)
            now = sum(is_whole(plan, node) for node in plan.nodes)
            if now > measured:
                on_progress(measured := now)
    except KeyboardInterrupt:
        process.wait()
        raise InterruptedFleetError("interrupted; finished profiles are saved, and --resume continues") from None


def _cases(report: Path) -> dict[str, dict[str, Any]]:
    """Return what ReFrame says of each node's last try."""
    try:
        runs = msgspec.json.decode(report.read_bytes())["runs"]
    except (OSError, msgspec.DecodeError, KeyError):
        return {}
    return {case["node"]: case for run in runs for case in run["testcases"]}


def _why(case: dict[str, Any]) -> Reason:
    """Return why a job gave no whole profile, as the kit or what starts it said there, else as ReFrame does."""
    output = _output(case)
    first, *more = [
        line
        for line in str(case.get("fail_reason") or "no job of it has run").splitlines()
        if line.strip() and not line.startswith("---")  # ReFrame's own lines between what a command wrote
    ]
    failed = f"{first} {more[0]}" if first.endswith(":") and more else first
    if OVER_TIME[0].search(output) or OVER_TIME[1].search(failed):
        return reason("node_time_limit")
    lines = OUR_LINE.findall(output) or [line for line in output.splitlines() if line.strip()]
    line = lines[-1] if lines else failed
    return reason("node_failed", line=RESUMED_ALONE.sub("; --resume continues", line))


def _output(case: dict[str, Any]) -> str:
    """Return the standard error of a job."""
    folder = Path(case.get("stagedir") or os.devnull)
    return "".join(path.read_text(errors="replace") for path in folder.glob("rfm_job.err"))
