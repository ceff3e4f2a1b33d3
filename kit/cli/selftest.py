"""`kit selftest`: how often verdicts err on this host, what they find, and the host's noise band."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kit.cli.damaged import say_damaged
from kit.cli.decided import refuse_given
from kit.cli.run import EXIT_FAILED_CELLS, EXIT_INTERRUPTED, SEED_MAX

if TYPE_CHECKING:
    from pathlib import Path

    from kit.engines.selftest import SelfTest
    from kit.profile.self_test import SelfTestAnswer

# A look; no fewer than a paired comparison of two rounds takes.
ROUNDS_MIN = 2
# Everything else was decided when the self-test began.
FREE_WHEN_RESUMED = frozenset({"resume", "out", "as_json"})
FREE_WITH_FROM = frozenset({"kept", "as_json"})


@click.command(short_help="Test the verdicts on this host, and take its noise band.")
@click.option("--workload", default="mlp", show_default=True, metavar="NAME", help="Network to launch.")
@click.option("--backend", default="torch", show_default=True, metavar="NAME", help="Framework to launch.")
@click.option("--task", default="train", show_default=True, metavar="train|infer", help="Task to launch.")
@click.option("--batch", type=int, default=128, show_default=True, metavar="N", help="Samples per step.")
@click.option(
    "--launches",
    type=click.IntRange(min=ROUNDS_MIN),
    default=20,
    show_default=True,
    metavar="N",
    help="Rounds: launches of each slow-down, and half of those not slowed.",
)
@click.option("--data", default="auto", show_default=True, metavar="mnist|synthetic|auto", help="What to feed.")
@click.option(
    "--seed", type=click.IntRange(0, SEED_MAX), default=0, show_default=True, metavar="N", help="Of all draws."
)
@click.option("--out", metavar="PATH", help="File that keeps the launches, or the folder to put it in.")
@click.option("--resume", is_flag=True, help="Go on with the unfinished self-test of --out.")
@click.option("--from", "kept", metavar="FILE", help="Judge the launches in FILE again; measure nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def selftest(*, resume: bool, kept: str | None, as_json: bool, **options: Any) -> int:  # noqa: ANN401 - click's own
    """Launch one cell over and over, some launches slowed by 2, 3 and 5 % on purpose, and see what each rule says."""
    from pathlib import Path

    from kit.engines.selftest import judge_kept

    if kept is not None:
        refuse_given("--from", FREE_WITH_FROM, "it is given the launches, and measures nothing")
        answer, damaged = judge_kept(Path(kept))
        say_damaged(damaged, "file", "left out")
        _print(answer, as_json=as_json, kept_in=None)
        return EXIT_FAILED_CELLS if answer.failed else 0
    if resume:
        if not options["out"]:
            raise click.UsageError("--resume needs --out PATH, the file of the self-test that was interrupted")
        refuse_given("--resume", FREE_WHEN_RESUMED, "the self-test's file has decided it")
        return _conduct(_resumed(Path(options["out"])), as_json=as_json)
    return _conduct(_begun(options), as_json=as_json)


def _begun(options: dict[str, Any]) -> SelfTest:
    from kit.engines.selftest_begin import begin
    from kit.stats.self_comparisons import UNSLOWED_FOR_BAND

    rounds = options.pop("launches")
    if 2 * rounds < UNSLOWED_FOR_BAND:
        least = UNSLOWED_FOR_BAND // 2
        click.echo(f"kit: with fewer than {least} rounds (--launches) no band of this host can be taken", err=True)
    running, data_note = begin(rounds=rounds, **options)
    if data_note:
        click.echo(f"kit: {data_note}", err=True)
    return running


def _resumed(path: Path) -> SelfTest:
    from kit.engines.selftest import SelfTest

    running = SelfTest.resume(path)
    say_damaged(running.damaged, "file", "run again")
    return running


def _conduct(running: SelfTest, *, as_json: bool) -> int:
    from kit.cli.progress import RunProgress
    from kit.compare.counted import counted
    from kit.engines.interrupts import heed_interrupts, interrupts_held_back
    from kit.profile.host_band import HostBandError, keep_band

    with interrupts_held_back():
        try:
            with RunProgress(running.expected, ended=len(running.finished)) as progress:
                running.conduct(progress)
            heed_interrupts()
        except KeyboardInterrupt:
            ended = len(running.finished)
            launches = counted(ended + sum(running.expected.values()), "launch")
            click.echo(
                f"kit: interrupted; {ended} of {launches} kept; "
                f"go on with `kit selftest --resume --out {running.path}`",
                err=True,
            )
            return EXIT_INTERRUPTED
    for launch in running.finished:
        if launch.failure is not None:
            click.echo(f"kit: failed: round {launch.round}: {launch.failure.in_words}", err=True)
    answer = running.answer()
    try:
        kept_in = None if answer.host_band is None else str(keep_band(answer.host_band))
    except HostBandError as error:
        _print(answer, as_json=as_json, kept_in=None)
        raise HostBandError(f"{error}, then `kit selftest --resume --out {running.path}` keeps it") from None
    _print(answer, as_json=as_json, kept_in=kept_in)
    click.echo(
        f"kit: launches kept in {running.path}; `kit selftest --from {running.path}` judges them again", err=True
    )
    return EXIT_FAILED_CELLS if running.failed else 0


def _print(answer: SelfTestAnswer, *, as_json: bool, kept_in: str | None) -> None:
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(answer).decode())
        return
    from kit.report.selftest_text import render
    from kit.report.terminal import wants_color

    click.echo(render(answer, kept_in=kept_in, color=wants_color(sys.stdout)).rstrip("\n"))
