"""The contract of a data set: it describes itself, so that adding one is writing one file in `kit/workloads/datasets/`.

missing ─► fetch ─► load: files proved, raw samples ─► prepare: what a network is fed, float32
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kit.workloads.data.files import KnownFile, data_folder, download

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
    sizes: Mapping[Split, int]  # samples of each split
    files: Mapping[Split, Sequence[KnownFile]]  # those that each split needs
    read: Callable[[Split, Sequence[bytes]], Samples]  # makes a split from the proved contents of its files
    mirrors: Sequence[str] = ()  # URLs ending in a slash that have the files
    divisor: float = 1.0  # what `prepare` divides inputs by

    def samples(self, split: Split) -> int:
        """Return how many samples `split` has."""
        return self.sizes[split]

    def folder(self) -> Path:
        """Return where the files are, or would be."""
        return data_folder() / self.name

    def missing(self) -> list[KnownFile]:
        """Return the files that are not there."""
        # A folder that cannot be looked into has none of them: writing there will say why.
        wanted = dict.fromkeys(file for split in SPLITS for file in self.files[split])
        return [file for file in wanted if not os.path.exists(self.folder() / file.name)]  # noqa: PTH110

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
        return self.read(split, [file.read(self.folder() / file.name) for file in self.files[split]])

    def prepare(self, inputs: NDArray[Any], out: NDArray[np.float32]) -> None:
        """Write what a network is fed to `out`: `inputs` in its shape, divided by `divisor`."""
        import numpy as np

        np.divide(inputs.reshape(out.shape), np.float32(self.divisor), out=out)
