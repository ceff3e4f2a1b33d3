"""The data sets: adding one is adding an entry to `DATA_SETS`.

MNIST (LeCun, Cortes and Burges): 60 000 + 10 000 handwritten digits, from four gzipped IDX files. IDX is a big-endian
header of four bytes and four for each dimension, then the elements, last dimension fastest ("The IDX file format" at
the foot of http://yann.lecun.com/exdb/mnist/). The checksums prove what the headers say.

UCI-HAR (Anguita et al., 2013): six activities of 30 volunteers, from the signals of a telephone at the waist. A window
is 128 time steps, at 50 Hz, of nine signals. `UCI HAR Dataset/{train,test}/Inertial Signals/` has a text file for each
signal, a window a row; `y_{train,test}.txt` has the activities, 1 to 6. The split is by volunteer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.workloads.data.dataset import DataError, DataFile, Dataset, Samples, Split, member

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

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
    mirrors=(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
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
