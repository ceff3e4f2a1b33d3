import math

import numpy as np
import pytest

from kit.stats.planted import found_against_planted


def test_the_planted_truth_lies_in_the_interval_as_often_as_promised():
    rng, truth = np.random.default_rng(1), math.log(1.03)
    found = [found_against_planted(rng.normal(truth, 0.01, 8), [truth] * 8) for _ in range(1000)]
    assert 0.93 < np.mean([one.inside for one in found]) < 0.97
    assert found[0].planted_ratio == pytest.approx(1.03)


def test_what_was_not_planted_lies_outside():
    assert not found_against_planted([0.05, 0.051, 0.049], [0.01] * 3).inside
    assert found_against_planted([0.05], [0.05]) is None
