"""Accuracy, precision, recall and F1 from a confusion matrix.

           predicted
         a    b    c
true a   8    2    0     precision of b: 5 of the 2 + 5 that were called b
     b   1    5    0     recall of b:    5 of the 1 + 5 that are b
     c   0    0    4     F1:             their harmonic mean
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Scores(NamedTuple):
    """What a confusion matrix comes to; every figure is between 0 and 1.

    A class that was never predicted has precision 0, one that never occurred recall 0; both have F1 0. They count in
    the macro figures, which are plain means over all classes.
    """

    accuracy: float
    precision: list[float]  # of each class
    recall: list[float]
    f1: list[float]
    macro_precision: float
    macro_recall: float
    macro_f1: float


def scores(confusion: Sequence[Sequence[int]] | npt.NDArray[np.integer]) -> Scores:
    """Return the scores of samples counted in `confusion`, shape (classes, classes), rows the true class.

    Raises:
        ValueError: it is not square, or counts no sample.
    """
    counts = np.asarray(confusion)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.sum() < 1:  # noqa: PLR2004 - rows and columns
        raise ValueError(f"not a square matrix that counts samples: shape {counts.shape}, {counts.sum()} samples")
    hits, predicted, true = np.diag(counts), counts.sum(axis=0), counts.sum(axis=1)
    # A class without a prediction or a sample has no hits either: 0 / 1.
    of_classes = [hits / np.maximum(total, 1) for total in (predicted, true, (predicted + true) / 2)]
    accuracy, macro = float(hits.sum() / counts.sum()), [float(values.mean()) for values in of_classes]
    return Scores(accuracy, *(values.tolist() for values in of_classes), *macro)
