"""Volumes of an engine that shares no folder with this machine; files go in and out through a container that is never
started.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from kit.engine.connection import EngineError
from kit.engine.container import LABEL, explained

if TYPE_CHECKING:
    import docker

# The image's user is nobody here: whoever it is may go on with what was sent.
FOLDER_MODE, FILE_MODE = 0o777, 0o666


class Volumes:
    """Volumes of one engine.

    Args:
        client: of the engine.
        image: any that the engine has.
    """

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

    def fill(
        self, name: str, inside: PurePosixPath, root: Path, paths: Iterable[Path], empty: Iterable[Path] = ()
    ) -> None:
        """Copy files and folders below `root` to the same places in the volume; of `empty` ones not what they hold."""
        with tempfile.TemporaryFile() as packed, self._open(name, inside) as container:
            _pack(packed, root, paths, empty)
            packed.seek(0)
            container.put_archive(str(inside), packed)

    def bring_home(self, name: str, inside: PurePosixPath, root: Path, is_wanted: Callable[[Path], bool]) -> set[Path]:
        """Copy those files of the volume that are wanted to the same places below `root`; return their paths."""
        files: set[Path] = set()
        with tempfile.TemporaryFile() as packed, self._open(name, inside) as container:
            for chunk in container.get_archive(str(inside))[0]:
                packed.write(chunk)
            packed.seek(0)
            with tarfile.open(fileobj=packed) as archive:
                for member in archive:
                    # The archive's own folder is the mount's.
                    path = Path(*PurePosixPath(member.name).parts[1:])
                    # Another host's words: only plain files, and only where they are wanted.
                    if not (member.isfile() and is_wanted(path)):
                        continue
                    if (data := archive.extractfile(member)) is not None:
                        (root / path).parent.mkdir(parents=True, exist_ok=True)
                        (root / path).write_bytes(data.read())
                        files.add(path)
        return files

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


def _pack(into: IO[bytes], root: Path, paths: Iterable[Path], empty: Iterable[Path]) -> None:
    def anybodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mode = FOLDER_MODE if member.isdir() else FILE_MODE
        return member

    wanted = [*((path, False) for path in empty), *((path, True) for path in paths)]
    with tarfile.open(fileobj=into, mode="w", dereference=True) as archive:
        for path, is_whole in wanted:
            for folder in reversed(path.parents):
                archive.add(root / folder, str(folder), recursive=False, filter=anybodys)
            archive.add(root / path, str(path), recursive=is_whole, filter=anybodys)
