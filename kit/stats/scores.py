"""Accuracy, precision, recall and F1 from a confusion matrix.

           predicted
         a    b    c
true a   8    2    0     precision of b: 5 of the 2 + 5 that were called b
     b   1    5    0     recall of b:    5 of the 1 + 5 that are b
     c   0    0    4     F1:             their harmonic mean
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple


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


def scores(confusion: Sequence[Sequence[int]]) -> Scores:
    """Return the scores of samples counted in `confusion`, shape (classes, classes), rows the true class.

    Raises:
        ValueError: it is not square, or counts no sample.
    """
    sizes = {len(row) if isinstance(row, Sequence) else 0 for row in confusion}
    if sizes != {len(confusion)} or not any(map(any, confusion)):
        raise ValueError(f"not a square matrix that counts samples: {len(confusion)} rows of {sizes or 0} columns")
    hits = [row[index] for index, row in enumerate(confusion)]
    true, predicted = [*map(sum, confusion)], [*map(sum, zip(*confusion, strict=True))]
    means = [(called + are) / 2 for called, are in zip(predicted, true, strict=True)]
    # A class without a prediction or a sample has no hits either: 0 / 1.
    precision, recall, f1 = (
        [hit / max(total, 1) for hit, total in zip(hits, totals, strict=True)] for totals in (predicted, true, means)
    )
    return Scores(sum(hits) / sum(true), precision, recall, f1, *map(fmean, (precision, recall, f1)))
