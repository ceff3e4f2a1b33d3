"""Losses that agree, and whose do not."""

import math

import pytest

from kit.compare.comparability import agreeing, max_relative_difference

LOSSES = [2.3 / (1 + step) for step in range(20)]
TOLERANCE = 1e-4


def shifted(by):
    return [loss * (1 + by) for loss in LOSSES]


def test_the_largest_relative_difference():
    assert max_relative_difference([1.0, 2.0, 0.0], [1.0, 2.5, 0.0]) == pytest.approx(0.2)
    assert max_relative_difference([1.0, math.nan], [1.0, 1.0]) is None
    assert max_relative_difference([], []) == 0


def agreement(**losses):
    return [judged.agrees for judged in agreeing(losses, TOLERANCE).values()]


def test_of_three_only_the_odd_one_out_disagrees():
    losses = {"tensorflow": LOSSES, "torch": shifted(TOLERANCE / 4), "jax": shifted(0.01)}
    assert agreement(**losses) == [True, True, False]
    judged = agreeing(losses, TOLERANCE)
    assert judged["tensorflow"].max_relative_difference <= TOLERANCE < judged["jax"].max_relative_difference


def test_without_a_majority_nobody_agrees_and_one_alone_has_nobody_to_agree_with():
    assert agreement(a=LOSSES, b=LOSSES, c=shifted(0.01), d=shifted(0.01)) == [False] * 4
    assert agreement(a=LOSSES, c=shifted(0.01)) == [False] * 2
    assert agreement(a=LOSSES) == [None]


def test_a_loss_that_is_not_finite_never_agrees():
    assert agreement(a=LOSSES, b=LOSSES, broken=[math.inf] * 20) == [True, True, False]
