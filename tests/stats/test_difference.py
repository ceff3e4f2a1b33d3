import numpy as np
import pytest
import scipy.stats

from kit.stats.difference import paired_difference, welch_difference
from kit.stats.false_discovery import adjusted_p


def samples(seed, size, centre=0.0, sigma=0.02):
    return np.exp(np.random.default_rng(seed).normal(centre, sigma, size)) * 1e7


@pytest.mark.parametrize("size", [2, 3, 10, 30])
def test_paired_is_scipys_paired_t_test(size):
    a, b = samples(1, size, 0.03), samples(2, size)
    expected = scipy.stats.ttest_rel(np.log(a), np.log(b))
    found = paired_difference(dict(enumerate(a)), dict(enumerate(b)))
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((np.exp(interval.low), np.exp(interval.high)), rel=1e-9)
    assert found.ratio == pytest.approx(scipy.stats.gmean(a / b), rel=1e-12)
    assert (found.launches, found.paired) == (size, True)


@pytest.mark.parametrize(("size_a", "size_b"), [(2, 2), (3, 10), (12, 7)])
def test_unpaired_is_scipys_welch_test(size_a, size_b):
    a, b = samples(1, size_a, 0.03, 0.05), samples(2, size_b)
    expected = scipy.stats.ttest_ind(np.log(a), np.log(b), equal_var=False)
    found = welch_difference(list(a), list(b))
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((np.exp(interval.low), np.exp(interval.high)), rel=1e-9)
    assert found.launches == min(size_a, size_b)


def test_pairs_are_made_by_round_and_odd_rounds_are_left_out():
    # Rounds differ tenfold; within a round the candidate takes twice as long: only pairing sees that.
    baseline = {0: 1.0, 1: 10.0, 2: 100.0, 5: 7.0}
    candidate = {2: 200.0, 1: 20.0, 0: 2.0, 9: 3.0}
    found = paired_difference(candidate, baseline)
    assert found.ratio == pytest.approx(2.0)
    assert found.launches == 3


def test_too_few_launches_give_no_difference():
    assert paired_difference({0: 1.0, 1: 2.0}, {1: 1.0, 2: 2.0}) is None
    assert welch_difference([1.0], [1.0, 2.0, 3.0]) is None


def test_launches_without_spread_are_not_an_error():
    same = welch_difference([5.0, 5.0], [5.0, 5.0])
    assert (same.ratio, same.low, same.high, same.p) == (1.0, 1.0, 1.0, 1.0)
    other = paired_difference({0: 10.0, 1: 10.0}, {0: 5.0, 1: 5.0})
    assert (other.ratio, other.p) == (pytest.approx(2.0), 0.0)


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_adjusted_p_is_scipys_false_discovery_control(count):
    p_values = np.random.default_rng(count).uniform(size=count) ** 3
    assert adjusted_p(list(p_values)) == pytest.approx(scipy.stats.false_discovery_control(p_values).tolist(), abs=1e-9)


def test_no_questions_no_adjusted_p():
    assert adjusted_p([]) == []
