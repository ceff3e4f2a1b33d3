"""`kit launch`: `kit run` in a target's image, on this machine's engine or on other hosts'."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kit.engine.contained import Ended
    from kit.engine.launched import Launch, Limits
    from kit.engine.target import Target


@click.command(
    short_help="Measure in a target's Docker image.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("target", type=click.Choice(["cpu", "gpu", "tpu"]))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SUITE] [OPTIONS OF kit run]")
@click.option("--host", "hosts", multiple=True, metavar="URL", help="An engine elsewhere: ssh://me@node (repeatable).")
@click.option("--image", metavar="NAME", help="Default: steadykit:TARGET, built where it is missing.")
@click.option("--cpus", metavar="0,1", help="Pin to these; default: all that this process may use.")
@click.option("--memory", metavar="8g", help="No more than this.")
@click.option("--gpus", metavar="0,1", help="These GPUs; default: all.")
@click.option("--rapl", is_flag=True, help="Mount the host's energy counters.")
@click.option("--print", "as_line", is_flag=True, help="Print the equal docker run line, and run nothing.")
def launch(
    *,
    target: str,
    arguments: tuple[str, ...],
    hosts: tuple[str, ...],
    as_line: bool,
    **options: Any,  # noqa: ANN401 - click's own
) -> int:
    """Run `kit run` in the image of TARGET, hardened; the profile lands here and is yours.

    Several --host gather a profile each, one host after the other, and compare them.
    """
    from kit.engine.launched import Limits
    from kit.engine.target import TARGETS

    asked = _launch(TARGETS[target], arguments, options.pop("image"), Limits(**options))
    if as_line and hosts:
        raise click.UsageError("--print shows a line for this machine; leave out --host")
    if as_line:
        from kit.engine.launched import as_line as line_of

        click.echo(line_of(asked))
        return 0
    return _there(asked, hosts) if hosts else _here(asked)


def _launch(target: Target, arguments: tuple[str, ...], image: str | None, limits: Limits) -> Launch:
    """Check the arguments as `kit run` does, and find the files among them."""
    from kit.cli.run import run
    from kit.engine.launched import Launch

    asked = run.make_context("kit launch", list(arguments)).params
    if asked["resume"] and not asked["out"]:
        raise click.UsageError("--resume needs --out PATH, the profile whose run was interrupted")
    own_device = asked["devices"] or asked["resume"] or target.name == "cpu"
    programs = [text if text.endswith(".py") else text.rpartition(":")[0] for text in asked["programs"]]
    return Launch(
        target=target,
        arguments=arguments if own_device else (*arguments, "--device", target.name),
        out=asked["out"],
        files=tuple(Path(name) for name in (asked["suite"] or "", *programs) if name.endswith((".toml", ".py"))),
        image=image,
        limits=limits,
        resume=asked["resume"],
    )


def _here(asked: Launch) -> int:
    from kit.engine.launched import launch_here
    from kit.runner.stop import StopFlag

    folder = Path(asked.out or ".")
    folder = folder if folder.is_dir() else folder.parent
    before = {*folder.glob("*.json")}
    stop = StopFlag()
    with stop.deferring_interrupts():
        ended = launch_here(asked, stop)
    return _checked(ended, {*folder.glob("*.json")} - before)


def _there(asked: Launch, hosts: tuple[str, ...]) -> int:
    """Measure on one host after the other, and compare what came of it."""
    from kit.cli.compare import compare
    from kit.engine.elsewhere import launch_there, on_host
    from kit.errors import KitError
    from kit.runner.stop import StopFlag

    codes, profiles, stop = [], [], StopFlag()
    for host, own in on_host(asked, hosts).items():
        if len(hosts) > 1:
            click.echo(f"kit: {host}", err=True)
        try:
            with stop.deferring_interrupts():
                ended = launch_there(own, host, stop)
        except KitError as error:
            click.echo(f"kit: {error}", err=True)
            codes.append(error.exit_code)
            continue
        out = Path(own.out or "")
        codes.append(_checked(ended, {out} if out.is_file() else set()))
        profiles += [out] if out.is_file() else []
        if stop.requested:
            break
    if len(profiles) > 1 and not stop.requested:
        compare.main([str(path) for path in profiles], standalone_mode=False)
    return max(codes, default=0)


def _checked(ended: Ended, profiles: set[Path]) -> int:
    """Return the exit status, what came of it read and proved; say where the kernel ended it for want of memory."""
    from kit.profile.store import read_profile

    for path in profiles:
        read_profile(path)
    if ended.out_of_memory and ended.status:
        click.echo(
            "kit: the kernel killed a process of the container for want of memory; give more by --memory", err=True
        )
    return ended.status
