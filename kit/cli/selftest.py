"""`kit selftest`: the suite selftest, one cell against itself and against injected delays, here and now."""

from __future__ import annotations

from pathlib import Path

import click

from kit.cli import EXIT_INTERRUPTED
from kit.cli.compare import profile_comparison
from kit.cli.options import PROFILE, format_options, print_report
from kit.cli.run import EXIT_FAILED_CELLS, SEED_MAX, begin, measure, run


@click.command(short_help="Measure a cell against itself and against injected delays.")
@click.option("--workload", default="mlp", show_default=True, metavar="NAME", help="Network to measure.")
@click.option("--backend", default="torch", show_default=True, metavar="NAME", help="Framework to measure.")
@click.option("--task", default="train", show_default=True, type=click.Choice(["train", "infer"]), help="Task.")
@click.option("--batch", type=click.IntRange(min=1), default=128, show_default=True, help="Samples per step.")
@click.option("--rounds", type=click.IntRange(min=2), default=8, show_default=True, metavar="N", help="Fresh starts.")
@click.option("--data", default="auto", show_default=True, metavar="NAME", help="auto, synthetic, or a data set.")
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=0, show_default=True, help="Random seed.")
@click.option("--out", metavar="PATH", help="Profile to write, or the folder to put it in.")
@click.option("--from", "path", type=PROFILE, help="Judge this self-test's profile again.")
@format_options
def selftest(*, path: Path | None, format_name: str, **options: object) -> int:
    """Measure one cell as two like members and with injected delays of 1, 2, 3 and 5 %; say which were found."""
    from kit.profile.store import read_profile

    code = 0
    if path is not None and not any(variant.slowdown_pct for variant in read_profile(path).suite.variants):
        raise click.UsageError(f"{path}: nothing was injected; give a profile that `kit selftest` wrote")
    if path is None:
        given = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
        with run.make_context("run", ["selftest", *given]) as context:
            running = begin(context.params)
            if measure(running, None) is None:
                return EXIT_INTERRUPTED
        path, code = running.path, EXIT_FAILED_CELLS if running.failed else 0
        click.echo(f"kit: kept in {path}; `kit selftest --from {path}` judges it again", err=True)
    print_report(profile_comparison(path), format_name)
    return code
