"""Losses that agree, and whose do not."""

import math

from kit.compare.comparability import agreeing

LOSSES = [2.3 / (1 + step) for step in range(20)]
TOLERANCE = 1e-4


def shifted(by):
    return [loss * (1 + by) for loss in LOSSES]


def agreement(**losses):
    return [judged.agrees for judged in agreeing(losses, TOLERANCE).values()]


def test_without_a_majority_nobody_agrees_and_one_alone_has_nobody_to_agree_with():
    assert agreement(a=LOSSES, b=LOSSES, c=shifted(0.01), d=shifted(0.01)) == [False] * 4
    assert agreement(a=LOSSES, c=shifted(0.01)) == [False] * 2
    assert agreement(a=LOSSES) == [None]


def test_a_loss_that_is_not_finite_never_agrees():
    assert agreement(a=LOSSES, b=LOSSES, broken=[math.inf] * 20) == [True, True, False]
