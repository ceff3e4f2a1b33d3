"""The contract of a data set: it describes itself, so that adding one is writing one file in `kit/workloads/datasets/`.

missing ─► fetch ─► load: files proved, raw samples ─► prepare: what a network is fed, float32
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kit.workloads.data.files import ANEW, DataError, DataFile, data_folder, download

if TYPE_CHECKING:  # a suite asks for names and sizes only, which is to be quick
    import numpy as np
    from numpy.typing import NDArray

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")


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
    count: Callable[[Split, Sequence[Path]], int] | None = None  # samples in files that may have others than `sizes`
    parse_once: bool = False  # keep what was read as arrays beside the file, as its text takes long to read
    mirrors: Sequence[str] = ()  # URLs ending in a slash that have the files, or of the one file
    divisor: float = 1.0  # what `prepare` divides inputs by

    def samples(self, split: Split) -> int:
        """Return how many samples `split` has: where its files are there, as many as they hold."""
        if self.count is not None:
            with suppress(DataError):  # a file that is not there or is wrong, as `load` says
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
        own, beside = self.folder() / file.name, data_folder() / file.name
        return beside if os.path.exists(beside) and not os.path.exists(own) else own  # noqa: PTH110

    def missing(self) -> list[DataFile]:
        """Return the files that are not there."""
        # A folder that cannot be looked into has none of them: writing there will say why.
        wanted = dict.fromkeys(file for split in SPLITS for file in self.files[split])
        return [file for file in wanted if not os.path.exists(self._path(file))]  # noqa: PTH110

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
        from kit.workloads.data.parsed import parsed

        sha256 = hashlib.sha256(b"".join(contents)).hexdigest()
        return parsed(paths[0].with_name(f"{self.name}-{split}-{sha256}.npz"), read)

    def checksum_known(self) -> bool:
        """Return whether every file has a checksum that was known in advance. Raises DataError."""
        wanted = dict.fromkeys(file for split in SPLITS for file in self.files[split])
        return all(file.is_known(file.read(self._path(file))) for file in wanted)

    def prepare(self, inputs: NDArray[Any], out: NDArray[np.float32]) -> None:
        """Write what a network is fed to `out`: `inputs` in its shape, divided by `divisor`."""
        import numpy as np

        np.divide(inputs.reshape(out.shape), np.float32(self.divisor), out=out)
