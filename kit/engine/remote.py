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
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kit.engine.connection import EngineError, connect
from kit.engine.container_options import Bind
from kit.engine.container_run import ContainerRun, container_options, image_of, run_in
from kit.engine.devices import with_devices
from kit.engine.kind import for_kind
from kit.engine.volumes import Volume
from kit.profile.steps import SUFFIX
from kit.profile.unfinished import folder_of
from kit.resume_command import resuming
from kit.workloads.data.files import data_folder

if TYPE_CHECKING:
    from kit.engine.container import Ended

# Where images expect them.
PROFILES, DATA = "/profiles", "/data"
DATA_VOLUME = "steadykit-data"


def for_hosts(run: ContainerRun, hosts: Sequence[str]) -> list[ContainerRun]:
    """Return the run of each host: with a profile of its own, at a path that is the same there and here.

    Raises:
        EngineError: a path leads out of the working directory; or a profile is there already.
    """
    addresses = [urlsplit(host) for host in hosts]
    labels = [there.hostname or Path(there.path).stem or "host" for there in addresses]
    if len({*labels}) < len(labels):
        labels = [f"{label}-{place + 1}" for place, label in enumerate(labels)]
    runs = []
    for host, label in zip(hosts, labels, strict=True):
        name = Path(run.out or ".")
        if name.is_dir():
            name /= f"{run.target}-{label}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
        elif len(hosts) > 1:
            name = name.with_stem(f"{name.stem}-{label}")
        for path in (name, *run.files):
            if not path.resolve().is_relative_to(Path.cwd().resolve()):
                raise EngineError(f"{path}: not below this folder; --host puts files at the same place there")
        for path in run.files:
            if path.is_absolute():
                raise EngineError(f"{path}: an absolute path is not there on another host; give it relative to here")
        out = os.path.relpath(name)
        if Path(out).exists() and not run.may_exist:
            raise EngineError(f"{out}: is there already; choose another --out, or replace it with --force")
        # Of an option that is given twice, the later counts.
        runs.append(run._replace(host=host, out=out, arguments=(*run.arguments, "--out", out)))
    return runs


def run_remote(run: ContainerRun, is_stopping: Callable[[], bool]) -> Ended:
    """Run it on its host's engine, and bring home what it wrote; `run` is one of `for_hosts`.

    Raises:
        EngineError: the engine does not answer, refuses or goes away; what was measured stays in its volume there.
    """
    assert run.out is not None
    client = connect(run.host)
    options = for_kind(client, container_options(run, range(client.info()["NCPU"])))
    image = image_of(client, run)
    options = options._replace(image=image.digest)
    # Before anything is copied there.
    options = with_devices(client, run.target, options)
    binds = list(options.binds)
    if data_folder().is_dir():
        data = Volume(client, image.digest, DATA_VOLUME, DATA)
        if data.is_new:
            try:
                data.fill(data_folder(), [Path()])
            except EngineError:
                data.remove()
                raise
        binds.append(Bind(DATA_VOLUME, DATA))
    profile, rounds = Path(run.out), folder_of(Path(run.out))
    name = f"steadykit-{hashlib.sha256(f'{os.getuid()} {Path.cwd()} {run.out}'.encode()).hexdigest()[:12]}"
    volume = Volume(client, image.digest, name, PROFILES)
    volume.fill(Path.cwd(), [*run.files, profile, rounds])
    options = options._replace(
        cpuset=options.cpuset if run.cpus else run.cpuset,
        workdir=PROFILES,
        binds=(*binds, Bind(name, PROFILES, writable=True)),
    )
    try:
        ended = run_in(client, image, options, is_stopping)
    except EngineError as error:
        try:
            _bring_home(volume, profile)
        except EngineError:
            pass  # it stays in its volume
        else:
            if not rounds.is_dir():
                raise error from None
        raise EngineError(f"{error}; `{resuming(run.out, run.command())}` resumes it") from None
    _bring_home(volume, profile)
    return ended


def _bring_home(volume: Volume, profile: Path) -> None:
    """Copy the profile, its steps and its unfinished rounds here, and remove the volume."""
    rounds = folder_of(profile)

    def is_steps(path: Path) -> bool:
        return path.name.startswith(f"{profile.name}.") and path.name.endswith(SUFFIX) and path.parent == profile.parent

    names = volume.bring_home(Path.cwd(), lambda path: path == profile or path.parent == rounds or is_steps(path))
    if not any(path.parent == rounds for path in names):
        shutil.rmtree(rounds, ignore_errors=True)
    if any(is_steps(path) for path in names):
        for old in {path for path in profile.parent.iterdir() if is_steps(path)} - names:
            old.unlink()
    volume.remove()
