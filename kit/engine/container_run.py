"""`kit run …` in a container of a target's image: its options, and one such run on this machine's engine.

ContainerRun ─► container options ─► with folders ─► supervised ─► with devices ─► streamed ─► how it ended
                                  └► the equal `docker run` line
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kit.engine.connection import EngineError, connect, engine_for_line
from kit.engine.container import run_streamed
from kit.engine.container_options import Bind, ContainerOptions
from kit.engine.devices import with_devices
from kit.engine.folders import with_folders
from kit.engine.image import TARGET_IMAGE, Image, find_or_build, need_image
from kit.engine.kind import for_kind
from kit.environment import COMMAND, IMAGE, IMAGE_DIGEST, PHASE_LIMIT_S, POWERCAP_ROOT

if TYPE_CHECKING:
    import docker

    from kit.engine.container import Ended

# The engine masks the kernel's own path to it in every container.
POWERCAP = Bind("/sys/devices/virtual/powercap", "/powercap")
# Settings that are this user's, not the machine's.
PASSED_ON = ("NO_COLOR", PHASE_LIMIT_S)
# Between an interrupt and the end by force: a block ends, and what there is is written.
GRACE_S = 60


class ContainerRun(NamedTuple):
    """What is to run where, and what it is given of the machine; null: all that there is."""

    target: str  # cpu, gpu or tpu
    words: tuple[str, ...] = ("run",)  # after `kit`
    out: str = ""  # among them
    files: tuple[Path, ...] = ()  # that they name
    engine: str | None = None  # null: KIT_ENGINE's, else the one that is there
    image: str | None = None  # null: the target's
    cpus: int | None = None  # how many
    cpuset: str | None = None  # which: "0,1"
    memory: str | None = None
    gpus: str | None = None
    rapl: bool = False

    def command(self) -> str:
        """Return what was typed but for the options of `kit run`: a resumed run needs the same."""
        given = {"--engine": self.engine, "--image": self.image, "--cpus": self.cpus}
        given |= {"--cpuset": self.cpuset, "--memory": self.memory, "--gpus": self.gpus}
        words = [word for option, value in given.items() if value for word in (option, str(value))]
        return shlex.join(["kit", "launch", self.target, *words, *(["--rapl"] if self.rapl else [])])


def run_here(run: ContainerRun, is_stopping: Callable[[], bool]) -> Ended:
    """Run it on this machine's engine; its output to ours, an interrupt to it.

    Raises:
        EngineError: there is no engine, no image, no such device; or the engine refuses or goes away.
    """
    options = _options_here(run)
    client = connect(run.engine)
    options = for_kind(client, options)
    image = image_of(client, run)
    return run_in(client, image, with_devices(client, run.target, options._replace(image=image.digest)), is_stopping)


def run_in(
    client: docker.DockerClient, image: Image, options: ContainerOptions, is_stopping: Callable[[], bool]
) -> Ended:
    """Run a container of an image on an engine, the supervisor as its first process: it ends when its client does."""
    environment = {**options.environment, IMAGE: image.name, IMAGE_DIGEST: image.digest}
    if sys.stderr.isatty() and sys.stdout.isatty():
        # What rich asks for in place of a terminal: the output goes to one.
        environment |= {"TTY_COMPATIBLE": "1", "COLUMNS": str(os.get_terminal_size(2).columns)}
    entrypoint = ("python3", "-m", "kit.worker.supervisor", "--grace", str(GRACE_S), *image.entrypoint)
    options = options._replace(entrypoint=entrypoint, environment=environment)
    return run_streamed(client, options, is_stopping)


def as_line(run: ContainerRun) -> str:
    """Return the `docker run` or `podman run` line that does the same; the shell asks for the image's digest."""
    engine = engine_for_line(run.engine)
    is_podman = engine == "podman"
    options = with_devices(None, run.target, _options_here(run))
    options = options._replace(engine=engine, is_rootless=is_podman and os.getuid() != 0)
    image = shlex.quote(options.image)
    algorithm = "sha256:" if is_podman else ""  # which Docker names itself
    digest = f'"{algorithm}$({engine} image inspect --format {{{{.Id}}}} {image})"'
    return options.as_line(more=f"--env {IMAGE}={image} --env {IMAGE_DIGEST}={digest}")


def image_of(client: docker.DockerClient, run: ContainerRun) -> Image:
    """Return the image that was asked for, or the target's, which is built where it is missing."""
    return need_image(client, run.image) if run.image else find_or_build(client, run.target)


def _options_here(run: ContainerRun) -> ContainerOptions:
    return with_folders(container_options(run, sorted(os.sched_getaffinity(0))), run.out, run.files)


def container_options(run: ContainerRun, usable: Sequence[int]) -> ContainerOptions:
    """Return the container that measures, as yet without folders and devices; `usable` are the CPUs there.

    CPUs are whole ones, as a quota would throttle in bursts.

    Raises:
        EngineError: more CPUs are wanted than there are.
    """
    if run.cpus is not None and run.cpus > len(usable):
        raise EngineError(f"--cpus {run.cpus}: only {len(usable)} are usable; give fewer, or leave out --cpus")
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment |= {POWERCAP_ROOT: POWERCAP.inside} if run.rapl else {}
    return ContainerOptions(
        image=run.image or TARGET_IMAGE.format(run.target),
        command=[*run.words],
        binds=(POWERCAP,) if run.rapl else (),
        environment={COMMAND: run.command(), **environment},
        cpuset=run.cpuset or ",".join(map(str, usable[: run.cpus])),
        memory=run.memory,
        gpus=run.gpus,
    )
