"""Metrics of confusion matrices that were computed by hand."""

import numpy as np
import pytest

from kit.stats.metrics import metrics


def test_three_classes_by_hand():
    found = metrics([[8, 2, 0], [1, 5, 0], [0, 0, 4]])
    assert found.accuracy == pytest.approx(17 / 20)
    assert found.precision == pytest.approx([8 / 9, 5 / 7, 1])
    assert found.recall == pytest.approx([8 / 10, 5 / 6, 1])
    # 2 * hits / (called + are)
    assert found.f1 == pytest.approx([16 / 19, 10 / 13, 1])
    assert found.macro_precision == pytest.approx((8 / 9 + 5 / 7 + 1) / 3)
    assert found.macro_recall == pytest.approx((8 / 10 + 5 / 6 + 1) / 3)
    assert found.macro_f1 == pytest.approx((16 / 19 + 10 / 13 + 1) / 3)


def test_rows_are_the_truth():
    found = metrics(np.array([[3, 1], [0, 4]]))
    assert found.precision == pytest.approx([1, 4 / 5]) and found.recall == pytest.approx([3 / 4, 1])


def test_a_class_that_was_never_predicted(recwarn):
    found = metrics([[6, 0, 0], [0, 2, 0], [1, 1, 0]])
    assert found.precision == pytest.approx([6 / 7, 2 / 3, 0]) and found.recall == pytest.approx([1, 1, 0])
    assert found.f1 == pytest.approx([12 / 13, 4 / 5, 0]) and found.macro_f1 == pytest.approx((12 / 13 + 4 / 5) / 3)
    assert not recwarn.list


def test_a_class_that_never_occurred():
    found = metrics([[5, 0, 1], [0, 3, 1], [0, 0, 0]])
    assert found.accuracy == pytest.approx(8 / 10)
    assert found.precision == pytest.approx([1, 1, 0]) and found.recall == pytest.approx([5 / 6, 3 / 4, 0])
    assert found.macro_recall == pytest.approx((5 / 6 + 3 / 4) / 3)


def test_a_class_that_neither_occurred_nor_was_predicted_counts_as_one():
    found = metrics([[4, 0, 0], [0, 0, 0], [0, 0, 4]])
    assert found.accuracy == 1 and found.f1 == [1, 0, 1] and found.macro_precision == pytest.approx(2 / 3)


@pytest.mark.parametrize("confusion", [[[1, 2, 3], [4, 5, 6]], [1, 2], [[0, 0], [0, 0]], []])
def test_what_counts_no_classes_is_refused(confusion):
    with pytest.raises(ValueError, match="not a square matrix"):
        metrics(confusion)
