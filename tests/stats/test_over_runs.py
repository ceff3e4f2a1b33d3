import math

import numpy as np
import pytest
from scipy import stats

from kit.stats.runs import RUNS_SD, RunLevel, over_runs, slower_by_more_than
from kit.stats.verdict import Versus

LEVEL = math.log(2e6)


def log_difference(mean_log, se_log, df):
    return Versus(verdict="unresolved", mean_log=mean_log, se_log=se_log, df=df)


def runs(rng, count, ratio=1.0, sd=0.02):
    return levels(LEVEL + math.log(ratio) + rng.normal(0, sd, count))


def levels(logs, se=0.0):
    return [RunLevel(float(log), se, rounds=8) for log in logs]


def logs(side):
    return [run.log for run in side]


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
    # Only one machine has shown its spread; the other's is assumed, and wide.
    versus = over_runs(many, single, same_hardware=False)
    assert versus.is_spread_assumed and not over_runs(many, single, same_hardware=True).is_spread_assumed
    assert versus.high / versus.low > 1.5
    assert not over_runs(many, runs(rng, 3), same_hardware=False).is_spread_assumed


@pytest.mark.parametrize("rounds_se", [0.0, 0.03])
def test_of_single_runs_that_spread_as_assumed_one_pair_in_twenty_is_called_different(rounds_se):
    rng = np.random.default_rng(5)
    sides = (LEVEL + rng.normal(0, math.hypot(RUNS_SD, rounds_se), (1500, 2, 1))).tolist()
    judged = [over_runs(*(levels(side, rounds_se) for side in pair), same_hardware=True) for pair in sides]
    assert 0.02 < np.mean([versus.p_adjusted <= 0.05 for versus in judged]) < 0.06


@pytest.mark.parametrize(
    ("ratio", "same_hardware", "verdict"),
    [(1.5, True, "slower"), (1 / 1.5, True, "faster"), (1.2, True, "unresolved"), (1.5, False, "unresolved"),
     (2.0, False, "slower"), (1 / 30, False, "faster"), (1.0, True, "unresolved")],
)  # fmt: skip
def test_single_runs_are_told_apart_where_they_lie_beyond_what_runs_differ_by(ratio, same_hardware, verdict):
    versus = over_runs(levels([LEVEL + math.log(ratio)], 0.02), levels([LEVEL], 0.02), same_hardware=same_hardware)
    assert (versus.verdict, versus.count, versus.is_spread_assumed) == (verdict, 1, True)
    assert versus.low < ratio < versus.high
    # Of one round it is not known how much rounds differ.
    alone = over_runs(levels([LEVEL + math.log(ratio)], None), levels([LEVEL], None), same_hardware=same_hardware)
    assert alone.low < versus.low and versus.high < alone.high


def test_two_runs_that_disagree_by_more_than_is_assumed_widen_their_interval():
    near, far = (over_runs(levels([LEVEL, LEVEL + by]), levels([LEVEL]), same_hardware=True) for by in (0.01, 1.0))
    assert far.se_log > 2 * near.se_log


def test_the_numbers_are_students_and_welchs():
    rng = np.random.default_rng(3)
    a, b = runs(rng, 5, 1.1, 0.05), runs(rng, 4)
    for same in (True, False):
        versus, expected = over_runs(a, b, same_hardware=same), stats.ttest_ind(logs(a), logs(b), equal_var=same)
        assert (versus.p_adjusted, versus.df) == pytest.approx((expected.pvalue, expected.df))
        assert math.log(versus.low) == pytest.approx(expected.confidence_interval().low)
    single = over_runs(a, b[:1], same_hardware=True)  # t * s * sqrt(1/5 + 1)
    assert single.se_log == pytest.approx(np.std(logs(a), ddof=1) * math.sqrt(1.2))


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
        rows = [log_difference(row.mean(), row.std(ddof=1) / 2, 3) for row in rng.normal(0, 0.02, (24, 4))]
        alarms += "slower" in slower_by_more_than(rows, 0)
    assert alarms / 1000 < 0.065


def one(log, se=0.01, rounds=8, contention=0.0):
    return [RunLevel(LEVEL + log, se, rounds, contention)]


def test_runs_of_one_round_or_beside_other_work_are_not_told_apart_by_what_that_may_do():
    """Two single rounds of one cell were seen to lie a factor of 4.5 apart on a busy machine."""
    by = math.log(4.5)
    assert over_runs(one(by), one(0.0), same_hardware=True).verdict == "slower"
    assert over_runs(one(by, None, 1), one(0.0, None, 1), same_hardware=True).verdict == "unresolved"
    assert over_runs(one(by, 0.01, 2), one(0.0, 0.01, 2), same_hardware=True).verdict == "unresolved"
    assert over_runs(one(by, contention=0.66), one(0.0, contention=0.66), same_hardware=True).verdict == "unresolved"
    assert over_runs(one(math.log(30), None, 1), one(0.0, None, 1), same_hardware=False).verdict == "slower"


def test_two_runs_a_side_that_lie_far_apart_have_one_degree_of_freedom_each():
    far = [*one(0.0), *one(1.0)], [*one(2.0), *one(3.0)]
    assert over_runs(*far, same_hardware=True).verdict == "unresolved"


def test_a_lone_noisy_run_beside_three_that_agree_is_no_better_known_by_them():
    three = [*one(0.0), *one(0.005), *one(-0.005)]
    assert over_runs(one(0.3, 0.001), three, same_hardware=True).verdict == "slower"
    noisy = over_runs(one(0.3, None, 1), three, same_hardware=True)
    assert (noisy.verdict, noisy.is_spread_assumed) == ("unresolved", True)
