"""Data sets: where their files are, how they are proved, downloaded and read; adding one is adding to `DATA_SETS`.

missing ─► fetch ─► load: contents proved, raw samples ─► prepare: what a network is fed, float32

Pooch downloads. Its registry would prove a file as it came from one address; here the content is proved, so that any
gzip of it counts, and a zip within any other.

MNIST (LeCun, Cortes and Burges): 60 000 + 10 000 handwritten digits, from four gzipped IDX files. IDX is a big-endian
header of four bytes and four for each dimension, then the elements, last dimension fastest ("The IDX file format" at
the foot of http://yann.lecun.com/exdb/mnist/). The checksums prove what the headers say.

UCI-HAR (Anguita et al., 2013): six activities of 30 volunteers, from the signals of a telephone at the waist. A window
is 128 time steps, at 50 Hz, of nine signals. `UCI HAR Dataset/{train,test}/Inertial Signals/` has a text file for each
signal, a window a row; `y_{train,test}.txt` has the activities, 1 to 6. The split is by volunteer.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from stat import S_IWUSR
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit
from zipfile import BadZipFile, ZipFile

from kit.environment import DATA
from kit.errors import KitError
from kit.files import read_limited, write_atomically
from kit.profile.fields import Reason, reason

if TYPE_CHECKING:  # a suite asks for names and sizes only, which is to be quick
    import numpy as np
    from _typeshed import ReadableBuffer as Buffer
    from numpy.typing import DTypeLike, NDArray

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
# Seconds to connect, and between two pieces of a file. A mirror that is there answers within one round trip; a
# machine without a network should learn so before its user wonders.
TIMEOUT_S = (5.0, 20.0)
# What helps against a file that is there and wrong; it is never deleted for its owner.
ANEW = "delete it and run again to download it anew"
# An archive may have other members beside the content, and what does not compress grows a little.
_FILE_OVER_CONTENT = 2
# What an archive raises that is damaged, encrypted, or none: gzip, zip, and NumPy's file of arrays.
DAMAGE = (BadZipFile, EOFError, KeyError, RuntimeError, ValueError, OSError, struct.error, zlib.error, lzma.LZMAError)

MNIST_SHA256: dict[Split, tuple[tuple[str, str], ...]] = {
    "train": (
        ("train-images-idx3", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        ("train-labels-idx1", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ),
    "test": (
        ("t10k-images-idx3", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        ("t10k-labels-idx1", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ),
}
# 60,000 images of 28 × 28 bytes, and a header.
MNIST_CONTENT_MAX_B = 47_040_016
STEPS = 128
SIGNALS = tuple(f"{kind}_{axis}" for kind in ("body_acc", "body_gyro", "total_acc") for axis in "xyz")
ACTIVITIES = 6


class DataError(KitError):
    """Data that cannot be used."""


class DataUnavailableError(DataError):
    """Data that is not here and cannot be fetched, as opposed to data that is here and wrong."""

    def __init__(self, why: Reason, line: str) -> None:
        super().__init__(line)
        self.reason = why


class Samples(NamedTuple):
    """One split as it is in its files."""

    inputs: NDArray[Any]  # (samples, *sample_shape), of the data set's dtype
    targets: NDArray[Any]  # (samples,), class indices


class DataFile(NamedTuple):
    """A file, and the SHA-256 of each content that is known.

    The content of a file ending in .gz is what is in it: the same content is found gzipped in many ways.
    """

    name: str
    known_sha256: tuple[str, ...]
    inner: str = ""  # its name in the zip that it may come in, which is not part of its content
    # Other content is read, too: who cuts windows of his own has an archive of his own. Its members have checksums
    # against damage, whoever reads them proves that they fit together, and the profile has the hash of the batches, so
    # that nothing measured on it is compared with what was measured on other data. Downloads are of known content.
    takes_other: bool = False
    # Of its content; a data set that is larger says so. What expands to more is refused before it fills the memory.
    content_max_b: int = 1 << 30

    def content(self, data: bytes) -> bytes:
        """Return the content of a file of these bytes. Raises DataError where it is damaged."""
        if self.inner:
            inner = member(data, self.inner, self.content_max_b)
            return data if inner is None else inner
        if not self.name.endswith(".gz"):
            return data
        try:
            with gzip.open(BytesIO(data)) as opened:
                return _limited(opened, self.content_max_b)
        except DAMAGE as error:
            raise DataError(f"truncated, damaged or not gzipped ({error})") from None

    def is_known(self, content: bytes) -> bool:
        """Return whether `content` is one that was known."""
        return hashlib.sha256(content).hexdigest() in self.known_sha256

    def read(self, path: Path) -> bytes:
        """Return the content of the file at `path`, proved. Raises DataError; writes nothing."""
        try:
            content = self.content(read_limited(path, _FILE_OVER_CONTENT * self.content_max_b))
        except OSError as error:
            remedy = "make it readable, or set KIT_DATA to another folder"
            raise DataError(f"{path} cannot be read ({error.strerror or error}); {remedy}") from None
        except DataError as error:
            raise DataError(f"{path}: {error}; {ANEW}") from None
        if not (self.takes_other or self.is_known(content)):
            expected = f"expected SHA-256 {' or '.join(self.known_sha256)}"
            raise DataError(f"{path} has the wrong content: {expected}; {ANEW}")
        return content

    def download(self, mirror: str) -> bytes:
        """Return the file to keep: as it came, or out of the zip around it.

        Raises:
            DataError: the content is not a known one.
            OSError, ValueError: the mirror does not answer, or does not have it.
        """
        import pooch

        arrived = _Limited(_FILE_OVER_CONTENT * self.content_max_b)
        fetch = pooch.HTTPDownloader(timeout=TIMEOUT_S)
        fetch(mirror + self.name if mirror.endswith("/") else mirror, arrived, None)
        content = self.content(arrived.getvalue())
        if not self.is_known(content):
            raise DataError(f"{mirror} has different content")
        return content if self.inner else arrived.getvalue()


def data_folder() -> Path:
    """Return the folder that holds one folder a data set: `KIT_DATA`, else this user's cache folder.

    It may be read-only with the files already in it; the cache folder may be missing.

    Raises:
        DataError: KIT_DATA names what is no folder, as a typing error does.
    """
    import platformdirs

    chosen = os.environ.get(DATA)
    if chosen and not os.path.isdir(chosen):  # noqa: PTH112 - False, too, where it may not be looked for
        raise DataError(f"KIT_DATA={chosen}: the folder does not exist; create it, or unset KIT_DATA to use the cache")
    return Path(chosen) if chosen else platformdirs.user_cache_path("steadykit")


def member(archive: bytes, name: str, most_b: int) -> bytes | None:
    """Return one member of a zip archive, None where there is none of this name.

    Raises:
        DataError: it is no archive, or the member expands to more than `most_b` bytes.
    """
    try:
        with ZipFile(BytesIO(archive)) as zipped:
            if name not in zipped.namelist():
                return None
            with zipped.open(name) as opened:
                return _limited(opened, most_b)
    except DAMAGE as error:
        raise DataError(f"truncated, damaged or not a zip archive ({error})") from None


def _limited(opened: IO[bytes] | gzip.GzipFile, most_b: int) -> bytes:
    """Return what is left of an open file. Raises DataError where that is more than `most_b` bytes."""
    content = opened.read(most_b + 1)
    if len(content) > most_b:
        raise DataError(f"it expands to more than {most_b:,} bytes, which this data set never has")
    return content


class _Limited(BytesIO):
    """What a server sends, up to a limit."""

    def __init__(self, most_b: int) -> None:
        super().__init__()
        self._most_b = most_b

    def write(self, data: Buffer, /) -> int:
        if self.tell() + memoryview(data).nbytes > self._most_b:
            raise DataError(f"more than {self._most_b:,} bytes came")
        return super().write(data)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set."""

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

    @property
    def folder(self) -> Path:
        """Where downloads go."""
        return data_folder() / self.name

    @property
    def _all_files(self) -> list[DataFile]:
        return list(dict.fromkeys(file for split in SPLITS for file in self.files[split]))

    def path(self, file: DataFile) -> Path:
        """Return where `file` is, or would be: in the data set's folder, or beside it."""
        within, beside = self.folder / file.name, data_folder() / file.name
        return beside if os.path.exists(beside) and not os.path.exists(within) else within  # noqa: PTH110

    def samples(self, split: Split) -> int:
        """Return how many samples `split` has: where its files are there, as many as they hold."""
        if self.count is not None:
            with suppress(DataError, OSError):  # a file that is not there or is wrong, as `load` says
                return self.count(split, [self.path(file) for file in self.files[split]])
        return self.sizes[split]

    def missing(self) -> list[DataFile]:
        """Return the files that are not there."""
        # A folder that cannot be looked into has none of them: writing there will say why.
        return [file for file in self._all_files if not os.path.exists(self.path(file))]  # noqa: PTH110

    def fetch(self) -> None:
        """Download what is missing, all of it or nothing, proved; with nothing missing, touch nothing.

        A mirror that fails is not asked again.

        Raises:
            DataUnavailableError: no mirror gave the right content, or the folder cannot be written.
        """
        if not (missing := self.missing()):
            return
        contents, tried = dict[DataFile, bytes](), list[str]()
        remedy = f"put {', '.join(file.name for file in missing)} into {self.folder} (KIT_DATA/{self.name}), "
        remedy += "or use --data synthetic"
        for mirror in self.mirrors:
            try:
                for file in missing:
                    if file not in contents:
                        contents[file] = file.download(mirror)
            except (DataError, OSError, ValueError) as error:  # every exception of requests is an OSError
                failure = "wrong content" if isinstance(error, DataError) else type(error).__name__
                tried.append(f"{urlsplit(mirror).netloc}: {failure}")
        for file in missing:
            if file not in contents and tried:
                why = reason("download_failed", file=file.name, tried="; ".join(tried))
                raise DataUnavailableError(why, f"{file.name} cannot be downloaded ({'; '.join(tried)}); {remedy}")
            if file not in contents:
                line = f"{file.name} is not there, and no mirror is known that has it; {remedy}"
                raise DataUnavailableError(reason("no_mirror", file=file.name), line)
        try:
            for file, content in contents.items():
                self.folder.mkdir(parents=True, exist_ok=True)
                write_atomically(self.folder / file.name, content)
        except OSError as error:
            why = reason("folder_not_writable", folder=str(self.folder), error=error.strerror or str(error))
            raise DataUnavailableError(why, f"{self.folder} cannot be written ({error.strerror}); {remedy}") from None

    def load(self, split: Split) -> Samples:
        """Return one split; downloads nothing.

        Where `parse_once`, it comes from a file of arrays beside the first file, which is named by the content that
        was read; where that is not there, it is written if the folder is writable.

        Raises:
            DataError: naming the file that is missing, unreadable or corrupt, or has other content.
        """
        import numpy as np

        paths = [self.path(file) for file in self.files[split]]
        contents = [file.read(path) for file, path in zip(self.files[split], paths, strict=True)]
        parsed = None
        if self.parse_once:
            parsed = paths[0].with_name(f"{self.name}-{split}-{hashlib.sha256(b''.join(contents)).hexdigest()}.npz")
            most_b = sum(file.content_max_b for file in self.files[split])
            with suppress(*DAMAGE), np.load(BytesIO(read_limited(parsed, most_b))) as arrays:
                sizes = sum(info.file_size for info in arrays.zip.infolist())
                # NumPy would read a damaged header before its checksum.
                if sizes <= most_b and arrays.zip.testzip() is None:
                    return Samples(arrays["inputs"], arrays["targets"])
        try:
            samples = self.read(split, contents)
        except DataError as error:
            raise DataError(f"{', '.join(map(str, paths))}: {error}; {ANEW}") from None
        with suppress(OSError):
            # Nothing stops root from writing into a folder that is marked read-only.
            if parsed is not None and parsed.parent.stat().st_mode & S_IWUSR:
                content = BytesIO()
                np.savez(content, **samples._asdict())
                write_atomically(parsed, content.getvalue())
        return samples

    def checksum_known(self) -> bool:
        """Return whether every file has a checksum that was known in advance. Raises DataError."""
        return all(file.is_known(file.read(self.path(file))) for file in self._all_files)

    def prepare(self, inputs: NDArray[Any], out: NDArray[np.float32]) -> None:
        """Write what a network is fed to `out`: `inputs` in its shape, or as much of each image, by `divisor`."""
        import numpy as np

        if inputs.size != out.size:
            inputs = inputs[(slice(None), *map(slice, out.shape[1:]))]
        np.divide(inputs.reshape(out.shape), np.float32(self.divisor), out=out)


UCI_HAR_ZIP = DataFile(
    name="uci_har.zip",
    inner="UCI HAR Dataset.zip",
    takes_other=True,
    # The original has 61 MB; who cuts overlapping windows of the same recordings has some times as many.
    content_max_b=256 << 20,
    known_sha256=(
        # The original, of 60 999 314 bytes.
        "2045e435c955214b38145fb5fa00776c72814f01b203fec405152dac7d5bfeb0",
        # 3851 + 1558 windows without overlap, cut from the raw recordings of the same volunteers (UCI HAPT).
        "e154bfad85093f70c1961adda7adec6ea69651b9d0f13ee36758995fdc25127b",
    ),
)


def _mnist(_split: Split, contents: Sequence[bytes]) -> Samples:
    """Return views of the contents, read-only: images (samples, 28, 28) of 0..255, labels (samples,) of 0..9."""
    import numpy as np

    images, labels = contents
    # After the headers, of three dimensions and of one.
    inputs = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28)
    return Samples(inputs, np.frombuffer(labels, np.uint8, offset=8))


def _uci_har(split: Split, contents: Sequence[bytes]) -> Samples:
    """Return inputs (samples, 128, 9), signals as in `SIGNALS`, and targets (samples,) of 0..5.

    Raises:
        DataError: a file is missing, or they do not fit together.
    """
    import numpy as np

    labels = _table(contents[0], _labels(split), np.int64, columns=1)[:, 0]
    outside = labels[(labels < 1) | (labels > ACTIVITIES)]
    if outside.size:
        raise DataError(f"{_labels(split)} has the label {outside[0]}, but labels are 1 to {ACTIVITIES}")
    inputs = np.empty((len(labels), STEPS, len(SIGNALS)), np.float32)
    for at, signal in enumerate(SIGNALS):
        name = f"UCI HAR Dataset/{split}/Inertial Signals/{signal}_{split}.txt"
        windows = _table(contents[0], name, np.float32, columns=STEPS)
        if len(windows) != len(labels):
            raise DataError(f"{name} has {len(windows)} rows, but {_labels(split)} has {len(labels)}")
        inputs[:, :, at] = windows
    return Samples(inputs, (labels - 1).astype(np.uint8))


def _labels(split: Split) -> str:
    return f"UCI HAR Dataset/{split}/y_{split}.txt"


def _table(archive: bytes, name: str, dtype: DTypeLike, *, columns: int) -> NDArray[Any]:
    """Return a text file of the archive, shape (rows, columns). Raises DataError where it is not that."""
    import numpy as np

    text = member(archive, name, UCI_HAR_ZIP.content_max_b)
    if text is None:
        raise DataError(f"the archive has no {name}")
    expected = f"{name} is not rows of {columns} {'number' if columns == 1 else 'numbers'}"
    if not text or text.isspace():
        raise DataError(f"{expected}: it is empty")
    try:
        table = np.loadtxt(BytesIO(text), dtype, comments=None, ndmin=2)
    except ValueError as error:
        raise DataError(f"{expected} ({str(error).partition(';')[0]})") from None
    if table.shape[1] != columns:
        raise DataError(f"{expected}: a row has {table.shape[1]}")
    if not np.isfinite(table).all():
        raise DataError(f"{expected}: a value is infinite or not a number")
    return table


def _count(split: Split, paths: Sequence[Path]) -> int:
    """Return how many labels there are. Raises DataError or OSError."""
    return _counted(split, paths[0], paths[0].stat().st_mtime_ns)


@lru_cache  # a plan asks for each of its cells
def _counted(split: Split, path: Path, _changed_ns: int) -> int:
    labels = member(UCI_HAR_ZIP.read(path), _labels(split), UCI_HAR_ZIP.content_max_b)
    return len((labels or b"").split())


MNIST = Dataset(
    name="mnist",
    sample_shape=(28, 28),
    dtype="uint8",
    classes=10,
    sizes={"train": 60_000, "test": 10_000},
    files={
        split: tuple(
            DataFile(f"{name}-ubyte.gz", (sha256,), content_max_b=MNIST_CONTENT_MAX_B) for name, sha256 in files
        )
        for split, files in MNIST_SHA256.items()
    },
    read=_mnist,
    mirrors=("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
    divisor=255.0,
)
UCI_HAR = Dataset(
    name="uci_har",
    sample_shape=(STEPS, len(SIGNALS)),
    dtype="float32",
    classes=ACTIVITIES,
    sizes={"train": 7352, "test": 2947},
    files={"train": (UCI_HAR_ZIP,), "test": (UCI_HAR_ZIP,)},
    read=_uci_har,
    count=_count,
    parse_once=True,
    mirrors=(
        "https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/00240/UCI%20HAR%20Dataset.zip",
    ),
)
DATA_SETS: list[Dataset] = [MNIST, UCI_HAR]
