"""`kit run`: measure a suite and write its profile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from kit.cli import EXIT_INTERRUPTED
from kit.cli.options import CLOCK_SOURCE, DATA, print_report
from kit.devices.catalog import DEVICES

if TYPE_CHECKING:
    from kit.profile.schema import Profile
    from kit.profile.unfinished import RunPlan
    from kit.runner.run import Run

EXIT_FAILED_CELLS = 3
# What every framework takes for a seed.
SEED_MAX = 2**31 - 1
# Everything else was decided when the run began: given again, it is to be the same.
FREE_WHEN_RESUMED = frozenset({"resume", "dry_run", "out", "force", "budget", "quiet_s", "as_json"})
STDERR_LINES_SHOWN = 5
# Options that choose among a suite's cells.
AXES = (
    "backends",
    "workloads",
    "devices",
    "tasks",
    "batches",
    "precisions",
    "threads",
    "compile_modes",
    "feeds",
    "device_counts",
)
PRECISIONS = ("float32", "bfloat16", "tf32", "default")
# Longer names make rows of a table that nobody reads.
LABEL_MAX = 60
POSITIVE = click.FloatRange(min=0, min_open=True, max=1e9)
COUNT = click.IntRange(min=1)

F = TypeVar("F", bound=Callable[..., Any])


def _renamed(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    """Refuse the old name of --until-precision, which was read as the numeric precision."""
    if value is not None:
        now = f"--dtype {value}" if value in PRECISIONS else f"--until-precision {value} (--dtype is the numeric one)"
        raise click.UsageError(f"--precision is no longer an option; give {now}")


def _label(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    from kit.printable import printable_line

    if len(value) > LABEL_MAX or value != printable_line(value):
        raise click.BadParameter(f"give one line of at most {LABEL_MAX} printable characters")
    return value


def _listed(*names: str, of: click.ParamType[Any] = click.STRING, **more: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's
    """Return an option that is repeatable; several values may come in one word, as ``--batch 32,64``."""

    def values(context: click.Context, option: click.Parameter, words: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(of.convert(part, option, context) for word in words for part in word.split(","))

    if isinstance(of, click.Choice):
        more["metavar"] = f"[{'|'.join(of.choices)}]"
    return click.option(*names, multiple=True, callback=values, **more)


@click.command
@click.argument("suite", required=False)
@_listed("--backend", "backends", metavar="NAME,…", help="Measure only this framework (repeatable).")
@_listed("--workload", "workloads", metavar="NAME,…", help="Measure this network, not the suite's (repeatable).")
@click.option(
    "--program",
    "programs",
    multiple=True,
    metavar="FILE.py[:FUNCTION]",
    help="Measure a user program: your own network (repeatable).",
)
@_listed("--device", "devices", of=click.Choice(list(DEVICES)), help="Measure on this kind of device.")
@_listed(
    "--devices",
    "device_counts",
    of=COUNT,
    metavar="N,…",
    help="Number of devices that share a batch; several values are compared.",
)
@click.option(
    "--hosts", type=COUNT, default=1, metavar="N", help="Divide --devices over N hosts of this Slurm allocation."
)
@_listed("--task", "tasks", of=click.Choice(["train", "infer", "fit"]), help="Measure only this task (repeatable).")
@_listed("--batch", "batches", of=COUNT, metavar="N,…", help="Samples per step; several values are compared.")
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=N,…",
    help="Set a parameter of the network, such as units=64 (repeatable).",
)
@_listed("--dtype", "precisions", of=click.Choice(PRECISIONS), help="Set the numeric precision (axis `precision`).")
@_listed("--threads", of=COUNT, metavar="N,…", help="Number of threads; several values are compared.")
@_listed("--compile-mode", "compile_modes", metavar="MODE,…", help="Choose graph, xla, eager, compile or jit.")
@_listed("--feed", "feeds", of=click.Choice(["device", "host"]), help="Keep batches on the device, or copy each.")
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME:SET",
    help="Compare a variant; SET: python=PATH, image=NAME or env=NAME=VALUE (repeatable).",
)
@_listed("--compare", metavar="AXIS,…", help="Compare over this axis (repeatable).")
@click.option("--rounds", type=COUNT, metavar="N", help="Measure N rounds; each starts every cell anew.")
@click.option("--until-precision", type=POSITIVE, metavar="PCT", help="Measure until differences are known to PCT %.")
@click.option("--precision", hidden=True, expose_value=False, callback=_renamed)
@click.option("--budget", type=POSITIVE, metavar="S", help="Start no round after S seconds.")
@click.option(
    "--wait-for-quiet", "quiet_s", type=POSITIVE, metavar="S", help="Wait up to S seconds for other programs to stop."
)
@click.option(
    "--energy",
    type=POSITIVE,
    metavar="S",
    help="Measure joules in a block of S seconds, or longer if a sensor needs it. An external meter needs it.",
)
@click.option("--no-energy", is_flag=True, help="Skip the energy blocks; the run is shorter.")
@DATA
@click.option(
    "--seed", type=click.IntRange(0, SEED_MAX), default=0, show_default=True, help="Seed for weights, data and order."
)
@click.option(
    "--clock", type=CLOCK_SOURCE, default="monotonic_raw", show_default=True, help="Use this clock to time steps."
)
@click.option(
    "--label", default="", callback=_label, metavar="TEXT", help="Name the run in tables (default: its file name)."
)
@click.option("--ceilings", is_flag=True, help="Also measure peak throughput; report networks as a percentage of it.")
@click.option("--out", metavar="PATH", help="Write the profile to this file or folder.")
@click.option("--force", is_flag=True, help="Replace the profile at --out.")
@click.option("--resume", is_flag=True, help="Resume the unfinished run of --out.")
@click.option("--quick", is_flag=True, help="Measure fewer rounds and part of each fit; SUITE defaults to quick.")
@click.option("--dry-run", is_flag=True, help="Print cells, groups and the estimated time; measure nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def run(*, budget: float | None, quiet_s: float | None, as_json: bool, **options: Any) -> int:  # noqa: ANN401 - click's own
    """Measure SUITE (default: standard; a built-in name or a .toml file) and write a profile."""
    if options["dry_run"] and not options["resume"]:
        from kit.report.run_plan import plan_report
        from kit.runner.time_left import TimeLeft

        plan = plan_run(options)
        print_report(plan_report(plan, TimeLeft(plan).estimate()), "json" if as_json else "text")
        return 0
    running = begin(options)
    profile = measure(running, budget, quiet_s=quiet_s, shows_table=not as_json)
    if profile is None:
        return EXIT_INTERRUPTED
    if as_json:
        failed = {launch.cell_key: launch.failure for launch in running.failed}
        outcome = {"profile": str(running.path), "id": profile.id, "failed": failed}
        click.echo(msgspec.json.encode(outcome))
    else:
        _print_table(running)
    return EXIT_FAILED_CELLS if running.failed else 0


def measure(
    running: Run, budget: float | None, *, quiet_s: float | None = None, shows_table: bool = False
) -> Profile | None:
    """Measure what remains and return the profile, which is written; null where the run was interrupted.

    Before that, wait up to `quiet_s` for other programs to stop. What to do after an interrupt is the last line, below
    the table of the rounds that are whole where that is to be shown.
    """
    from kit.resume_command import resuming
    from kit.runner.interrupt import StopFlag
    from kit.runner.progress import RunProgress
    from kit.runner.quiet import wait_for_quiet

    stop, profile, why = StopFlag(), None, "interrupted"
    with stop.deferring_interrupts():
        try:
            wait_for_quiet(running.plan.cpus, quiet_s or 0.0, stop, lambda line: click.echo(f"kit: {line}", err=True))
            with RunProgress(running.plan, running.rounds_done) as progress:
                profile = running.run(progress, stop, budget)
        except KeyboardInterrupt:
            pass
        else:
            why = _why_unfinished(running, budget) if profile.interrupted else ""
        if profile is None and shows_table and running.rounds_done and running.path.exists():
            _print_table(running)
        if why:
            plan = running.plan.suite
            of = "" if plan.precision_pct is not None or running.rounds_done > plan.rounds else f" of {plan.rounds}"
            begun = sum(launch.round >= running.rounds_done for launch in running.launches)
            more = f" and {begun} launches of the next" if begun else ""
            saved = f"{running.rounds_done}{of} rounds{more} saved"
            click.echo(f"kit: {why}; {saved}. Resume: `{resuming(running.path)}`", err=True)
    return profile


def _why_unfinished(running: Run, budget: float | None) -> str:
    from kit.runner.next_round import lost_with

    hosts = ", ".join(sorted({str(lost_with(launch)) for launch in running.lost}))
    launches = f"{len(running.lost)} launch{'es' if len(running.lost) > 1 else ''}"
    return f"{launches} lost with host {hosts}" if hosts else f"the budget of {budget or 0:g} s is used up"


def begin(options: dict[str, Any]) -> Run:
    """Begin the run that these options of `kit run` describe, or resume it."""
    from kit.runner.output import profile_path
    from kit.runner.run import Run

    if options["resume"]:
        if not options["out"]:
            raise click.UsageError("--resume needs --out PATH: the profile of the interrupted run")
        return Run.resume(Path(options["out"]), _options(given_only=True))
    plan = plan_run(options)
    path = profile_path(options["out"], plan.suite.name, plan.id, plan.created, replace=options["force"])
    return Run.begin(path, plan)


def plan_run(options: dict[str, Any]) -> RunPlan:
    """Decide everything, or raise a KitError; data are not fetched for a dry run."""
    from kit.clock import choose_source
    from kit.compare.notes import devices_idle
    from kit.printable import printable_line
    from kit.report.sentences import sentence
    from kit.runner.cpus import threads_here, usable_cpus
    from kit.runner.hosts import check_hosts
    from kit.runner.member import phase_limit_s
    from kit.runner.prepare import (
        check_counts,
        check_devices,
        drop_missing_backends,
        ensure_data,
        prepare,
        with_digests,
    )
    from kit.suites.ceilings import with_ceilings
    from kit.suites.options import apply_options, parameters_given, variants_given
    from kit.suites.plan import plan_cells
    from kit.suites.program import programs_given
    from kit.suites.suite import DEFAULT_SUITE, QUICK_SUITE, load_suite
    from kit.workloads.operations import is_operation

    if options["rounds"] is not None and options["until_precision"] is not None:
        raise click.UsageError("--rounds and --until-precision exclude each other; give one")
    if options["energy"] is not None and options["no_energy"]:
        raise click.UsageError("--energy and --no-energy exclude each other; give one")
    choose_source(options["clock"])
    phase_limit_s()
    axes = {name: list(options[name]) for name in AXES}
    name = options["suite"] or DEFAULT_SUITE
    # The quick form of the standard suite has a name of its own.
    named = load_suite(QUICK_SUITE if options["quick"] and name == DEFAULT_SUITE else name)
    suite = apply_options(
        named,
        axes,
        compare=list(options["compare"]),
        variants=variants_given(options["variants"]),
        parameters=parameters_given(options["parameters"]),
        programs=programs_given(options["programs"]),
        rounds=options["rounds"],
        energy_s=0.0 if options["no_energy"] else options["energy"],
        quick=options["quick"],
    )
    variants = with_digests(suite.all_variants())
    planned = plan_cells(suite, named=axes["backends"])
    if not options["compare"] and suite.compare not in ([], named.compare):
        # A backend has no cell for a compile mode that it lacks: what is given may leave nothing to compare.
        varying = [axis for axis in suite.compare if len({cell.value(axis) for cell in planned}) > 1]
        line = f"comparing {', '.join(varying)}, because you gave several values; --compare AXIS chooses another axis"
        click.echo(f"kit: {line if varying else f'nothing to compare: one {suite.compare[0]} is left'}", err=True)
    if options["ceilings"]:
        suite = with_ceilings(suite)
        planned = plan_cells(suite)
        if not any(map(is_operation, planned)):
            names = ", ".join(dict.fromkeys(cell.backend for cell in planned))
            raise click.UsageError(f"--ceilings: {names} has no operations that measure a ceiling; leave it out")
    check_devices(planned)
    check_hosts(planned, variants, options["hosts"])
    check_counts(planned, variants, len(usable_cpus()), options["hosts"])
    cells, skipped = drop_missing_backends(planned, variants, axes["backends"])
    for entry in skipped:
        click.echo(f"kit: skipped: {sentence(entry.reason)}", err=True)
    _say_overruled(threads_here())
    data = ({}, None) if options["dry_run"] else ensure_data(cells, options["data"])
    if data[1] is not None:
        click.echo(f"kit: {sentence(data[1])}; using synthetic data of the same shapes", err=True)
    plan = prepare(
        suite,
        cells,
        variants,
        skipped=skipped,
        data=data,
        seed=options["seed"],
        clock=options["clock"],
        precision_pct=options["until_precision"],
        label=options["label"],
        options=_options(),
        hosts=options["hosts"],
    )
    if not options["devices"]:
        for kind, model in devices_idle(plan.identity, cells):
            line = f"this run does not use the {kind} here ({printable_line(model)}); --device {kind} measures it"
            click.echo(f"kit: {line}", err=True)
    return plan


def _options(*, given_only: bool = False) -> dict[str, Any]:
    """Return the options that decide a run, by the name they are typed with; with `given_only` no default."""
    context = click.get_current_context()
    options = {}
    for parameter in context.command.params:
        is_default = context.get_parameter_source(parameter.name or "") is not ParameterSource.COMMANDLINE
        if parameter.name in context.params.keys() - FREE_WHEN_RESUMED and not (given_only and is_default):
            name = "SUITE" if isinstance(parameter, click.Argument) else parameter.opts[0]
            value = context.params[parameter.name]
            # As the unfinished run's file has them.
            options[name] = list(value) if isinstance(value, tuple) else value
    return options


def _say_overruled(threads: int) -> None:
    """Name the thread variables that are ignored: every member is given its number of threads."""
    from kit.backends.environment import THREAD_VARIABLES

    asked = {name: os.environ[name] for name in THREAD_VARIABLES if os.environ.get(name, str(threads)) != str(threads)}
    if asked:
        variables = ", ".join(f"{name}={value}" for name, value in asked.items())
        uses = f"frameworks use {threads} threads, from CPU affinity and quota; use taskset or --threads to change that"
        click.echo(f"kit: {variables} is ignored: {uses}", err=True)


def _print_table(running: Run) -> None:
    """Print what failed to standard error, then the run's table with the next commands.

    The table goes to a terminal as standard output; elsewhere to standard error, and to standard output the profile's
    path alone.
    """
    from kit.cli.compare import run_comparison, run_table
    from kit.compare.naming import cell_names
    from kit.report.sentences import sentence
    from kit.report.verdict_words import ab_answers

    names = cell_names(running.plan.cells)
    for launch in running.failed:
        failure = launch.failure
        assert failure is not None
        phase = failure.phase.replace("_", " ")
        click.echo(f"kit: failed: {names[launch.cell_key]}, {phase}: {sentence(failure.reason)}", err=True)
        # Of a user's program its own line has been named.
        tail = [] if failure.reason.code == "program_raised" else failure.stderr_tail.splitlines()
        for line in tail[-STDERR_LINES_SHOWN:]:
            click.echo(f"  {line}", err=True)
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    print_report(run_table(running.path), stream=stream)
    precision_pct = running.plan.suite.precision_pct
    if precision_pct is not None:
        round_s = median(running.rounds_s) if running.rounds_s else None
        for line in ab_answers(run_comparison(running.path), precision_pct, round_s):
            click.echo(line, file=stream)
    if stream is not sys.stdout:
        click.echo(str(running.path))
