import math

import pytest

from kit.compare.parity import agreeing, max_relative_difference

LOSSES = [2.3 / (1 + step) for step in range(20)]
TOLERANCE = 1e-4


def shifted(by):
    return [loss * (1 + by) for loss in LOSSES]


def test_the_largest_relative_difference():
    assert max_relative_difference([1.0, 2.0, 0.0], [1.0, 2.5, 0.0]) == pytest.approx(0.2)
    assert max_relative_difference([1.0, math.nan], [1.0, 1.0]) is None
    assert max_relative_difference([], []) == 0


def test_of_three_only_the_odd_one_out_disagrees():
    judged = agreeing({"tensorflow": LOSSES, "torch": shifted(TOLERANCE / 4), "jax": shifted(0.01)}, TOLERANCE)
    assert [each.agrees for each in judged.values()] == [True, True, False]
    assert judged["tensorflow"].max_relative_difference <= TOLERANCE < judged["jax"].max_relative_difference


def test_without_a_majority_nobody_agrees():
    halves = {"a": LOSSES, "b": LOSSES, "c": shifted(0.01), "d": shifted(0.01)}
    assert {each.agrees for each in agreeing(halves, TOLERANCE).values()} == {False}
    assert {each.agrees for each in agreeing({"a": LOSSES, "c": shifted(0.01)}, TOLERANCE).values()} == {False}


def test_a_loss_that_is_not_finite_never_agrees():
    judged = agreeing({"a": LOSSES, "b": LOSSES, "broken": [math.inf] * 20}, TOLERANCE)
    assert (judged["a"].agrees, judged["broken"].agrees) == (True, False)
    assert judged["broken"].max_relative_difference is None


def test_one_alone_has_nobody_to_agree_with():
    assert agreeing({"a": LOSSES}, TOLERANCE)["a"].agrees is None
