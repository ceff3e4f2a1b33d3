"""MNIST (LeCun, Cortes and Burges): 60 000 + 10 000 handwritten digits, from four gzipped IDX files.

IDX: a big-endian header of four bytes and four for each dimension, then the elements, last dimension fastest ("The IDX
file format" at the foot of http://yann.lecun.com/exdb/mnist/). The checksums prove what the headers say.
"""

from __future__ import annotations

from collections.abc import Sequence

from kit.workloads.data.dataset import Dataset, Samples, Split
from kit.workloads.data.files import KnownFile


def _read(_split: Split, contents: Sequence[bytes]) -> Samples:
    """Return views of the contents, read-only: images (samples, 28, 28) of 0..255, labels (samples,) of 0..9."""
    import numpy as np

    images, labels = contents
    # After the headers, of three dimensions and of one.
    inputs = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28)
    return Samples(inputs, np.frombuffer(labels, np.uint8, offset=8))


def _known(name: str, content_b: int, sha256: str) -> KnownFile:
    return KnownFile(f"{name}-ubyte.gz", content_b, sha256)


MNIST = Dataset(
    name="mnist",
    sample_shape=(28, 28),
    dtype="uint8",
    classes=10,
    sizes={"train": 60_000, "test": 10_000},
    files={
        "train": (
            _known("train-images-idx3", 47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
            _known("train-labels-idx1", 60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        ),
        "test": (
            _known("t10k-images-idx3", 7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
            _known("t10k-labels-idx1", 10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
        ),
    },
    read=_read,
    mirrors=(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
    divisor=255.0,
)
