import math

import pytest

from kit.stats.parity import agreeing, max_relative_difference

LOSSES = [2.3 / (1 + step) for step in range(20)]
TOLERANCE = 1e-4


def shifted(by):
    return [loss * (1 + by) for loss in LOSSES]


def test_the_largest_relative_difference():
    assert max_relative_difference([1.0, 2.0, 0.0], [1.0, 2.5, 0.0]) == pytest.approx(0.2)
    assert max_relative_difference([1.0, math.nan], [1.0, 1.0]) is None
    assert max_relative_difference([], []) == 0


def test_of_three_only_the_odd_one_out_disagrees():
    found = agreeing({"tensorflow": LOSSES, "torch": shifted(TOLERANCE / 4), "jax": shifted(0.01)}, TOLERANCE)
    assert [one.agrees for one in found.values()] == [True, True, False]
    assert found["tensorflow"].max_relative_difference <= TOLERANCE < found["jax"].max_relative_difference


def test_without_a_majority_nobody_agrees():
    halves = {"a": LOSSES, "b": LOSSES, "c": shifted(0.01), "d": shifted(0.01)}
    assert {one.agrees for one in agreeing(halves, TOLERANCE).values()} == {False}
    assert {one.agrees for one in agreeing({"a": LOSSES, "c": shifted(0.01)}, TOLERANCE).values()} == {False}


def test_a_loss_that_is_not_finite_never_agrees():
    found = agreeing({"a": LOSSES, "b": LOSSES, "broken": [math.inf] * 20}, TOLERANCE)
    assert (found["a"].agrees, found["broken"].agrees) == (True, False)
    assert found["broken"].max_relative_difference is None


def test_one_alone_has_nobody_to_agree_with():
    assert agreeing({"a": LOSSES}, TOLERANCE)["a"].agrees is None
