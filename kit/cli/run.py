"""`kit run`: measure a suite and write its profile."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from kit.cli.damaged import say_damaged
from kit.cli.decided import refuse_given
from kit.cli.finite_range import FiniteRange
from kit.cli.overruled import say_overruled

if TYPE_CHECKING:
    from pathlib import Path

    from kit.cli.progress import RunProgress
    from kit.engines.run import Run
    from kit.profile.schema import Profile

EXIT_FAILED_CELLS = 3
EXIT_INTERRUPTED = 130
# What every framework takes for a seed.
SEED_MAX = 2**31 - 1
# Everything else was decided when the run began.
FREE_WHEN_RESUMED = frozenset({"resume", "out", "budget", "as_json"})


@click.command(short_help="Measure a suite and write its profile.")
@click.argument("suite", required=False)
@click.option("--backend", "backends", multiple=True, metavar="NAME", help="Only this framework (repeatable).")
@click.option("--workload", "workloads", multiple=True, metavar="NAME", help="Only this network (repeatable).")
@click.option("--device", "devices", multiple=True, metavar="cpu|gpu|tpu", help="On this device (repeatable).")
@click.option("--task", "tasks", multiple=True, metavar="train|infer", help="Only this task (repeatable).")
@click.option("--batch", "batches", multiple=True, type=int, metavar="N", help="Samples per step (repeatable).")
@click.option("--compile-mode", "compile_modes", multiple=True, metavar="MODE", help="graph, xla, eager, compile, jit.")
@click.option("--feed", "feeds", multiple=True, metavar="device|host", help="Batches resident, or copied each step.")
@click.option("--launches", type=click.IntRange(min=1), metavar="N", help="Fresh processes per cell.")
@click.option(
    "--precision",
    type=FiniteRange(min=0, min_open=True),
    metavar="PCT",
    help="Launch until each interval is this near.",
)
@click.option("--budget", type=FiniteRange(min=0, min_open=True), metavar="S", help="Begin no round after S seconds.")
@click.option("--data", default="auto", show_default=True, metavar="mnist|synthetic|auto", help="What to feed.")
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    default=0,
    show_default=True,
    metavar="N",
    help="Of weights, batches, dropout and order.",
)
@click.option("--clock", default="monotonic_raw", show_default=True, metavar="SOURCE", help="What stamps read.")
@click.option("--out", metavar="PATH", help="Profile to write, or the folder to put it in.")
@click.option("--resume", is_flag=True, help="Go on with the unfinished run of --out.")
@click.option("--quick", is_flag=True, help="Measure as the quick suite does: a look in minutes.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def run(*, budget: float | None, as_json: bool, **options: Any) -> int:  # noqa: ANN401 - click's own
    """Measure SUITE (default: standard; a built-in name or a .toml file) and write a profile."""
    # Before a journal is created: in the time that it takes, an interrupt would leave that behind without a word.
    from kit.cli.progress import RunProgress
    from kit.engines.interrupts import interrupts_held_back

    running = _resume(options) if options["resume"] else _begin(options)
    code = EXIT_INTERRUPTED
    # One that comes when the profile is written has nothing left to end.
    with suppress(KeyboardInterrupt), interrupts_held_back():
        progress = RunProgress(running.expected, ended=len(running.finished), budget_s=budget)
        code = _conduct(running, progress, budget, as_json=as_json)
    return code


def _conduct(running: Run, progress: RunProgress, budget: float | None, *, as_json: bool) -> int:
    path = running.path
    try:
        with progress:
            profile = running.conduct(progress, budget)
    except KeyboardInterrupt:
        _say_how_to_go_on(running, "interrupted")
        return EXIT_INTERRUPTED
    if running.path != path:
        click.echo(f"kit: {path}: another run's profile is there by now; this one is {running.path}", err=True)
    if profile.interrupted:
        _say_how_to_go_on(running, f"the budget of {budget:g} s has ended")
    else:
        _say_what_is_imprecise(running, budget)
    _print_outcome(running, profile, as_json=as_json)
    return EXIT_FAILED_CELLS if running.failed else 0


def _say_how_to_go_on(running: Run, why: str) -> None:
    from kit.compare.counted import counted

    kept = len(running.finished)
    about = "" if running.header.plan.precision_pct is None else "about "
    click.echo(
        f"kit: {why}; {kept} of {about}{counted(kept + sum(running.expected.values()), 'launch')} kept; "
        f"go on with `kit run --resume --out {running.path}`",
        err=True,
    )


def _say_what_is_imprecise(running: Run, budget: float | None) -> None:
    from kit.compare.counted import counted

    if budget is not None and any(running.expected.values()):
        click.echo(
            f"kit: the budget of {budget:g} s has ended before every cell was as precise as asked for; "
            "`kit compare` says which",
            err=True,
        )
    if given_up := running.given_up:
        click.echo(
            f"kit: given up: {counted(len(given_up), 'cell')} cannot be as precise as asked for here; "
            "`kit compare` says which",
            err=True,
        )


def _begin(options: dict[str, Any]) -> Run:
    """Decide everything, or raise a KitError."""
    from datetime import datetime

    from kit.clock import CLOCKS, choose_source
    from kit.engines.prepare import check_devices, keep_installed, prepare
    from kit.engines.run import Run, usable_cpus
    from kit.profile.naming import profile_path
    from kit.suites.override import override
    from kit.suites.plan import check_choice, plan_cells
    from kit.suites.suite import DEFAULT_SUITE, load_suite
    from kit.workloads.data.dataset import ensure

    if options["launches"] is not None and options["precision"] is not None:
        raise click.UsageError("--launches and --precision cannot both decide how many launches there are; give one")
    check_choice("data", options["data"], ("mnist", "synthetic", "auto"))
    check_choice("clock source", options["clock"], CLOCKS)
    choose_source(options["clock"])
    axes = {
        name: list(options[name])
        for name in ("backends", "workloads", "devices", "tasks", "batches", "compile_modes", "feeds")
    }
    named = DEFAULT_SUITE if options["suite"] is None else options["suite"]
    suite = override(load_suite(named), axes, launches=options["launches"], quick=options["quick"])
    planned = plan_cells(suite.cells, named=axes["backends"])
    check_devices(planned)
    cells, skipped = keep_installed(planned, axes["backends"])
    for entry in skipped:
        click.echo(f"kit: skipped: {entry.reason}", err=True)
    say_overruled(len(usable_cpus()))
    ready = ensure(options["data"])
    if ready.note:
        click.echo(f"kit: {ready.note}", err=True)
    header = prepare(
        suite,
        cells,
        skipped=skipped,
        data=ready,
        seed=options["seed"],
        cpus=usable_cpus(),
        clock=options["clock"],
        precision_pct=options["precision"],
    )
    path = profile_path(options["out"], suite.name, header.id, datetime.fromisoformat(header.created))
    return Run.begin(path, header)


def _resume(options: dict[str, Any]) -> Run:
    from pathlib import Path

    from kit.engines.run import Run
    from kit.profile.journal import JournalError

    if not options["out"]:
        raise click.UsageError("--resume needs --out PATH, the profile whose run was interrupted")
    refuse_given("--resume", FREE_WHEN_RESUMED, "the run's journal has decided it")
    path = Path(options["out"])
    try:
        running = Run.resume(path)
    except JournalError:
        _refuse_what_has_ended(path)
        raise
    say_damaged(running.damaged, "journal", "run again")
    return running


def _refuse_what_has_ended(path: Path) -> None:
    """Raise UsageError where there is a profile without a journal: nothing of its run is left to do."""
    import os

    from kit.profile.journal import journal_path
    from kit.profile.store import read_profile

    if os.path.lexists(journal_path(path)) or not os.path.isfile(path):  # noqa: PTH113 - Path's raise on odd names
        return
    if read_profile(path).interrupted:
        raise click.UsageError(
            f"{path}: its run was interrupted and its journal is gone, so it cannot go on; "
            f"`kit show {path}` shows what it has, and another --out begins anew"
        )
    raise click.UsageError(f"{path}: this run is complete; `kit show {path}` shows it")


def _say_without_numbers(running: Run, profile: Profile) -> None:
    from kit.compare.counted import counted
    from kit.stats.lost_cpus import lost_cpus

    of_all = f"of {counted(len(running.finished), 'launch')}, which give no numbers; "
    # A failed launch may have been measured in part; it is told as failed.
    ended_well = [launch for launch in running.finished if launch.failure is None]
    lost_to = [lost.to for launch in ended_well if (lost := lost_cpus(launch)) is not None]
    stopped, contended = lost_to.count("limit"), lost_to.count("others")
    without = sum(summary.median_ns is None for result in profile.cells for summary in result.launch_summaries)
    for number, what, then in (
        (
            stopped,
            "a CPU limit stopped the CPUs in",
            "measure without one, or on CPUs of its own (docker --cpuset-cpus)",
        ),
        (contended, "other work took the CPUs in", "measure when the machine is idle, or on CPUs of its own (taskset)"),
        (without - len(lost_to), "no steady state in", f"`kit show {running.path}` says why in each"),
    ):
        if number > 0:
            click.echo(f"kit: {what} {number} {of_all}{then}", err=True)


def _print_outcome(running: Run, profile: Profile, *, as_json: bool) -> None:
    failures = {launch.cell_key: launch.failure for launch in running.finished if launch.failure is not None}
    if as_json:
        import msgspec

        outcome = {"profile": str(running.path), "id": running.header.id, "failed": failures}
        click.echo(msgspec.json.encode(outcome).decode())
        return
    _say_without_numbers(running, profile)
    for key, failure in failures.items():
        click.echo(f"kit: failed: {key}: {failure.in_words}", err=True)
        for line in failure.stderr_tail.splitlines()[-5:]:
            click.echo(f"  {line}", err=True)
    click.echo(str(running.path))
