"""The folders of a launch on this machine: mounted at the same paths inside, so what is given and printed is right."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from kit.engine.connection import EngineError
from kit.engine.options import Bind, ContainerOptions
from kit.workloads.data.files import data_folder

# Where images look for data sets.
DATA = PurePosixPath("/data")


def with_folders(options: ContainerOptions, out: str | None, files: Iterable[Path]) -> ContainerOptions:
    """Return the options of a container that writes as this user, and into the profile's folder alone.

    Args:
        options: as yet without folders.
        out: the profile, or its folder; null: the working directory.
        files: that are read, relative to the working directory or absolute.

    Raises:
        EngineError: the folder of `out` is not there, or cannot be written to.
    """
    here = Path.cwd()
    target = here / (out or ".")
    folder = (target if target.is_dir() else target.parent).resolve()
    if not folder.is_dir():
        raise EngineError(f"{folder}: no such folder; create it, or choose another --out")
    if not os.access(folder, os.W_OK):
        raise EngineError(f"{folder}: not writable by you; choose another --out")
    read = sorted({(here / file).resolve().parent for file in files} - {folder})
    return options._replace(
        user=f"{os.getuid()}:{os.getgid()}",
        workdir=str(here),
        binds=(
            *options.binds,
            *data_bind(),
            *(Bind(str(one), PurePosixPath(one)) for one in read),
            Bind(str(folder), PurePosixPath(folder), writable=True),
        ),
    )


def data_bind() -> tuple[Bind, ...]:
    """Return the mount of this user's data sets; none where there are none."""
    folder = data_folder()
    return (Bind(str(folder.resolve()), DATA),) if folder.is_dir() else ()
