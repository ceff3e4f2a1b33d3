"""`kit selftest`: one cell against itself and against injected delays; with `--device`, the first hour on a device."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kit.cli import EXIT_INTERRUPTED
from kit.cli.compare import profile_comparison
from kit.cli.options import DATA, PROFILE, format_options, print_report, say
from kit.cli.run import EXIT_FAILED_CELLS, SEED_MAX, begin, measure
from kit.devices import DEVICES
from kit.suites.request import RunRequest

if TYPE_CHECKING:
    from kit.runner.running import RunUnderWay

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

    With --device gpu or tpu: check the devices, sensors, waits, clocks, memory, joules and parity, in about 20
    minutes. The result is a table, and a profile that you can send (docs/trust/tested-on.md).
    """
    from kit.audit.first_hour import SUITE, first_hour
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
    from msgspec.structs import replace

    from kit.audit.first_hour import SUITE
    from kit.runner.interrupt import StopFlag
    from kit.runner.prepare import plan_run
    from kit.runner.response import sensor_responses
    from kit.runner.running import RunUnderWay, profile_path

    context = click.get_current_context()
    for name in ("workload", "task", "batch", "rounds", "seed"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} does not go with --device, whose checks are fixed; leave it out")
    # The suite itself names a GPU, and the CPU for its parity.
    devices = () if device == "gpu" else (device,)
    request = RunRequest(suite=SUITE, devices=devices, backends=(backend,) if backend else (), data=data, out=out)
    plan, stop = plan_run(request, say), StopFlag()
    path = profile_path(out, f"hardware-{device}", plan.id, plan.created)
    say(f"loading the {device}, to see how its sensors respond")
    with stop.deferring_interrupts():
        try:
            return request, RunUnderWay.begin(path, replace(plan, responses=sensor_responses(plan, stop)))
        except KeyboardInterrupt:
            return request, None
