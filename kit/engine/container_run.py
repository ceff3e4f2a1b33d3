"""`kit run …` in a container of a target's image: its options, and one such run on this machine's engine.

ContainerRun ─► container options ─► with folders ─► with devices ─► supervised ─► streamed ─► how it ended
                                  └► the equal `docker run` line
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from kit.engine.connection import EngineError, connect
from kit.engine.devices import with_devices, with_devices_here
from kit.engine.folders import with_folders
from kit.engine.image import Image, find_or_build, need_image, target_image
from kit.engine.options import Bind, ContainerOptions
from kit.engine.stream import Stop, run_streamed

if TYPE_CHECKING:
    import docker

    from kit.engine.container import Ended

# The engine masks the kernel's own path to it in every container.
POWERCAP = Bind("/sys/devices/virtual/powercap", PurePosixPath("/powercap"))
# Settings that are this user's, not the machine's.
PASSED_ON = ("NO_COLOR", "KIT_PHASE_LIMIT_S")
# Between an interrupt and the end by force: a block ends, and what there is is written.
GRACE_S = 60


class Limits(NamedTuple):
    """What a container is given of the machine; null: all that there is."""

    cpus: int | None = None  # how many
    cpuset: str | None = None  # which: "0,1"
    memory: str | None = None
    gpus: str | None = None
    rapl: bool = False


class ContainerRun(NamedTuple):
    """What is to run where."""

    target: str  # cpu, gpu or tpu
    arguments: tuple[str, ...]  # of `kit run`
    out: str | None  # among them
    files: tuple[Path, ...]  # that they name
    image: str | None  # null: the target's
    limits: Limits
    may_exist: bool = False  # the profile may be there: the run resumes it, or replaces it


def run_here(run: ContainerRun, stop: Stop) -> Ended:
    """Run it on this machine's engine; its output to ours, an interrupt to it.

    Raises:
        EngineError: there is no engine, no image, no such device; or the engine refuses or goes away.
    """
    options = _options_here(run)
    client = connect()
    image = image_of(client, None, run)
    return run_streamed(client, supervised(with_devices(client, run.target, options), image), stop)


def as_line(run: ContainerRun) -> str:
    """Return the `docker run` line that does the same; the shell asks the engine for the image's digest."""
    options = with_devices_here(run.target, _options_here(run))
    image = shlex.quote(options.image)
    digest = f'"$(docker image inspect --format {{{{.Id}}}} {image})"'
    return options.as_line(more=f"--env KIT_IMAGE={image} --env KIT_IMAGE_DIGEST={digest}")


def image_of(client: docker.DockerClient, host: str | None, run: ContainerRun) -> Image:
    """Return the image that was asked for, or the target's, which is built where it is missing."""
    return need_image(client, run.image) if run.image else find_or_build(client, host, run.target)


def _options_here(run: ContainerRun) -> ContainerOptions:
    return with_folders(container_options(run, sorted(os.sched_getaffinity(0))), run.out, run.files)


def container_options(run: ContainerRun, usable: Sequence[int]) -> ContainerOptions:
    """Return the container that measures, as yet without folders and devices; `usable` are the CPUs there.

    Raises:
        EngineError: more CPUs are wanted than there are.
    """
    limits = run.limits
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment |= {"KIT_POWERCAP_ROOT": str(POWERCAP.inside)} if limits.rapl else {}
    return ContainerOptions(
        image=run.image or target_image(run.target),
        command=["run", *run.arguments],
        binds=(POWERCAP,) if limits.rapl else (),
        environment=(("KIT_COMMAND", command_of(run)), *environment.items()),
        cpuset=limits.cpuset or _cpuset(limits.cpus, usable),
        memory=limits.memory,
        gpus=(limits.gpus or "all") if run.target == "gpu" else None,
    )


def _cpuset(count: int | None, usable: Sequence[int]) -> str:
    """Return the first `count` of the usable CPUs, or all: whole ones, as a quota would throttle in bursts.

    Raises:
        EngineError: there are not so many.
    """
    if count is not None and count > len(usable):
        raise EngineError(f"--cpus {count}: only {len(usable)} can be used; give no more, or leave out --cpus")
    return ",".join(map(str, usable[:count]))


def command_of(run: ContainerRun, host: str | None = None) -> str:
    """Return what was typed but for the arguments of `kit run`: a resumed run needs the same."""
    limits = run.limits
    given = {"--host": host, "--image": run.image, "--cpus": limits.cpus, "--cpuset": limits.cpuset}
    given |= {"--memory": limits.memory, "--gpus": limits.gpus}
    words = [word for option, value in given.items() if value for word in (option, str(value))]
    return shlex.join(["kit", "launch", run.target, *words, *(["--rapl"] if limits.rapl else [])])


def supervised(options: ContainerOptions, image: Image) -> ContainerOptions:
    """Return the same with the supervisor as its first process, so that it ends when its client does."""
    environment = {"KIT_IMAGE": image.name, "KIT_IMAGE_DIGEST": image.digest}
    if sys.stderr.isatty() and sys.stdout.isatty():
        # What rich asks for in place of a terminal: the output goes to one.
        environment |= {"TTY_COMPATIBLE": "1", "COLUMNS": str(os.get_terminal_size(2).columns)}
    return options._replace(
        image=image.digest,
        entrypoint=("python3", "-m", "kit.worker.supervisor", "--grace", str(GRACE_S), *image.entrypoint),
        environment=(*options.environment, *environment.items()),
    )
