"""`kit launch`: `kit run …` in a container of a target's image, once on this machine's engine.

ContainerRun ─► ContainerOptions ─► as this engine gives them ─► supervised ─► its output to ours ─► how it ended
                                └► the equal `docker run` line

Folders are mounted at the same paths inside, so that what is given and printed is right.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kit.engine.connection import EngineError, connect, engine_for_line
from kit.engine.container import Bind, Container, ContainerEnd, ContainerOptions, for_kind, with_devices
from kit.engine.image import TARGET_IMAGE, find_or_build, need_image
from kit.environment import COMMAND, DATA, IMAGE, IMAGE_DIGEST, PHASE_LIMIT_S, POWERCAP_ROOT
from kit.import_order import module_command
from kit.workloads.datasets import data_folder

# The engine masks the kernel's own path to it in every container.
POWERCAP = Bind("/sys/devices/virtual/powercap", "/powercap")
# Settings that are this user's, not the machine's.
PASSED_ON = ("NO_COLOR", PHASE_LIMIT_S)
# Between an interrupt and the end by force: a block ends, and what there is is written.
GRACE_S = 60
LOOK_EVERY_S = 0.1
# Each is something else in the container, which could not run without it.
NOT_MOUNTED_AT = (
    "/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", "/usr/bin",
    "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/var",
)  # fmt: skip


class ContainerRun(NamedTuple):
    """What is to run where, and what it is given of the machine; null: all that there is."""

    target: str  # cpu, gpu or tpu
    words: tuple[str, ...] = ("run",)  # after `kit`
    out: str = ""  # the profile among them, or its folder; empty: the working directory
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


def run_here(run: ContainerRun, is_stopping: Callable[[], bool]) -> ContainerEnd:
    """Run it on this machine's engine, its output to ours and an interrupt to it.

    The supervisor is the first process, so that the container ends when its client does.

    Raises:
        EngineError: there is no engine, no image, no such device; or the engine refuses or goes away.
    """
    options = container_options(run)
    client = connect(run.engine)
    options = for_kind(client, options)
    image = need_image(client, run.image) if run.image else find_or_build(client, run.target)
    options = with_devices(client, run.target, options._replace(image=image.digest))
    environment = {**options.environment, IMAGE: image.name, IMAGE_DIGEST: image.digest}
    if sys.stderr.isatty() and sys.stdout.isatty():
        # These tell rich that its output goes to a terminal, and how wide that is.
        environment |= {"TTY_COMPATIBLE": "1", "COLUMNS": str(os.get_terminal_size(2).columns)}
    entrypoint = (*module_command("python3", "kit.worker.supervisor"), "--grace", str(GRACE_S), *image.entrypoint)
    with Container(client, options._replace(entrypoint=entrypoint, environment=environment)) as container:
        while (output := container.receive(LOOK_EVERY_S)) is not None:
            stream = sys.stderr if output.is_error else sys.stdout
            stream.buffer.write(output.data)
            stream.flush()
            if is_stopping():
                container.end_input()
        return container.wait()


def as_line(run: ContainerRun) -> str:
    """Return the `docker run` or `podman run` line that does the same; the shell asks for the image's digest."""
    engine = engine_for_line(run.engine)
    is_podman = engine == "podman"
    options = with_devices(None, run.target, container_options(run))
    options = options._replace(engine=engine, is_rootless=is_podman and os.getuid() != 0)
    image = shlex.quote(options.image)
    algorithm = "sha256:" if is_podman else ""  # which Docker names itself
    digest = f'"{algorithm}$({engine} image inspect --format {{{{.Id}}}} {image})"'
    return options.as_line(more=f"--env {IMAGE}={image} --env {IMAGE_DIGEST}={digest}")


def container_options(run: ContainerRun) -> ContainerOptions:
    """Return the container that measures, as yet without devices: it writes as this user, and into one folder alone.

    CPUs are whole ones, as a quota would throttle in bursts.

    Raises:
        EngineError: more CPUs are wanted than are usable; or the profile's folder is not there, cannot be written to,
            or cannot be mounted in a container.
    """
    usable = sorted(os.sched_getaffinity(0))
    if run.cpus is not None and run.cpus > len(usable):
        raise EngineError(f"--cpus {run.cpus}: only {len(usable)} are usable; give fewer, or leave out --cpus")
    # With its links: what was typed is to be found inside.
    target = Path(os.path.abspath(run.out or "."))  # noqa: PTH100
    folder = target if target.is_dir() else target.parent
    if not folder.is_dir():
        raise EngineError(f"{folder}: the folder does not exist; create it, or choose another --out")
    if not os.access(folder, os.W_OK):
        raise EngineError(f"{folder}: you cannot write to this folder; choose another --out")
    data, variables = data_bind()
    read = sorted({Path(os.path.abspath(file)).parent for file in run.files} - {folder})  # noqa: PTH100
    binds = [*data, *(Bind(str(path.resolve()), str(path)) for path in read)]
    binds.append(Bind(str(folder.resolve()), str(folder), writable=True))
    for bind in binds:
        if bind.inside in NOT_MOUNTED_AT:
            raise EngineError(f"{bind.inside}: a container has its own folder there; keep your files elsewhere")
        if not f"{bind.source}{bind.inside}".isprintable():
            raise EngineError(f"{bind.inside}: its name has a line break or a control character; rename the folder")
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    powercap = {POWERCAP_ROOT: POWERCAP.inside} if run.rapl else {}
    return ContainerOptions(
        image=run.image or TARGET_IMAGE.format(run.target),
        command=[*run.words],
        user=f"{os.getuid()}:{os.getgid()}",
        # The writable of two mounts at one path is the last.
        binds=(*([POWERCAP] if run.rapl else []), *{bind.inside: bind for bind in binds}.values()),
        environment={COMMAND: run.command(), **passed_on, **powercap, **variables},
        workdir=str(Path.cwd()),
        cpuset=run.cpuset or ",".join(map(str, usable[: run.cpus])),
        memory=run.memory,
        gpus=run.gpus,
    )


def data_bind() -> tuple[list[Bind], dict[str, str]]:
    """Return the mount of this user's data sets and the variable that names it; none where there are none."""
    folder = data_folder().absolute()
    return ([Bind(str(folder.resolve()), str(folder))], {DATA: str(folder)}) if folder.is_dir() else ([], {})
