"""MNIST (LeCun, Cortes and Burges): 60 000 + 10 000 handwritten digits, from four gzipped IDX files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.workloads.data.cache import data_folder, is_chosen
from kit.workloads.data.download import download
from kit.workloads.data.errors import DataError
from kit.workloads.data.idx import read_idx
from kit.workloads.data.known_file import KnownFile
from kit.workloads.data.split import CLASSES, IMAGE_SHAPE, SAMPLES, Split

MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)


class SplitFiles(NamedTuple):
    """The two files of a split."""

    images: KnownFile
    labels: KnownFile


FILES: dict[Split, SplitFiles] = {
    "train": SplitFiles(
        KnownFile(
            "train-images-idx3-ubyte.gz",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        KnownFile(
            "train-labels-idx1-ubyte.gz",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    "test": SplitFiles(
        KnownFile(
            "t10k-images-idx3-ubyte.gz",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        KnownFile(
            "t10k-labels-idx1-ubyte.gz",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
}


def mnist_folder() -> Path:
    """Where the four files are, or would be."""
    return data_folder() / "mnist"


def fetch_missing(splits: Iterable[Split]) -> None:
    """Download what is missing of `splits`; with nothing missing, touch nothing.

    Raises:
        DataUnavailableError: where something is missing and cannot be downloaded.
        DataError: where the folder cannot be looked into.
    """
    missing = missing_files(splits)
    if missing:
        names = ", ".join(file.name for files in FILES.values() for file in files)
        folder = mnist_folder()
        download(missing, folder, MIRRORS, f"put {names} into {folder} (KIT_DATA/mnist), or use --data synthetic")


def missing_files(splits: Iterable[Split]) -> list[KnownFile]:
    """Files of `splits` that are not there; raises DataError where the folder cannot be looked into."""
    folder = mnist_folder()
    try:
        return [file for split in splits for file in FILES[split] if not _is_there(folder / file.name)]
    except OSError as error:
        raise DataError(
            f"{folder}: expected a folder that can be read, found: {error.strerror}; "
            "make it one, or set KIT_DATA to another folder"
        ) from None


def _is_there(path: Path) -> bool:
    """Tell a file that is missing from one that cannot be looked at, which raises OSError."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        # A folder that the user chose and that is a file is a mistake; a user without a cache folder is not.
        if is_chosen():
            raise
        return False
    return True


def read_split(split: Split) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read one split: images (samples, 28, 28) and labels (samples,), both uint8 and read-only.

    Raises:
        DataError: naming the file that is missing, unreadable, corrupt or not MNIST.
    """
    files, folder = FILES[split], mnist_folder()
    images_path, labels_path = folder / files.images.name, folder / files.labels.name
    images = read_idx(files.images.read(images_path), str(images_path), 3)
    labels = read_idx(files.labels.read(labels_path), str(labels_path), 1)
    check_pair(images, labels, SAMPLES[split], str(folder))
    return images, labels


def check_pair(images: NDArray[np.uint8], labels: NDArray[np.uint8], samples: int, source: str) -> None:
    """Raise DataError unless there are `samples` images of 28 x 28 and as many labels, each in 0..9."""
    if images.shape != (samples, *IMAGE_SHAPE):
        raise DataError(
            f"{source}: expected images of shape {(samples, *IMAGE_SHAPE)}, found {images.shape}; {_REMEDY}"
        )
    if labels.shape != (samples,):
        raise DataError(f"{source}: expected {samples} labels, one an image, found {labels.shape[0]}; {_REMEDY}")
    if labels.max() >= CLASSES:
        raise DataError(f"{source}: expected labels in 0..{CLASSES - 1}, found {labels.max()}; {_REMEDY}")


_REMEDY = "delete its files and run again to download them anew"
