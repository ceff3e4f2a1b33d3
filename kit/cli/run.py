"""`kit run`: measure a suite and write its profile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from kit.cli import EXIT_INTERRUPTED
from kit.cli.options import CLOCK_SOURCE, DATA, FiniteRange, print_report, say
from kit.devices import DEVICES
from kit.printable import printable
from kit.profile.fields import BATCH_MAX, CPU_MAX, PRECISION_MAX_PCT, ROUNDS_MAX
from kit.suites.request import OPTIONS, RunRequest, parameters_given, variants_given

if TYPE_CHECKING:
    from kit.profile.schema import Profile
    from kit.profile.unfinished import RunPlan
    from kit.runner.running import RunUnderWay

EXIT_FAILED_CELLS = 3
# What every framework takes for a seed.
SEED_MAX = 2**31 - 1
STDERR_LINES_SHOWN = 5
PRECISIONS = ("float32", "bfloat16", "tf32", "default")
# Longer names make rows of a table that nobody reads.
LABEL_MAX = 60
POSITIVE = FiniteRange(min=0, min_open=True, max=1e9)
# What a profile can hold: a run whose profile no reader takes is lost.
CPUS, BATCH, ROUNDS = (click.IntRange(1, most) for most in (CPU_MAX, BATCH_MAX, ROUNDS_MAX))

F = TypeVar("F", bound=Callable[..., Any])


def _label(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    from kit.printable import printable_line

    if len(value) > LABEL_MAX or value != printable_line(value):
        raise click.BadParameter(f"give one line of at most {LABEL_MAX} printable characters")
    return value


def _option(field: str, words: str, **more: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's
    """Return the option that gives a field of `RunRequest`."""
    return click.option(OPTIONS[field], field, help=words, **more)


def _listed(field: str, words: str, kind: click.ParamType[Any] = click.STRING, **more: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's
    """Return an option that is repeatable; several values may come in one word, as ``--batch 32,64``."""

    def values(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(kind.convert(part, option, context) for text in given for part in text.split(","))

    if isinstance(kind, click.Choice):
        more["metavar"] = f"[{'|'.join(kind.choices)}]"
    return _option(field, words, multiple=True, callback=values, **more)


def _read(field: str, words: str, reader: Callable[[Sequence[str]], Any], metavar: str) -> Callable[[F], F]:
    """Return a repeatable option whose values a function reads together."""
    return _option(field, words, multiple=True, metavar=metavar, callback=lambda _, __, texts: reader(texts))


@click.command
@click.argument("suite", required=False, default="")
@_listed("backends", "Measure only this framework (repeatable).", metavar="NAME,…")
@_listed("workloads", "Measure this network, not the suite's (repeatable).", metavar="NAME,…")
@_read("programs", "Measure a user program: your own network (repeatable).", tuple, metavar="[NAME=]FILE.py[:FUNCTION]")
@_listed("devices", "Measure on this kind of device.", click.Choice(list(DEVICES)))
@_listed("device_counts", "Number of devices that share a batch; several values are compared.", CPUS, metavar="N,…")
@_option("hosts", "Divide --devices over N hosts of this Slurm allocation.", type=CPUS, default=1, metavar="N")
@_listed("tasks", "Measure only this task (repeatable).", click.Choice(["train", "infer", "fit"]))
@_listed("batches", "Samples per step; several values are compared.", BATCH, metavar="N,…")
@_read(
    "parameters", "Set a parameter of the network, such as units=64 (repeatable).", parameters_given, metavar="NAME=N,…"
)
@_listed("precisions", "Set the numeric precision (axis `precision`).", click.Choice(PRECISIONS))
@_listed("threads", "Number of threads; several values are compared.", CPUS, metavar="N,…")
@_listed("compile_modes", "Choose graph, xla, eager, compile or jit.", metavar="MODE,…")
@_listed("feeds", "Keep batches on the device, or copy each.", click.Choice(["device", "host"]))
@_read(
    "variants",
    "Compare a variant; SET: python=PATH, image=NAME or env=NAME=VALUE (repeatable).",
    variants_given,
    metavar="NAME:SET",
)
@_listed("compare", "Compare over this axis (repeatable).", metavar="AXIS,…")
@_option("rounds", "Measure N rounds; each starts every cell anew.", type=ROUNDS, metavar="N")
@_option(
    "precision_pct",
    "Measure until differences are known to PCT %.",
    type=FiniteRange(min=0, min_open=True, max=PRECISION_MAX_PCT),
    metavar="PCT",
)
@_option("budget_s", "Start no round after S seconds.", type=POSITIVE, metavar="S")
@_option("quiet_s", "Wait up to S seconds for other programs to stop.", type=POSITIVE, metavar="S")
@_option(
    "energy_s",
    "Measure joules in a block of S seconds, or longer if a sensor needs it. An external meter needs it.",
    type=POSITIVE,
    metavar="S",
)
@_option("no_energy", "Skip the energy blocks; the run is shorter.", is_flag=True)
@DATA
@_option("seed", "Seed for weights, data and order.", type=click.IntRange(0, SEED_MAX), default=0, show_default=True)
@_option("clock", "Use this clock to time steps.", type=CLOCK_SOURCE, default="monotonic_raw", show_default=True)
@_option("label", "Name the run in tables (default: its file name).", default="", callback=_label, metavar="TEXT")
@_option("ceilings", "Also measure peak throughput; report networks as a percentage of it.", is_flag=True)
@_option("reuse_compiled", "Compile in the first round; later rounds reuse that.", is_flag=True)
@_option("names_only", "Record names of environment variables, without their values.", is_flag=True)
@_option("out", "Write the profile to this file or folder.", default="", metavar="PATH")
@_option("force", "Replace the profile at --out.", is_flag=True)
@_option("resume", "Resume the unfinished run of --out.", is_flag=True)
@_option("quick", "Measure fewer rounds and part of each fit; SUITE defaults to quick.", is_flag=True)
@_option("dry_run", "Print cells, groups and the estimated time; measure nothing.", is_flag=True)
@_option("as_json", "Print the outcome as JSON.", is_flag=True)
@click.pass_context
def run(context: click.Context, /, **_: Any) -> int:  # noqa: ANN401 - read by `request_of`
    """Measure SUITE (default: standard; a built-in name or a .toml file) and write a profile."""
    request = request_of(context)
    typed = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    running = begin(request, [OPTIONS[name] for name in typed])
    if request.dry_run:
        from kit.report.run_plan import plan_report
        from kit.runner.rounds_left import TimeLeft

        left = TimeLeft(running.plan, running.rounds_done).estimate()
        print_report(plan_report(running.plan, left), "json" if request.as_json else "text")
        return 0
    profile = measure(running, request, shows_table=not request.as_json)
    if profile is None:
        return EXIT_INTERRUPTED
    if request.as_json:
        failed = {launch.cell_key: launch.failure for launch in running.failed}
        outcome = {"profile": str(running.path), "id": profile.id, "failed": failed}
        click.echo(msgspec.json.encode(outcome))
    else:
        _print_table(running)
    return EXIT_FAILED_CELLS if running.failed else 0


def parse_request(words: Sequence[str], command: str = "kit run") -> RunRequest:
    """Return the request that these words after `kit run` make: the inverse of `RunRequest.to_argv`.

    Raises:
        click.UsageError, KitError: they make none.
    """
    return request_of(run.make_context(command, list(words)))


def request_of(context: click.Context) -> RunRequest:
    """Return the request that the options of `kit run` make."""
    fields = dict(context.params)
    if fields.pop("no_energy"):
        if fields["energy_s"] is not None:
            raise click.UsageError("--energy and --no-energy exclude each other; give one")
        fields["energy_s"] = 0.0
    if fields["rounds"] is not None and fields["precision_pct"] is not None:
        raise click.UsageError("--rounds and --until-precision exclude each other; give one")
    if fields["resume"] and not fields["out"]:
        raise click.UsageError("--resume needs --out PATH: the profile of the interrupted run")
    return RunRequest(**fields)


def measure(running: RunUnderWay, request: RunRequest, *, shows_table: bool = False) -> Profile | None:
    """Measure what remains and return the profile, which is written; null where the run was interrupted.

    The last line then says how to resume, below the table of the whole rounds where that is to be shown.
    """
    from kit.profile.unfinished import resume_command
    from kit.runner.interrupt import StopFlag
    from kit.runner.progress import RunProgress, wait_for_quiet
    from kit.runner.rounds_left import lost_with

    stop, profile, why = StopFlag(), None, "interrupted"
    with stop.deferring_interrupts():
        try:
            wait_for_quiet(running.plan.cpus, request.quiet_s or 0.0, stop, say)
            with RunProgress(running.plan, running.rounds_done) as progress:
                profile = running.run(progress, stop, request.budget_s, replaces=request.force)
        except KeyboardInterrupt:
            pass
        else:
            why = f"the budget of {request.budget_s or 0:g} s is used up" if profile.interrupted else ""
            if why and (count := len(running.lost)):
                hosts = ", ".join(sorted({str(lost_with(launch)) for launch in running.lost}))
                why = f"{count} launch{'es' if count > 1 else ''} lost with host {hosts}"
        if profile is None and shows_table and running.rounds_done and running.path.exists():
            _print_table(running)
        if why:
            plan = running.plan.suite
            planned = (
                "" if plan.precision_pct is not None or running.rounds_done > plan.rounds else f" of {plan.rounds}"
            )
            begun = sum(launch.round >= running.rounds_done for launch in running.launches)
            more = f" and {begun} launches of the next" if begun else ""
            saved = f"{running.rounds_done}{planned} rounds{more} saved"
            # A resumed run takes these anew.
            again = f" --budget {request.budget_s:g}" if request.budget_s else ""
            again += " --force" if request.force else ""
            say(f"{why}; {saved}. Resume: `{resume_command(running.path)}{again}`")
    return profile


def begin(request: RunRequest, typed: Collection[str] = ()) -> RunUnderWay:
    """Begin the run that is asked for, or resume it with the options that were `typed` again.

    A dry run begins, too, so that it is refused as the run would be; then its folder goes again.
    """
    from kit.profile.unfinished import UnfinishedRun
    from kit.runner.hosts import allocated_hosts
    from kit.runner.prepare import plan_run
    from kit.runner.running import RunUnderWay, profile_path

    if request.resume:
        again = {option: value for option, value in request.decided().items() if option in typed}
        running = RunUnderWay.resume(Path(request.out), request, again)
        allocated_hosts(running.plan.suite.hosts)
        _say_who_reaches_ranks(running.plan)
        return running
    plan = plan_run(request, say)
    _say_who_reaches_ranks(plan)
    unfinished = UnfinishedRun.begin(
        profile_path(request.out, plan.suite.name, plan.id, plan.created, replace=request.force), plan
    )
    running = RunUnderWay(unfinished, plan)
    if request.dry_run:
        unfinished.remove()
    return running


def _say_who_reaches_ranks(plan: RunPlan) -> None:
    from kit.runner.worker_processes import lines_before

    for line in lines_before(plan):
        say(line)


def _print_table(running: RunUnderWay) -> None:
    """Print what failed to standard error, then the run's table with the next commands.

    The table goes to a terminal as standard output; elsewhere to standard error, and to standard output the profile's
    path alone.
    """
    from kit.cli.compare import run_comparison, run_table
    from kit.report.verdict_words import ab_answers

    say_failures(running)
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    print_report(run_table(running.path), stream=stream)
    precision_pct = running.plan.suite.precision_pct
    if precision_pct is not None:
        round_s = median(running.rounds_s) if running.rounds_s else None
        for line in ab_answers(run_comparison(running.path), precision_pct, round_s):
            click.echo(line, file=stream)
    if stream is not sys.stdout:
        click.echo(str(running.path))


def say_failures(running: RunUnderWay) -> None:
    """Print to standard error which cells failed, each with its reason and the end of what its worker printed."""
    from kit.compare.naming import cell_names
    from kit.report.sentences import sentence

    names = cell_names(running.plan.cells)
    for launch in running.failed:
        failure = launch.failure
        assert failure is not None
        phase = failure.phase.replace("_", " ")
        say(f"failed: {names[launch.cell_key]}, {phase}: {sentence(failure.reason)}")
        # The sentence names the line of a user's program.
        tail = [] if failure.reason.code == "program_raised" else failure.stderr_tail.splitlines()
        for line in tail[-STDERR_LINES_SHOWN:]:
            click.echo(printable(f"  {line}"), err=True)
