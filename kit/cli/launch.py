"""`kit launch`: `kit run` in a target's image."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from kit.cli.options import say
from kit.devices.catalog import DEVICES
from kit.extras import need

if TYPE_CHECKING:
    from kit.engine.launch import ContainerRun

# This word in place of a suite checks the target's devices.
SELFTEST = "selftest"
# What options of text may be, and what is right: the engine's own words for what is wrong with them name no option.
FORMS = {
    "cpus": (r"[1-9]\d*", "a number, such as 4; --cpuset chooses which, such as 0,1"),
    "cpuset": (r"\d+(-\d+)?(,\d+(-\d+)?)*", "CPUs, such as 0,1 or 0-3"),
    "memory": (r"\d+[bkmgBKMG]?", "a size, such as 8g"),
    "gpus": (r"\d+(,\d+)*", "indices, such as 0,1"),
    # Without a dash in front, which the printed line would take for an option.
    "image": (r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*", "an image's name or digest, such as steadykit:cpu"),
}
CPUS_HELP = "Pin to N whole CPUs, without a quota, which would throttle. Default: all that this process may use."


def _formed(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    form, right = FORMS[option.name or ""]
    if value is not None and not re.fullmatch(form, value):
        raise click.BadParameter(f"{value!r}; give {right}")
    return value


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("target", type=click.Choice(list(DEVICES)))
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

    All options of `kit run` may follow, also --out and --resume. For other machines see docs/how-to/cluster.md.

    `kit launch gpu selftest` runs `kit selftest --device gpu` in the container.
    """
    need("docker", "containers")
    from kit.engine.connection import EngineError
    from kit.engine.launch import as_line as line_of
    from kit.engine.launch import run_here
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
    from kit.engine.launch import ContainerRun
    from kit.suites.suite import load_suite
    from kit.workloads.data.dataset import data_folder

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
        request = replace(request, devices=(target,))
    return ContainerRun(target, ("run", *request.to_argv()), request.out, tuple(request.files))


def _unfinished(out: str) -> dict[Path, int]:
    """Return the folders of unfinished runs at `out`, each with when it was last written."""
    from kit.profile.unfinished import SUFFIX, folder_of

    path = Path(out or ".")
    folders = path.glob(f"*.json{SUFFIX}") if path.is_dir() else [folder_of(path)]
    return {folder: folder.stat().st_mtime_ns for folder in folders if folder.exists()}
