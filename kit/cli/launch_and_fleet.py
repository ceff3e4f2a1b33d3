"""Verbs that measure elsewhere: `launch` in a container of this machine, `fleet` on each node of a cluster."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kit.cli.options import (
    PROFILES,
    LateChoice,
    format_options,
    in_processes,
    labels_of,
    print_report,
    profile_files,
    say,
    without_collector,
)
from kit.distribution import need
from kit.errors import KitError
from kit.import_order import module_command

if TYPE_CHECKING:
    from kit.compare.fleet_nodes import Absent, Fleet, NodeRun
    from kit.engine.container_run import ContainerRun
    from kit.fleet.nodes import FleetNode

# This word in place of a suite checks the target's devices.
SELFTEST = "selftest"
# What options of text may be, and what is right: the engine's own words for what is wrong with them name no option.
LAUNCH_FORMS = {
    "cpus": (r"[1-9]\d*", "a number, such as 4; --cpuset chooses which, such as 0,1"),
    "cpuset": (r"\d+(-\d+)?(,\d+(-\d+)?)*", "CPUs, such as 0,1 or 0-3"),
    "memory": (r"\d+[bkmgBKMG]?", "a size, such as 8g"),
    "gpus": (r"\d+(,\d+)*", "indices, such as 0,1"),
    # Without a dash in front, which the printed line would take for an option.
    "image": (r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*", "an image's name or digest, such as steadykit:cpu"),
}
CPUS_HELP = "Pin to N whole CPUs, without a quota, which would throttle. Default: all that this process may use."
EXIT_SLOW, EXIT_ABSENT, EXIT_NOTHING_COMPARED, EXIT_SUSPECT = 1, 3, 4, 5
SCHEDULERS = ("squeue", "slurm", "ssh", "local")
# No job takes a year, and one that failed so often fails again.
JOB_MAX_S, RETRIES_MAX = 366 * 86_400, 100
# Suites name folders.
UNFIT = re.compile(r"[^\w.-]+", re.ASCII)
# `kit fleet` decides these options of `kit run` for every node.
DECIDED = ("out", "resume", "force", "label", "dry_run", "as_json")


def _formed(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    form, right = LAUNCH_FORMS[option.name or ""]
    if value is not None and not re.fullmatch(form, value):
        raise click.BadParameter(f"{value!r}; give {right}")
    return value


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("target", type=LateChoice("kit.devices", "DEVICES"))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SUITE] [OPTIONS OF kit run]")
@click.option(
    "--engine",
    type=click.Choice(["docker", "podman"]),
    help="Use this engine. Default: KIT_ENGINE, else Docker, else Podman.",
)
@click.option(
    "--image",
    callback=_formed,
    metavar="NAME",
    help="Use this image. Default: steadykit:TARGET, built if it is missing.",
)
@click.option("--cpus", callback=_formed, metavar="N", help=CPUS_HELP)
@click.option("--cpuset", callback=_formed, metavar="0,1", help="Pin to these CPUs.")
@click.option("--memory", callback=_formed, metavar="8g", help="Limit memory.")
@click.option("--gpus", callback=_formed, metavar="0,1", help="Use these GPUs (default: all).")
@click.option("--rapl", is_flag=True, help="Mount the host's energy counters.")
@click.option("--print", "as_line", is_flag=True, help="Print the docker or podman command; run nothing.")
def launch(*, target: str, arguments: tuple[str, ...], as_line: bool, **options: Any) -> int:  # noqa: ANN401 - click's
    """Run `kit run` in a hardened container of the image for TARGET, and write the profile here, owned by you.

    All options of `kit run` may follow, also --out and --resume. For other machines see
    https://github.com/steadykit/steadykit/blob/main/docs/how-to/cluster.md

    `kit launch gpu selftest` runs `kit selftest --device gpu` in the container.
    """
    need("docker", "containers")
    from kit.devices import DEVICES
    from kit.engine.connection import EngineError
    from kit.engine.container_run import as_line as line_of
    from kit.engine.container_run import run_here
    from kit.profile.unfinished import resume_command
    from kit.runner.interrupt import StopFlag

    if options["cpus"] and options["cpuset"]:
        raise click.UsageError("--cpus and --cpuset exclude each other; give one")
    options["cpus"] = options["cpus"] and int(options["cpus"])
    container = _container_run(target, arguments)._replace(**options)
    with_gpus = [kind for kind, device in DEVICES.items() if device.in_container.gpus]
    if container.gpus and target not in with_gpus:
        raise click.UsageError(f"--gpus does not fit the target {target}; use the target {' or '.join(with_gpus)}")
    if as_line:
        click.echo(line_of(container))
        return 0
    before, stop = _unfinished(container.out), StopFlag()
    try:
        with stop.deferring_interrupts():
            ended = run_here(container, lambda: stop.requested)
    except EngineError as error:
        begun = [folder.with_suffix("") for folder, _ in _unfinished(container.out).items() - before.items()]
        again = [f"resume with `{resume_command(path, container.command())}`" for path in begun]
        raise EngineError("; ".join([str(error), *again])) from None
    if ended.out_of_memory and ended.status:
        say("the container ran out of memory, and the kernel killed a process; give more with --memory")
    return ended.status


def _container_run(target: str, words: tuple[str, ...]) -> ContainerRun:
    """Check the words as `kit run` does, or `kit selftest` of the target's devices, and find the files among them."""
    from kit.cli.run_and_selftest import parse_request, selftest
    from kit.engine.container_run import ContainerRun
    from kit.suites.run_request import RunRequest
    from kit.suites.suite import load_suite
    from kit.workloads.datasets import data_folder

    if words[:1] == (SELFTEST,) and target != "cpu":
        given = selftest.make_context("kit launch", list(words[1:])).params
        if given["path"] is not None:
            raise click.UsageError("--from needs no container; run `kit selftest --from` here")
        if given["device"] not in (None, target):
            raise click.UsageError(f"--device {given['device']} does not fit the target {target}; leave it out")
        return ContainerRun(target, words if given["device"] else (*words, "--device", target), given["out"])
    request = parse_request(words, "kit launch")
    if any(variant.image for variant in request.variants.values()):
        raise click.UsageError("a container cannot start other images: give image variants to `kit run`")
    if not request.resume:
        load_suite(request.suite_name)  # before an image is built for it
    folder = data_folder()
    if request.data == "auto" and not (request.resume or request.programs or folder.is_dir()):
        say(f"{folder} has no data sets, and the container has no network; run `kit data fetch` here")
    if not request.devices and not request.resume and target != "cpu":
        request = RunRequest(**vars(request) | {"devices": (target,)})
    return ContainerRun(target, ("run", *request.to_argv()), request.out, tuple(request.files))


def _unfinished(out: str) -> dict[Path, int]:
    """Return the folders of unfinished runs at `out`, each with when it was last written."""
    from kit.profile.unfinished import SUFFIX, folder_of

    path = Path(out or ".")
    folders = path.glob(f"*.json{SUFFIX}") if path.is_dir() else [folder_of(path)]
    return {folder: folder.stat().st_mtime_ns for folder in folders if folder.exists()}


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SUITE] [OPTIONS OF kit run]")
@click.option(
    "--from", "given", multiple=True, type=PROFILES, metavar="PATH", help="Judge these profiles; measure nothing."
)
@click.option("--partition", metavar="NAME", help="Use this Slurm partition. Default: Slurm's default.")
@click.option("--nodes", metavar="A,B", help="Measure only these nodes, in Slurm's notation; with ssh, these hosts.")
@click.option(
    "--scheduler",
    type=click.Choice(SCHEDULERS),
    default="squeue",
    show_default=True,
    help="squeue: Slurm, polled with squeue; slurm: polled with sacct; ssh: the hosts of --nodes; local: this machine.",
)
@click.option(
    "--time-limit", type=click.IntRange(1, JOB_MAX_S), metavar="S", help="Limit each node's job to S seconds."
)
@click.option(
    "--retries", type=click.IntRange(0, RETRIES_MAX), default=0, help="Retry a failed job up to N times.", metavar="N"
)
@click.option("--job-option", "job_options", multiple=True, metavar="TEXT", help="Scheduler option (repeatable).")
@click.option("--command", metavar="TEXT", help="Start kit on a node with this command. Default: the one in use here.")
@click.option("--out", "out", metavar="FOLDER", help="Write the profiles here, on a disk that all nodes share.")
@click.option("--resume", is_flag=True, help="Measure only the nodes without a complete profile in --out.")
@format_options
@without_collector
def fleet(*, arguments: tuple[str, ...], given: tuple[Path, ...], format_name: str, **options: object) -> int:
    """Measure SUITE on every node of a partition, one profile each, and compare each node with the others.

    A node that is slower in one profile is a suspect. Steadykit measures it again; it is slow if both profiles agree.

    Exit codes: 0: no node is slow; 1: a node is slow; 5: a suspect has no second profile; 3: a node has no complete
    profile; 4 (with --from): no two nodes can be compared. See
    https://github.com/steadykit/steadykit/blob/main/docs/how-to/cluster.md
    """
    need("scipy", "fleet")
    from kit.report.fleet_report import fleet_report

    if given:
        if arguments or any(options[name] for name in ("partition", "nodes", "out", "resume")):
            raise click.UsageError("--from only judges profiles; leave out the suite and the options that measure")
        judged = _judged(list(profile_files(given)), [])
    else:
        judged = _measured(arguments, **options)  # type: ignore[arg-type]
    print_report(fleet_report(judged), format_name)
    if any(node.is_slow for node in judged.nodes):
        return EXIT_SLOW
    if any(node.is_suspect for node in judged.nodes):
        return EXIT_SUSPECT
    if judged.absent or any(node.failed or node.interrupted for node in judged.nodes):
        return EXIT_ABSENT
    return 0 if judged.is_compared or not given else EXIT_NOTHING_COMPARED


def _measured(
    arguments: tuple[str, ...],
    *,
    partition: str | None,
    nodes: str | None,
    scheduler: str,
    time_limit: int | None,
    retries: int,
    job_options: tuple[str, ...],
    command: str | None,
    out: str | None,
    resume: bool,
) -> Fleet:
    """Measure what is missing, and a slower node once more, and judge all profiles of the folder."""
    from msgspec.structs import replace

    from kit.cli.run_and_selftest import parse_request
    from kit.compare.fleet_nodes import Absent
    from kit.fleet.nodes import nodes_of
    from kit.fleet.reframe_run import FleetPlan, measure, nodes_left
    from kit.suites.run_request import OPTIONS
    from kit.suites.suite import load_suite

    # What a thousand nodes would refuse is refused here.
    request = parse_request(arguments, "kit fleet")
    decided = [name for name in DECIDED if getattr(request, name)]
    if decided:
        raise click.UsageError(f"{OPTIONS[decided[0]]}: kit fleet sets it for each node; leave it out")
    suite = load_suite(request.suite_name).name
    need("reframe", "fleet")
    partition, known = nodes_of(scheduler, partition, nodes)
    first = FleetPlan(
        nodes=[node.name for node in known if node.is_usable],
        folder=str(Path(out or f"fleet-{UNFIT.sub('_', suite)}").absolute()),
        run_in=str(Path.cwd()),
        command=shlex.split(command) if command else module_command(sys.executable, "kit"),
        words=request.to_argv(),
        scheduler=scheduler,
        partition=partition,
        time_limit_s=time_limit,
        job_options=list(job_options),
    )
    unusable = [_unusable(node) for node in known if not node.is_usable]
    failed: dict[str, Absent] = {}
    plan = replace(first, nodes=nodes_left(first, resume=resume))
    second = replace(first, is_again=True)
    nodes_left(second, resume=resume)  # refuses here what it would after hours

    while True:
        if plan.nodes:
            again = " again, because one profile says that they are slower" if plan.is_again else ""
            say(f"measuring {len(plan.nodes)} of {len(known)} nodes{again}; log: {plan.hidden}/reframe.out")
            without = measure(plan, retries, say)
            failed |= {node: Absent(name=node, reason=why) for node, why in without.items()}
        if failed:  # perhaps for what has become of the node
            now = {node.name: node for node in nodes_of(scheduler, partition or None, ",".join(first.nodes))[1]}
            failed = {name: absent if now[name].is_usable else _unusable(now[name]) for name, absent in failed.items()}
        # What was measured before a node went down counts.
        absent = [node for node in unusable if not first.profile(node.name).is_file()]
        judged = _judged(sorted(Path(first.folder).glob("*.json")), [*failed.values(), *absent])
        slower = {label for node in judged.nodes if node.versus.verdict == "slower" for label in node.profiles}
        suspects = [node for node in first.nodes if node in slower and node not in failed]
        plan = replace(second, nodes=nodes_left(replace(second, nodes=suspects), resume=True))
        if not plan.nodes:
            return judged


def _unusable(node: FleetNode) -> Absent:
    from kit.compare.fleet_nodes import Absent
    from kit.profile.fields import Reason

    code, why = ("node_state_why", {"why": node.why}) if node.why else ("node_state", {})
    return Absent(name=node.name, reason=Reason(code=code, values={"state": node.state, **why}))


def _judged(paths: Sequence[Path], absent: Sequence[Absent]) -> Fleet:
    """Return the verdicts on the nodes of these profiles; of those that stand out with what the audit finds there."""
    from msgspec.structs import replace

    from kit.audit.audit import machine_findings
    from kit.compare.fleet_nodes import Absent, judge
    from kit.profile.store import read_profile

    files = dict(zip(labels_of(paths), paths, strict=True))
    read = in_processes(_reduced, list(files.items()))
    unread = [node for node in read if isinstance(node, Absent)]
    fleet = judge([node for node in read if not isinstance(node, Absent)], [*absent, *unread])
    nodes = []
    for node in fleet.nodes:
        findings = []
        if node.stands_out:
            label = node.profiles[-1]
            findings = machine_findings(label, read_profile(files[label]))
        nodes.append(replace(node, findings=[replace(finding, profile="") for finding in findings]))
    return replace(fleet, nodes=nodes)


def _reduced(file: tuple[str, Path]) -> NodeRun | Absent:
    """Return what the verdicts need of a file and its label; why, where it cannot be judged."""
    from kit.compare.fleet_nodes import Absent, reduce_node
    from kit.profile.fields import reason
    from kit.profile.store import read_profile

    label, path = file
    try:
        profile = read_profile(path)
    except KitError as error:
        return Absent(name=label, reason=reason("node_not_read", line=str(error)))
    if not profile.measured:
        return Absent(name=label, reason=reason("node_not_measured"))
    return reduce_node(label, profile)
