"""Accuracy, precision, recall and F1 from a confusion matrix, by scikit-learn.

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


class Metrics(NamedTuple):
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


def metrics(confusion: Sequence[Sequence[int]] | npt.NDArray[np.integer]) -> Metrics:
    """Return the metrics of samples counted in `confusion`, shape (classes, classes), rows the true class.

    Raises:
        ValueError: it is not square, or counts no sample.
    """
    # A second to import.
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    counts = np.asarray(confusion)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.sum() < 1:  # noqa: PLR2004 - rows and columns
        raise ValueError(f"not a square matrix that counts samples: shape {counts.shape}, {counts.sum()} samples")
    # Each element stands for one sample that weighs as many as it counts, so that every class is known to the library.
    true, predicted = np.indices(counts.shape).reshape(2, -1)
    weights = counts.ravel()
    each, macro = (
        precision_recall_fscore_support(true, predicted, average=average, sample_weight=weights, zero_division=0)[:3]
        for average in (None, "macro")
    )
    return Metrics(
        float(accuracy_score(true, predicted, sample_weight=weights)),
        *(of_classes.tolist() for of_classes in each),
        *map(float, macro),
    )
