"""`kit selftest`: a cell against itself and against planted slow-downs, here and now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kit.cli import EXIT_INTERRUPTED
from kit.cli.run import EXIT_FAILED_CELLS, SEED_MAX, measure


@click.command(short_help="Measure a cell against itself and against planted slow-downs.")
@click.option("--workload", default="mlp", show_default=True, metavar="NAME", help="Network to measure.")
@click.option("--backend", default="torch", show_default=True, metavar="NAME", help="Framework to measure.")
@click.option("--task", default="train", show_default=True, type=click.Choice(["train", "infer"]), help="Task.")
@click.option("--batch", type=click.IntRange(min=1), default=128, show_default=True, help="Samples per step.")
@click.option("--rounds", type=click.IntRange(min=2), default=8, show_default=True, metavar="N", help="Fresh starts.")
@click.option("--data", default="auto", show_default=True, metavar="NAME", help="auto, synthetic, or a data set.")
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=0, show_default=True, help="Of weights, data, order.")
@click.option("--out", metavar="PATH", help="Profile to write, or the folder to put it in.")
@click.option("--from", "path", type=click.Path(path_type=Path), help="Judge this self-test's profile again.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def selftest(*, path: Path | None, out: str | None, as_json: bool, **options: Any) -> int:  # noqa: ANN401
    """Measure one cell as two like members and with slow-downs of 1, 2, 3 and 5 % planted; say what was found."""
    import msgspec

    from kit.compare.planted import found_of
    from kit.profile.store import read_profile
    from kit.report.selftest import render_selftest

    code = 0
    if path is None:
        from kit.runner.output import profile_path
        from kit.runner.run import Run
        from kit.runner.selftest import SUITE_NAME, plan_selftest

        plan = plan_selftest(**options)
        running = Run.begin(profile_path(out, SUITE_NAME, plan.id, plan.created), plan)
        path = running.path
        again = f"`kit selftest --from {path}`"
        if measure(running, None) is None:
            click.echo(f"kit: then judge it with {again}", err=True)
            return EXIT_INTERRUPTED
        click.echo(f"kit: kept in {path}; {again} judges it again", err=True)
        code = EXIT_FAILED_CELLS if running.failed else 0
    found = found_of(read_profile(path))
    click.echo(msgspec.json.encode(found).decode() + "\n" if as_json else render_selftest(found), nl=False)
    return code
