"""A container run on another host's engine: no folder is shared, so files go into a volume there and come back from it.

this machine ── suite, programs, unfinished rounds ──► volume of the run ──► container ─┐
             ── data sets, once ─────────────────────► volume of data ─────► (read-only)│
             ◄─ profile, steps, or unfinished rounds ─ volume of the run ◄──────────────┘   then that volume goes

Where this process dies the volume stays, and the same command with --resume finds it again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kit.engine.connection import EngineError, connect
from kit.engine.container_run import ContainerRun, command_of, container_options, image_of, supervised
from kit.engine.devices import with_devices
from kit.engine.options import Bind
from kit.engine.stream import Stop, run_streamed
from kit.engine.volumes import Volumes
from kit.profile.steps import SUFFIX
from kit.profile.unfinished import folder_of
from kit.resume_command import resuming
from kit.workloads.data.files import data_folder

if TYPE_CHECKING:
    from kit.engine.container import Ended

# Where images expect them.
PROFILES, DATA = PurePosixPath("/profiles"), PurePosixPath("/data")
DATA_VOLUME = "steadykit-data"


def host_label(url: str) -> str:
    """Return what a host is called in the names of its profiles: its name, or its socket's."""
    there = urlsplit(url)
    return there.hostname or Path(there.path).stem or "host"


def for_hosts(run: ContainerRun, hosts: Sequence[str]) -> list[tuple[str, ContainerRun]]:
    """Return each host and its run: with a profile of its own, at a path that is the same there and here.

    Raises:
        EngineError: a path leads out of the working directory; or a profile is there already.
    """
    labels = [host_label(host) for host in hosts]
    if len({*labels}) < len(labels):
        labels = [f"{label}-{place + 1}" for place, label in enumerate(labels)]
    files = []
    for host, label in zip(hosts, labels, strict=True):
        name = Path(run.out or ".")
        if name.is_dir():
            name /= f"{run.target}-{label}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
        elif len(hosts) > 1:
            name = name.with_stem(f"{name.stem}-{label}")
        for path in (name, *run.files):
            if not (Path.cwd() / path).resolve().is_relative_to(Path.cwd().resolve()):
                raise EngineError(f"{path}: not below this folder; --host puts files at the same place there")
        for path in run.files:
            if path.is_absolute():
                raise EngineError(f"{path}: an absolute path is not there on another host; give it relative to here")
        relative = Path(os.path.relpath(name))
        if relative.exists() and not run.may_exist:
            raise EngineError(f"{relative}: is there already; choose another --out, or replace it with --force")
        files.append(
            (host, run._replace(out=str(relative), arguments=(*_without_out(run.arguments), "--out", str(relative))))
        )
    return files


def _without_out(arguments: Iterable[str]) -> list[str]:
    kept, following = [], False
    for word in arguments:
        if not (following or word == "--out" or word.startswith("--out=")):
            kept.append(word)
        following = word == "--out"
    return kept


def run_remote(run: ContainerRun, host: str, stop: Stop) -> Ended:
    """Run it on the engine at `host`, and bring home what it wrote.

    Args:
        run: its `out` names the profile, relative to the working directory and below it, as do its files.
        host: of the engine.
        stop: set where an interrupt has come.

    Raises:
        EngineError: the engine does not answer, refuses or goes away; what was measured stays in its volume there.
    """
    assert run.out is not None
    client = connect(host)
    image = image_of(client, host, run)
    volumes = Volumes(client, image.digest)
    volume_name = f"steadykit-{hashlib.sha256(f'{os.getuid()} {Path.cwd()} {run.out}'.encode()).hexdigest()[:12]}"
    options = with_devices(client, run.target, container_options(run, range(client.info()["NCPU"])))
    has_data = data_folder().is_dir()
    if has_data and volumes.make(DATA_VOLUME):
        try:
            volumes.fill(DATA_VOLUME, DATA, data_folder(), [Path()])
        except EngineError:
            volumes.remove(DATA_VOLUME)
            raise
    profile, rounds = Path(run.out), folder_of(Path(run.out))
    volumes.make(volume_name)
    there = [path for path in (profile, rounds) if path.exists()]
    volumes.fill(volume_name, PROFILES, Path.cwd(), [*run.files, *there], empty=[profile.parent])
    command = command_of(run, host)
    data = [Bind(DATA_VOLUME, DATA)] if has_data else []
    options = options._replace(
        environment=(*options.environment, ("KIT_COMMAND", command)),
        cpuset=options.cpuset if run.limits.cpus else run.limits.cpuset,
        workdir=str(PROFILES),
        binds=(*options.binds, *data, Bind(volume_name, PROFILES, writable=True)),
    )
    try:
        ended = run_streamed(client, supervised(options, image), stop)
    except EngineError as error:
        with suppress(EngineError):
            _bring_home(volumes, volume_name, profile)
            if not rounds.is_dir():
                raise error from None
        raise EngineError(f"{error}; `{resuming(run.out, command)}` resumes it") from None
    _bring_home(volumes, volume_name, profile)
    return ended


def _bring_home(volumes: Volumes, volume_name: str, profile: Path) -> None:
    """Copy the profile, its steps and its unfinished rounds here, and remove the volume."""
    rounds = folder_of(profile)

    def is_steps(path: Path) -> bool:
        return path.name.startswith(f"{profile.name}.") and path.name.endswith(SUFFIX) and path.parent == profile.parent

    names = volumes.bring_home(
        volume_name, PROFILES, Path.cwd(), lambda path: path == profile or path.parent == rounds or is_steps(path)
    )
    if not any(path.parent == rounds for path in names):
        shutil.rmtree(rounds, ignore_errors=True)
    if any(is_steps(path) for path in names):
        for old in {path for path in profile.parent.iterdir() if is_steps(path)} - names:
            old.unlink()
    volumes.remove(volume_name)
