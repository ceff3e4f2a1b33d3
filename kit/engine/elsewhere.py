"""A launch on another host's engine: no folder is shared, so files go into a volume there and come back from it.

this machine ── suite, programs, unfinished rounds ──► volume of the run ──► container ─┐
             ── data sets, once ─────────────────────► volume of data ─────► (read-only)│
             ◄─ profile, steps, or unfinished rounds ─ volume of the run ◄──────────────┘   then that volume goes

Where this process dies the volume stays, and the same command with --resume finds it again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from kit.engine.connection import EngineError, connect, engine_url
from kit.engine.contained import LABEL, explained
from kit.engine.devices import with_devices
from kit.engine.folders import DATA
from kit.engine.launched import Launch, attended, command_of, container_options, image_of
from kit.engine.options import Bind
from kit.engine.streamed import Stop, streamed
from kit.profile.unfinished import folder_of
from kit.workloads.data.files import data_folder

if TYPE_CHECKING:
    import docker

    from kit.engine.contained import Ended

PROFILES = PurePosixPath("/profiles")
DATA_VOLUME = "steadykit-data"
# The image's user is nobody here: whoever it is may go on with what was sent.
FOLDER_MODE, FILE_MODE = 0o777, 0o666


def host_label(url: str) -> str:
    """Return what a host is called in the names of its profiles: its name, or its socket's."""
    there = urlsplit(url)
    return there.hostname or Path(there.path).stem or "host"


def on_host(launch: Launch, hosts: Sequence[str]) -> dict[str, Launch]:
    """Return each host's launch: with a profile of its own, at a path that is the same there and here.

    Raises:
        EngineError: a path leads out of the working directory; or a profile is there already.
    """
    labels = [host_label(host) for host in hosts]
    if len({*labels}) < len(labels):
        labels = [f"{label}-{place + 1}" for place, label in enumerate(labels)]
    found = {}
    for host, label in zip(hosts, labels, strict=True):
        name = Path(launch.out or ".")
        if name.is_dir():
            name /= f"{launch.target.name}-{label}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
        elif len(hosts) > 1:
            name = name.with_stem(f"{name.stem}-{label}")
        for path in (name, *launch.files):
            if not (Path.cwd() / path).resolve().is_relative_to(Path.cwd().resolve()):
                raise EngineError(f"{path}: not below this folder; --host puts files at the same place there")
        for path in launch.files:
            if path.is_absolute():
                raise EngineError(f"{path}: an absolute path is not there on another host; give it relative to here")
        own = Path(os.path.relpath(name))
        if own.exists() and not launch.resume:
            raise EngineError(f"{own}: is there already; choose another --out, measured data is not overwritten")
        found[host] = launch._replace(out=str(own), arguments=(*_without_out(launch.arguments), "--out", str(own)))
    return found


def _without_out(arguments: Sequence[str]) -> list[str]:
    kept, following = [], False
    for word in arguments:
        if not (following or word == "--out" or word.startswith("--out=")):
            kept.append(word)
        following = word == "--out"
    return kept


def launch_there(launch: Launch, host: str, stop: Stop) -> Ended:
    """Run it on the engine at `host`, and bring home what it wrote.

    Args:
        launch: its `out` names the profile, relative to the working directory and below it, as do its files.
        host: of the engine.
        stop: set where an interrupt has come.

    Raises:
        EngineError: the engine does not answer, refuses or goes away; what was measured stays in its volume there.
    """
    assert launch.out is not None
    client = connect(host)
    image = image_of(client, engine_url(host), launch)
    volumes = _Volumes(client, image.digest)
    own = f"steadykit-{hashlib.sha256(f'{os.getuid()} {Path.cwd()} {launch.out}'.encode()).hexdigest()[:12]}"
    options = with_devices(client, launch.target.name, container_options(launch))
    has_data = data_folder().is_dir()
    if has_data and volumes.make(DATA_VOLUME):
        try:
            volumes.fill(DATA_VOLUME, DATA, data_folder(), [Path()])
        except EngineError:
            volumes.remove(DATA_VOLUME)
            raise
    rounds = folder_of(Path(launch.out))
    volumes.make(own)
    volumes.fill(own, PROFILES, Path.cwd(), [*launch.files, *([rounds] if rounds.is_dir() else [])])
    options = options._replace(
        environment=(*options.environment, ("KIT_COMMAND", command_of(launch, host))),
        cpuset=launch.limits.cpus,
        workdir=str(PROFILES),
        binds=(*([Bind(DATA_VOLUME, DATA)] if has_data else []), Bind(own, PROFILES, writable=True)),
    )
    try:
        ended = streamed(client, attended(options, image), stop)
    finally:
        still_there = volumes.bring_home(own, PROFILES, Path.cwd(), without=launch.files)
    if rounds not in still_there:
        shutil.rmtree(rounds, ignore_errors=True)
    volumes.remove(own)
    return ended


class _Volumes:
    """Volumes of an engine; files go in and out through a container that is never started."""

    def __init__(self, client: docker.DockerClient, image: str) -> None:
        self._client = client
        self._image = image

    def make(self, name: str) -> bool:
        """Return whether it was not there."""
        import docker

        try:
            self._client.volumes.get(name)
        except docker.errors.NotFound:
            self._client.volumes.create(name, labels={LABEL: "volume"})
            return True
        return False

    def fill(self, name: str, inside: PurePosixPath, root: Path, paths: Iterable[Path]) -> None:
        """Copy files and folders below `root` to the same places in the volume."""
        with tempfile.TemporaryFile() as packed, self._open(name, inside) as container:
            _pack(packed, root, paths)
            packed.seek(0)
            container.put_archive(str(inside), packed)

    def bring_home(self, name: str, inside: PurePosixPath, root: Path, without: Iterable[Path]) -> set[Path]:
        """Copy everything in the volume but `without` to the same places below `root`; return the paths."""
        found: set[Path] = set()
        with tempfile.TemporaryFile() as packed, self._open(name, inside) as container:
            for chunk in container.get_archive(str(inside))[0]:
                packed.write(chunk)
            packed.seek(0)
            with tarfile.open(fileobj=packed) as archive:
                for member in archive:
                    # The archive's own folder is the mount's.
                    path = Path(*PurePosixPath(member.name).parts[1:])
                    if path != Path() and path not in without:
                        archive.extract(member.replace(name=str(path), deep=False), root, filter="data")
                        found.add(path)
        return found

    def remove(self, name: str) -> None:
        """Remove it with what is in it."""
        self._client.volumes.get(name).remove()

    @contextmanager
    def _open(self, name: str, inside: PurePosixPath) -> Iterator[docker.models.containers.Container]:
        import docker

        mount = docker.types.Mount(str(inside), name, type="volume")
        try:
            container = self._client.containers.create(self._image, mounts=[mount], labels={LABEL: "files"})
            try:
                yield container
            finally:
                container.remove(force=True, v=True)
        except (docker.errors.DockerException, OSError) as error:
            raise EngineError(f"volume {name}: {explained(error)}") from None


def _pack(into: IO[bytes], root: Path, paths: Iterable[Path]) -> None:
    def anybodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
        return member.replace(mode=FOLDER_MODE if member.isdir() else FILE_MODE, deep=False)

    with tarfile.open(fileobj=into, mode="w", dereference=True) as archive:
        for path in paths:
            for parent in reversed(path.parents[:-1]):
                archive.add(root / parent, str(parent), recursive=False, filter=anybodys)
            archive.add(root / path, str(path), filter=anybodys)
