"""Verbs that measure here: `kit run` measures a suite, `kit selftest` one cell against itself; both write a profile."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource
from msgspec.structs import replace

from kit.cli.options import PROFILE, format_options, option_from, options_from, print_report, say
from kit.devices import DEVICES
from kit.errors import EXIT_INTERRUPTED
from kit.printable import printable
from kit.profile.fields import BATCH_MAX, ROUNDS_MAX
from kit.suites.run_request import OPTIONS, SEED_MAX, RunRequest

if TYPE_CHECKING:
    from kit.profile.schema import Profile
    from kit.profile.unfinished import RunPlan
    from kit.runner.running import RunUnderWay

EXIT_FAILED_CELLS = 3
STDERR_LINES_SHOWN = 5
HOST = "cpu"


@click.command
@options_from(RunRequest)
@click.pass_context
def run(context: click.Context, /, **_: Any) -> int:  # noqa: ANN401 - they make a `RunRequest`
    """Measure SUITE (default: standard; a built-in name or a .toml file) and write a profile."""
    request = request_of(context.params)
    typed = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    running = begin(request, [OPTIONS[name] for name in typed])
    if request.dry_run:
        from kit.report.plan_report import plan_report
        from kit.runner.plan_ahead import by_earlier_profiles
        from kit.runner.time_left import TimeLeft

        left = TimeLeft(running.plan, running.rounds_done, request.budget_s).estimate()
        earlier = by_earlier_profiles(running.plan, running.path.parent, request.budget_s)
        report = plan_report(running.plan, left, earlier, request.budget_s)
        print_report(report, "json" if request.as_json else "text")
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
    if request.allowed_pct is not None:
        return _gate(request, running, request.allowed_pct)
    return EXIT_FAILED_CELLS if running.failed else 0


def _gate(request: RunRequest, running: RunUnderWay, allowed_pct: float) -> int:
    """Judge a run, and rows that it leaves open by a second one beside it; return the exit code."""
    from kit.cli.compare_and_audit import limit_of, run_comparison, say_limit
    from kit.profile.store import read_profile

    failed = f"failed: nothing is judged against {allowed_pct:g} %, as the cells named above failed"
    if running.failed:
        say(failed)
        return EXIT_FAILED_CELLS
    limit = limit_of(run_comparison(running.path), allowed_pct)
    rows = limit.open_rows(running.plan.suite.rounds)
    # The request of a resumed run is not that of the whole; what a budget ended is no screen.
    if rows and not (limit.kept_apart or request.resume or read_profile(running.path).interrupted):
        path = running.path.with_suffix(f".confirm{running.path.suffix}")
        say(f"slower, or near the limit: {', '.join(rows)}; measured once more, into {path}")
        again = RunRequest(**vars(request) | {"out": str(path), "force": True, "resume": False})
        second = begin(again)
        if measure(second, again) is None:
            return EXIT_INTERRUPTED
        if request.as_json:
            say_failures(second)
        else:
            _print_table(second, names_profile=False)
        if second.failed:
            say(failed)
            return EXIT_FAILED_CELLS
        limit = limit.confirmed_by(limit_of(run_comparison(second.path), allowed_pct), rows)
    return say_limit(limit, allowed_pct)


def parse_request(words: Sequence[str], command: str = "kit run") -> RunRequest:
    """Return the request that these words after `kit run` make: the inverse of `RunRequest.to_argv`.

    Raises:
        click.UsageError, KitError: they make none.
    """
    return request_of(run.make_context(command, list(words)).params)


def as_typed(request: RunRequest) -> RunRequest:
    """Return a request of Python code as its options take it: what the command line refuses is refused here, too.

    Raises:
        click.UsageError, KitError: an option does not take its value, or two exclude each other.
    """
    context, typed = click.Context(run, info_name="kit run"), request.typed()
    params = {}
    for option in run.params:
        value = typed[str(option.name)]
        if isinstance(value, list):
            value = tuple(map(str, value))
        elif getattr(option, "is_flag", False):
            value = bool(value)
        elif value is not None:
            value = str(value)
        params[str(option.name)] = option.process_value(context, value)
    return request_of(params)


def request_of(params: Mapping[str, Any]) -> RunRequest:
    """Return the request that the options of `kit run` make."""
    fields = dict(params)
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
            wait_for_quiet(running.plan, request.quiet_s or 0.0, stop, say)
            with RunProgress(running.plan, running.rounds_done, request.budget_s) as progress:
                profile = running.run(progress, stop, request.budget_s, replaces=request.force)
        except KeyboardInterrupt:
            pass
        else:
            why = f"the budget of {request.budget_s or 0:g} s is used up" if profile.interrupted else ""
            if why and (count := len(running.lost)):
                hosts = ", ".join(sorted({str(lost_with(launch)) for launch in running.lost}))
                why = f"{count} launch{'es' if count > 1 else ''} lost with host {hosts}"
        if profile is not None and not why and running.ended_by_budget and running.plan.suite.precision_pct is not None:
            precision = f"differences were known to {running.plan.suite.precision_pct:g} %"
            say(f"the budget of {request.budget_s or 0:g} s is used up before all {precision}")
        if profile is None and shows_table and running.rounds_done and running.path.exists():
            _print_table(running)
        if why:
            plan = running.plan.suite
            is_planned = plan.precision_pct is None and running.rounds_done <= plan.rounds
            planned = f" of {plan.rounds}" if is_planned else ""
            begun = sum(launch.round >= running.rounds_done for launch in running.launches)
            more = f" and {begun} launches of the next" if begun else ""
            saved = f"{running.rounds_done}{planned} rounds{more} saved"
            # A resumed run takes these anew.
            again = f" --budget {request.budget_s:g}" if request.budget_s else ""
            again += " --force" if request.force else ""
            again += "" if request.allowed_pct is None else f" --fail-if-slower {request.allowed_pct:g}"
            say(f"{why}; {saved}. Resume: `{resume_command(running.path)}{again}`")
    return profile


def begin(request: RunRequest, typed: Collection[str] = ()) -> RunUnderWay:
    """Begin the run that is asked for, or resume it with the options that were `typed` again.

    A dry run begins, too, so that it is refused as the run would be; then its folder goes again.
    """
    from kit.profile.unfinished import UnfinishedRun
    from kit.runner.prepare import check_settings, plan_run
    from kit.runner.running import RunUnderWay, check_out, profile_path
    from kit.runner.target import allocated_hosts
    from kit.suites.plan import plan_of

    if request.resume:
        again = {option: value for option, value in request.decided().items() if option in typed}
        running = RunUnderWay.resume(Path(request.out), request, again)
        allocated_hosts(running.plan.suite.hosts)
        _say_who_reaches_ranks(running.plan)
        return running
    check_settings(request.clock)
    check_out(request.out, replace=request.force)
    plan = plan_run(plan_of(request, say), say)
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


def _print_table(running: RunUnderWay, *, names_profile: bool = True) -> None:
    """Print what failed to standard error, then the run's table with the next commands.

    The table goes to a terminal as standard output; elsewhere to standard error, and to standard output the profile's
    path alone, unless it is not to be named.
    """
    from kit.cli.compare_and_audit import run_comparison, run_table
    from kit.report.verdicts_in_words import ab_answers, ab_findings

    say_failures(running)
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    print_report(run_table(running.path), stream=stream)
    precision_pct, comparison = running.plan.suite.precision_pct, run_comparison(running.path)
    round_s = median(running.rounds_s) if running.rounds_s else None
    lines = [] if precision_pct is None else ab_answers(comparison, precision_pct, round_s)
    for line in [*lines, *ab_findings(comparison, round_s)]:
        click.echo(line, file=stream)
    if names_profile and stream is not sys.stdout:
        click.echo(str(running.path))


def say_failures(running: RunUnderWay) -> None:
    """Print to standard error which cells failed, each with its reason and the end of what its worker printed."""
    from kit.compare.naming import cell_names
    from kit.report.reasons_in_words import sentence
    from kit.worker.messages import RAISED

    names = cell_names(running.plan.cells)
    for launch in running.failed:
        failure = launch.failure
        assert failure is not None
        phase = failure.phase.replace("_", " ")
        say(f"failed: {names[launch.cell_key]}, {phase}: {sentence(failure.reason)}")
        tail = failure.stderr_tail
        if failure.reason.code == "program_raised":  # the sentence names the line of a user's program
            tail = tail.rpartition(RAISED)[0]
        for line in tail.splitlines()[-STDERR_LINES_SHOWN:]:
            click.echo(printable(f"  {line}"), err=True)


@click.command
@click.option("--workload", default="mlp", show_default=True, metavar="NAME", help="Network to measure.")
@click.option("--backend", metavar="NAME", help="Framework to measure  [torch; with --device: all].")
@click.option("--device", type=click.Choice(list(DEVICES)), help="Check this kind of device, its sensors and clocks.")
@click.option(
    "--task", default="train", show_default=True, type=click.Choice(["train", "infer"]), help="Task to measure."
)
@click.option("--batch", type=click.IntRange(1, BATCH_MAX), default=128, show_default=True, help="Samples per step.")
@click.option(
    "--rounds", type=click.IntRange(2, ROUNDS_MAX), default=8, show_default=True, metavar="N", help="Rounds to measure."
)
@option_from(RunRequest, "data")
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=0, show_default=True, help="Random seed.")
@click.option("--out", default="", metavar="PATH", help="Write the profile to this file or folder.")
@click.option("--from", "path", type=PROFILE, help="Judge the profile of an earlier self-test; measure nothing.")
@format_options
def selftest(*, path: Path | None, device: str | None, format_name: str, **options: Any) -> int:  # noqa: ANN401
    """Measure one cell against itself and against injected delays of 1, 2, 3 and 5 %, and report which are detected.

    With --device gpu or tpu: check the devices, sensors, waits, clocks, memory, joules and parity, in about 20
    minutes. The result is a table, and a profile that you can send (https://github.com/steadykit/steadykit/blob/main/docs/trust/tested-on.md).
    """
    from kit.audit.first_hour import SUITE, first_hour
    from kit.cli.compare_and_audit import profile_comparison
    from kit.profile.store import read_profile
    from kit.report.audit_report import first_hour_report

    code, on_device = 0, device not in (None, HOST)
    if on_device and path is not None:
        raise click.UsageError("--from judges a self-test of any device; leave out --device")
    if path is None:
        common = {"data": options["data"], "out": options["out"]}
        if on_device:
            request, running = _begin_on(str(device), options["backend"], **common)
        else:
            request = RunRequest(
                suite="selftest",
                workloads=(options["workload"],),
                backends=(options["backend"] or "torch",),
                tasks=(options["task"],),
                batches=(options["batch"],),
                rounds=options["rounds"],
                seed=options["seed"],
                **common,
            )
            running = begin(request)
        if running is None or measure(running, request) is None:
            return EXIT_INTERRUPTED
        path, code = running.path, EXIT_FAILED_CELLS if running.failed else 0
        say(f"saved {path}; `kit selftest --from {shlex.quote(str(path))}` prints this again")
    profile = read_profile(path)
    if profile.suite.name == SUITE:
        checks = first_hour(path.stem, profile)
        print_report(first_hour_report(profile, checks), format_name)
        return int(any(check.status == "fail" for check in checks))
    if not any(variant.slowdown_pct for variant in profile.suite.variants):
        raise click.UsageError(f"{path}: this run injected no delay; give a profile that `kit selftest` wrote")
    print_report(profile_comparison(path), format_name)
    return code


def _begin_on(device: str, backend: str | None, *, data: str, out: str) -> tuple[RunRequest, RunUnderWay | None]:
    """Begin the run of the first hour, with its sensors' responses to a load; no run where that was interrupted."""
    from kit.audit.first_hour import SUITE
    from kit.runner.interrupt import StopFlag
    from kit.runner.prepare import check_settings, plan_run
    from kit.runner.response import sensor_responses
    from kit.runner.running import RunUnderWay, check_out, profile_path
    from kit.suites.plan import plan_of

    context = click.get_current_context()
    for name in ("workload", "task", "batch", "rounds", "seed"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} does not go with --device, whose checks are fixed; leave it out")
    # The suite itself names a GPU, and the CPU for its parity.
    devices = () if device == "gpu" else (device,)
    request = RunRequest(suite=SUITE, devices=devices, backends=(backend,) if backend else (), data=data, out=out)
    check_settings(request.clock)
    check_out(out, replace=False)
    plan, stop = plan_run(plan_of(request, say), say), StopFlag()
    path = profile_path(out, f"hardware-{device}", plan.id, plan.created)
    say(f"loading the {device}, to see how its sensors respond")
    with stop.deferring_interrupts():
        try:
            return request, RunUnderWay.begin(path, replace(plan, responses=sensor_responses(plan, stop)))
        except KeyboardInterrupt:
            return request, None
