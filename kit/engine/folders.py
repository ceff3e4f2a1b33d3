"""The folders of a launch on this machine: mounted at the same paths inside, so what is given and printed is right."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from kit.engine.connection import EngineError
from kit.engine.container_options import Bind, ContainerOptions
from kit.environment import DATA
from kit.workloads.data.files import data_folder

# Each is something else in the container, which could not run without it.
NOT_MOUNTED_AT = (
    "/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", "/usr/bin",
    "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/var",
)  # fmt: skip


def with_folders(options: ContainerOptions, out: str, files: Iterable[Path]) -> ContainerOptions:
    """Return the options of a container that writes as this user, and into the profile's folder alone.

    Args:
        options: as yet without folders.
        out: the profile, or its folder; empty: the working directory.
        files: that are read.

    Raises:
        EngineError: the folder of `out` is not there, cannot be written to, or has no place in a container.
    """
    target = Path(os.path.abspath(out or "."))  # noqa: PTH100 - with its links: what was typed is to be found inside
    folder = target if target.is_dir() else target.parent
    if not folder.is_dir():
        raise EngineError(f"{folder}: the folder does not exist; create it, or choose another --out")
    if not os.access(folder, os.W_OK):
        raise EngineError(f"{folder}: you cannot write to this folder; choose another --out")
    data, variables = data_bind()
    read = sorted({Path(os.path.abspath(file)).parent for file in files} - {folder})  # noqa: PTH100
    binds = [*data, *map(_at_same_path, read), _at_same_path(folder, writable=True)]
    for bind in binds:
        if bind.inside in NOT_MOUNTED_AT:
            raise EngineError(f"{bind.inside}: a container has its own folder there; keep your files elsewhere")
    return options._replace(
        user=f"{os.getuid()}:{os.getgid()}",
        workdir=str(Path.cwd()),
        # Of two mounts at one path, the writable.
        binds=(*options.binds, *{bind.inside: bind for bind in binds}.values()),
        environment={**options.environment, **variables},
    )


def data_bind() -> tuple[list[Bind], dict[str, str]]:
    """Return the mount of this user's data sets and the variable that names it; none where there are none."""
    folder = data_folder().absolute()
    return ([_at_same_path(folder)], {DATA: str(folder)}) if folder.is_dir() else ([], {})


def _at_same_path(folder: Path, *, writable: bool = False) -> Bind:
    return Bind(str(folder.resolve()), str(folder), writable)
