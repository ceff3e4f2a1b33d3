"""The contract of a data set: it describes itself, so that adding one is writing one file in `kit/workloads/datasets/`.

missing ─► fetch ─► load: files proved, raw samples ─► prepare: what a network is fed, float32
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from stat import S_IWUSR
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from zipfile import BadZipFile

from kit.profile.store import write_atomically
from kit.workloads.data.files import ANEW, DataError, DataFile, data_folder, download

if TYPE_CHECKING:  # a suite asks for names and sizes only, which is to be quick
    import numpy as np
    from numpy.typing import NDArray

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
# What is raised by a file of arrays that is not there, or that is damaged beyond what its checksums tell.
_UNUSABLE = (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error)


class Samples(NamedTuple):
    """One split as it is in its files."""

    inputs: NDArray[Any]  # (samples, *sample_shape), of the data set's dtype
    targets: NDArray[Any]  # (samples,), class indices


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set; one instance stands in its module."""

    name: str  # as in profiles; also of its folder in KIT_DATA
    sample_shape: tuple[int, ...]  # of one sample's inputs, before a workload reshapes it
    dtype: str  # of the inputs in memory, before `prepare`
    classes: int
    sizes: Mapping[Split, int]  # samples of each split, as published
    files: Mapping[Split, Sequence[DataFile]]  # those that each split needs
    read: Callable[[Split, Sequence[bytes]], Samples]  # makes a split from the contents of its files
    count: Callable[[Split, Sequence[Path]], int] | None = None  # samples where files may hold others than `sizes`
    parse_once: bool = False  # keep what was read as arrays beside the file, as its text takes long to read
    mirrors: Sequence[str] = ()  # URLs ending in a slash that have the files, or of the one file
    divisor: float = 1.0  # what `prepare` divides inputs by

    def samples(self, split: Split) -> int:
        """Return how many samples `split` has: where its files are there, as many as they hold."""
        if self.count is not None:
            with suppress(DataError, OSError):  # a file that is not there or is wrong, as `load` says
                return self.count(split, self.paths(split))
        return self.sizes[split]

    def folder(self) -> Path:
        """Return where downloads go."""
        return data_folder() / self.name

    def paths(self, split: Split) -> list[Path]:
        """Return where the files of `split` are, or would be."""
        return [self._path(file) for file in self.files[split]]

    def _path(self, file: DataFile) -> Path:
        """Return where `file` is, or would be: in the data set's folder, or beside it."""
        within, beside = self.folder() / file.name, data_folder() / file.name
        return beside if os.path.exists(beside) and not os.path.exists(within) else within  # noqa: PTH110

    def _all_files(self) -> list[DataFile]:
        return list(dict.fromkeys(file for split in SPLITS for file in self.files[split]))

    def missing(self) -> list[DataFile]:
        """Return the files that are not there."""
        # A folder that cannot be looked into has none of them: writing there will say why.
        return [file for file in self._all_files() if not os.path.exists(self._path(file))]  # noqa: PTH110

    def fetch(self) -> None:
        """Download what is missing; with nothing missing, touch nothing.

        Raises:
            DataUnavailableError: something is missing and cannot be downloaded.
        """
        if missing := self.missing():
            names = ", ".join(file.name for file in missing)
            remedy = f"put {names} into {self.folder()} (KIT_DATA/{self.name}), or use --data synthetic"
            download(missing, self.folder(), self.mirrors, remedy)

    def load(self, split: Split) -> Samples:
        """Return one split; downloads nothing.

        Raises:
            DataError: naming the file that is missing, unreadable or corrupt, or has other content.
        """
        paths = self.paths(split)
        contents = [file.read(path) for file, path in zip(self.files[split], paths, strict=True)]

        def read() -> Samples:
            try:
                return self.read(split, contents)
            except DataError as error:
                raise DataError(f"{', '.join(map(str, paths))}: {error}; {ANEW}") from None

        if not self.parse_once:
            return read()
        sha256 = hashlib.sha256(b"".join(contents)).hexdigest()
        return _parsed_once(paths[0].with_name(f"{self.name}-{split}-{sha256}.npz"), read)

    def checksum_known(self) -> bool:
        """Return whether every file has a checksum that was known in advance. Raises DataError."""
        return all(file.is_known(file.read(self._path(file))) for file in self._all_files())

    def prepare(self, inputs: NDArray[Any], out: NDArray[np.float32]) -> None:
        """Write what a network is fed to `out`: `inputs` in its shape, divided by `divisor`."""
        import numpy as np

        np.divide(inputs.reshape(out.shape), np.float32(self.divisor), out=out)


def _parsed_once(path: Path, read: Callable[[], Samples]) -> Samples:
    """Return the samples at `path`; where they are not, `read` them and put them there if the folder is writable.

    `path` is named by the content that is read, so that another content has another name.
    """
    import numpy as np

    with suppress(*_UNUSABLE), np.load(path) as arrays:
        if arrays.zip.testzip() is None:  # NumPy would read a damaged header before its checksum
            return Samples(arrays["inputs"], arrays["targets"])
    samples = read()
    with suppress(OSError):
        # Nothing stops root from writing into a folder that is marked read-only.
        if path.parent.stat().st_mode & S_IWUSR:
            content = BytesIO()
            np.savez(content, **samples._asdict())
            write_atomically(path, content.getvalue())
    return samples
