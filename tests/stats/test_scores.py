"""Metrics of confusion matrices that were computed by hand."""

import pytest

from kit.stats.scores import scores

BY_HAND = {
    "three classes, rows are the truth": (
        [[8, 2, 0], [1, 5, 0], [0, 0, 4]],
        {
            "accuracy": 17 / 20,
            "precision": [8 / 9, 5 / 7, 1],
            "recall": [8 / 10, 5 / 6, 1],
            "f1": [16 / 19, 10 / 13, 1],  # 2 * hits / (called + are)
            "macro_precision": (8 / 9 + 5 / 7 + 1) / 3,
            "macro_recall": (8 / 10 + 5 / 6 + 1) / 3,
            "macro_f1": (16 / 19 + 10 / 13 + 1) / 3,
        },
    ),
    "a class that was never predicted": (
        [[6, 0, 0], [0, 2, 0], [1, 1, 0]],
        {"precision": [6 / 7, 2 / 3, 0], "recall": [1, 1, 0], "f1": [12 / 13, 4 / 5, 0]},
    ),
    "a class that never occurred": (
        [[5, 0, 1], [0, 3, 1], [0, 0, 0]],
        {"accuracy": 8 / 10, "precision": [1, 1, 0], "recall": [5 / 6, 3 / 4, 0], "macro_recall": (5 / 6 + 3 / 4) / 3},
    ),
    "a class that is nowhere": (
        [[4, 0, 0], [0, 0, 0], [0, 0, 4]],
        {"accuracy": 1, "f1": [1, 0, 1], "macro_precision": 2 / 3},
    ),
}


@pytest.mark.parametrize(("confusion", "by_hand"), BY_HAND.values(), ids=BY_HAND)
def test_metrics_are_those_by_hand(confusion, by_hand, recwarn):
    computed = scores(confusion)
    for name, value in by_hand.items():
        assert getattr(computed, name) == pytest.approx(value), name
    assert not recwarn.list


@pytest.mark.parametrize("confusion", [[[1, 2, 3], [4, 5, 6]], [1, 2], [[0, 0], [0, 0]], []])
def test_what_counts_no_classes_is_refused(confusion):
    with pytest.raises(ValueError, match="not a square matrix"):
        scores(confusion)
