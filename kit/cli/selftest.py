"""`kit selftest`: one cell against itself and against injected delays; with `--device`, the first hour on hardware."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kit.cli import EXIT_INTERRUPTED
from kit.cli.compare import profile_comparison
from kit.cli.options import DATA, PROFILE, format_options, print_report
from kit.cli.run import EXIT_FAILED_CELLS, SEED_MAX, begin, measure, plan_run
from kit.devices.catalog import DEVICES
from kit.suites.request import RunRequest

HOST = "cpu"


@click.command
@click.option("--workload", default="mlp", show_default=True, metavar="NAME", help="Network to measure.")
@click.option("--backend", metavar="NAME", help="Framework to measure  [torch; with --device: all].")
@click.option("--device", type=click.Choice(list(DEVICES)), help="Check this kind of device, its sensors and clocks.")
@click.option(
    "--task", default="train", show_default=True, type=click.Choice(["train", "infer"]), help="Task to measure."
)
@click.option("--batch", type=click.IntRange(min=1), default=128, show_default=True, help="Samples per step.")
@click.option(
    "--rounds", type=click.IntRange(min=2), default=8, show_default=True, metavar="N", help="Rounds to measure."
)
@DATA
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=0, show_default=True, help="Random seed.")
@click.option("--out", default="", metavar="PATH", help="Write the profile to this file or folder.")
@click.option("--from", "path", type=PROFILE, help="Judge the profile of an earlier self-test; measure nothing.")
@format_options
def selftest(*, path: Path | None, device: str | None, format_name: str, **options: Any) -> int:  # noqa: ANN401
    """Measure one cell against itself and against injected delays of 1, 2, 3 and 5 %, and report which are detected.

    With --device gpu or tpu: check the devices, sensors, waits, clocks, memory, joules and parity, in at most 20
    minutes. The result is a table and a JSON file that you can send (docs/trust/tested-on.md).
    """
    from kit.profile.store import read_profile

    if device not in (None, HOST):
        if path is not None:
            raise click.UsageError("--from judges a self-test of delays; leave out --device")
        _refuse_of_members(click.get_current_context())
        return _first_hour(device, options["backend"], options["data"], options["out"], format_name)
    options["backend"] = options["backend"] or "torch"

    code = 0
    if path is not None and not any(variant.slowdown_pct for variant in read_profile(path).suite.variants):
        raise click.UsageError(f"{path}: this run injected no delay; give a profile that `kit selftest` wrote")
    if path is None:
        request = RunRequest(
            suite="selftest",
            workloads=(options["workload"],),
            backends=(options["backend"],),
            tasks=(options["task"],),
            batches=(options["batch"],),
            rounds=options["rounds"],
            data=options["data"],
            seed=options["seed"],
            out=options["out"],
        )
        running = begin(request)
        if measure(running, request) is None:
            return EXIT_INTERRUPTED
        path, code = running.path, EXIT_FAILED_CELLS if running.failed else 0
        click.echo(f"kit: saved {path}; `kit selftest --from {shlex.quote(str(path))}` prints this again", err=True)
    print_report(profile_comparison(path), format_name)
    return code


def _refuse_of_members(context: click.Context) -> None:
    """Refuse what only the self-test of members takes."""
    for name in ("workload", "task", "batch", "rounds", "seed"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} does not go with --device, whose checks are fixed; leave it out")


def _first_hour(device: str, backend: str | None, data: str, out: str, format_name: str) -> int:
    """Check a kind of device; return 0, 1 where a check failed, 130 where it was interrupted."""
    import msgspec

    from kit.profile.store import write_atomically
    from kit.report.selftest import hardware_report
    from kit.runner.hardware.first_hour import FirstHour, first_hour
    from kit.runner.hardware.trial import Bench
    from kit.runner.interrupt import StopFlag
    from kit.workloads.catalog import WORKLOADS

    request = RunRequest(
        suite="quick",
        devices=(device,),
        tasks=("train",),
        workloads=tuple(WORKLOADS),
        backends=(backend,) if backend else (),
        rounds=1,
        data=data,
    )
    plan = plan_run(request)
    usual = f"hardware-{device}-{plan.created.replace(':', '')[:17]}.json"
    written = Path(out) / usual if Path(out or ".").is_dir() else Path(out)
    if written.exists():
        raise click.UsageError(f"--out {written}: this file exists; choose another")
    stop = StopFlag()
    boards = DEVICES[device].states()
    bench = Bench(plan, stop, boards, lambda what: click.echo(f"kit: {what}", err=True))

    def keep(so_far: FirstHour) -> None:
        write_atomically(written, msgspec.json.format(msgspec.json.encode(so_far), indent=1))

    with stop.deferring_interrupts():
        record = first_hour(bench, device, keep)
    print_report(hardware_report(record), format_name)
    click.echo(f"kit: saved {written}; docs/trust/tested-on.md says how to send it", err=True)
    if record.interrupted:
        return EXIT_INTERRUPTED
    return int(any(check.status == "fail" for check in record.checks))
