import math

import numpy as np
import pytest
from scipy import stats

from kit.stats.runs import over_runs, slower_by_more_than
from kit.stats.verdict import Versus

LEVEL = math.log(2e6)


def log_difference(mean_log, se_log, df):
    return Versus(verdict="unresolved", mean_log=mean_log, se_log=se_log, df=df)


def runs(rng, count, ratio=1.0, sd=0.02):
    return (LEVEL + math.log(ratio) + rng.normal(0, sd, count)).tolist()


@pytest.mark.parametrize(("a", "b"), [(3, 1), (1, 3), (5, 2), (4, 4)])
def test_on_one_kind_of_hardware_three_runs_of_a_side_are_enough_and_false_alarms_stay_nominal(a, b):
    rng = np.random.default_rng(10 * a + b)
    judged = [over_runs(runs(rng, a), runs(rng, b), same_hardware=True) for _ in range(1500)]
    assert 0.03 < np.mean([versus.p_adjusted <= 0.05 for versus in judged]) < 0.07
    assert all(versus.low is not None for versus in judged)


def test_on_other_hardware_each_side_needs_its_own_spread():
    rng = np.random.default_rng(2)
    many, single = runs(rng, 9, 2.0), runs(rng, 1)
    assert over_runs(many, single, same_hardware=True).verdict == "slower"
    versus = over_runs(many, single, same_hardware=False)
    assert (versus.verdict, versus.low) == ("unresolved", None)
    assert versus.ratio == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize(("a", "b", "same_hardware"), [(1, 1, True), (2, 2, True), (1, 2, False)])
def test_with_fewer_runs_the_difference_is_shown_and_unresolved(a, b, same_hardware):
    versus = over_runs([LEVEL + 1] * a, [LEVEL] * b, same_hardware=same_hardware)
    assert (versus.verdict, versus.se_log) == ("unresolved", None)
    assert versus.ratio == pytest.approx(math.e)


def test_the_numbers_are_students_and_welchs():
    rng = np.random.default_rng(3)
    a, b = runs(rng, 5, 1.1, 0.05), runs(rng, 4)
    for same in (True, False):
        versus, expected = over_runs(a, b, same_hardware=same), stats.ttest_ind(a, b, equal_var=same)
        assert (versus.p_adjusted, versus.df) == pytest.approx((expected.pvalue, expected.df))
        assert math.log(versus.low) == pytest.approx(expected.confidence_interval().low)
    single = over_runs(a, b[:1], same_hardware=True)  # t * s * sqrt(1/5 + 1)
    assert single.se_log == pytest.approx(np.std(a, ddof=1) * math.sqrt(1.2))


def test_verdicts_are_those_of_rounds():
    def judged(ratio, sd=0.001):
        rng = np.random.default_rng(4)
        return over_runs(runs(rng, 4, ratio, sd), runs(rng, 4, 1.0, sd), same_hardware=True).verdict

    assert (judged(1.05), judged(0.95), judged(1.0), judged(1.02, 0.03)) == ("slower", "faster", "same", "unresolved")
    # To the last digit.
    assert (judged(1.05, 0.0), judged(1.0, 0.0)) == ("slower", "same")


@pytest.mark.parametrize(
    ("ratio", "se", "pct", "answer"),
    [
        (1.10, 0.001, 5, "slower"),
        (1.04, 0.001, 5, "not_slower"),
        (0.50, 0.001, 5, "not_slower"),
        (1.06, 0.020, 5, "unresolved"),
        (1.04, 0.020, 5, "unresolved"),
        (1.05, 0.0, 0, "slower"),
        (1.00, 0.0, 0, "not_slower"),
    ],
)
def test_slower_by_more_than_is_shown_or_shown_not_to_be_or_neither(ratio, se, pct, answer):
    assert slower_by_more_than([log_difference(math.log(ratio), se, 7)], pct) == [answer]
    # Without a spread of three runs nothing is shown.
    few = [log_difference(math.log(ratio), None, None), log_difference(math.log(ratio), se, 1), None]
    assert slower_by_more_than(few, pct) == ["unresolved"] * 3


def test_of_many_rows_that_are_all_alike_one_is_called_slower_in_at_most_one_of_twenty_comparisons():
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(1000):
        rows = [log_difference(logs.mean(), logs.std(ddof=1) / 2, 3) for logs in rng.normal(0, 0.02, (24, 4))]
        alarms += "slower" in slower_by_more_than(rows, 0)
    assert alarms / 1000 < 0.065
