"""A volume of an engine that shares no folder with this machine; files go in and out through a container that is never
started.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from kit.engine.connection import EngineError
from kit.engine.container import LABEL, explained

if TYPE_CHECKING:
    import docker

# The image's user is nobody here: whoever it is may go on with what was sent.
FOLDER_MODE, FILE_MODE = 0o777, 0o666


class Volume:
    """A volume, made where it is missing.

    Args:
        client: of the engine.
        image: any that the engine has.
        name: of the volume.
        inside: where containers have it.
    """

    def __init__(self, client: docker.DockerClient, image: str, name: str, inside: str) -> None:
        import docker

        self._client, self._image, self._name, self._inside = client, image, name, inside
        self.is_new = False
        try:
            self._client.volumes.get(name)
        except docker.errors.NotFound:
            self._client.volumes.create(name, labels={LABEL: "volume"})
            self.is_new = True

    def fill(self, root: Path, paths: Iterable[Path]) -> None:
        """Copy files and folders below `root` to the same places in it; of what is not there, its parent folders."""
        with tempfile.TemporaryFile() as packed, self._open() as container:
            with tarfile.open(fileobj=packed, mode="w", dereference=True) as archive:
                for path in paths:
                    for folder in reversed(path.parents):
                        archive.add(root / folder, str(folder), recursive=False, filter=_for_anybody)
                    if (root / path).exists():
                        archive.add(root / path, str(path), filter=_for_anybody)
            packed.seek(0)
            container.put_archive(self._inside, packed)

    def bring_home(self, root: Path, is_wanted: Callable[[Path], bool]) -> set[Path]:
        """Copy those of its files that are wanted to the same places below `root`; return their paths."""
        files: set[Path] = set()
        with tempfile.TemporaryFile() as packed, self._open() as container:
            for chunk in container.get_archive(self._inside)[0]:
                packed.write(chunk)
            packed.seek(0)
            with tarfile.open(fileobj=packed) as archive:
                for member in archive:
                    # The archive's own folder is the mount's.
                    path = Path(*PurePosixPath(member.name).parts[1:])
                    # Another host's words: only plain files, and only where they are wanted.
                    if member.isfile() and is_wanted(path) and (data := archive.extractfile(member)) is not None:
                        (root / path).parent.mkdir(parents=True, exist_ok=True)
                        (root / path).write_bytes(data.read())
                        files.add(path)
        return files

    def remove(self) -> None:
        """Remove it with what is in it."""
        self._client.volumes.get(self._name).remove()

    @contextmanager
    def _open(self) -> Iterator[docker.models.containers.Container]:
        import docker

        mount = docker.types.Mount(self._inside, self._name, type="volume")
        try:
            container = self._client.containers.create(self._image, mounts=[mount], labels={LABEL: "files"})
            try:
                yield container
            finally:
                container.remove(force=True, v=True)
        except (docker.errors.DockerException, OSError) as error:
            raise EngineError(f"volume {self._name}: {explained(error)}") from None


def _for_anybody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mode = FOLDER_MODE if member.isdir() else FILE_MODE
    return member
