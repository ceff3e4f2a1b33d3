import math

import numpy as np
import pytest
from scipy import stats

from kit.stats.estimate import estimate, judge, slower_by_more_than
from kit.stats.sessions import SESSION_GAP_S, SESSIONS_SD, RunLevel, over_runs, pairs_in_turn

LEVEL = math.log(2e6)
DAY_S, RUN_S = 86_400.0, 300.0


def judged_runs(*sides, **how):
    return judge([over_runs(*sides, **how)])[0]


def runs(rng, count, ratio=1.0, sd=0.02, **when):
    return levels(LEVEL + math.log(ratio) + rng.normal(0, sd, count), **when)


def levels(logs, se=0.0, *, begin_s=0.0, every_s=DAY_S):
    """Runs of a side, each a session of its own unless they follow each other sooner."""
    begins_s = [begin_s + number * every_s for number in range(len(logs))]
    return [RunLevel(float(log), se, 8, 0.0, at_s, at_s + RUN_S) for log, at_s in zip(logs, begins_s, strict=True)]


def logs(side):
    return [run.log for run in side]


@pytest.mark.parametrize(("a", "b"), [(3, 1), (1, 3), (5, 2), (4, 4)])
def test_on_one_kind_of_hardware_three_runs_of_a_side_are_enough_and_false_alarms_stay_nominal(a, b):
    rng = np.random.default_rng(10 * a + b)
    judged = [judged_runs(runs(rng, a), runs(rng, b), same_hardware=True) for _ in range(1500)]
    assert 0.03 < np.mean([versus.p_adjusted <= 0.05 for versus in judged]) < 0.07
    assert all(versus.low is not None for versus in judged)


def test_on_other_hardware_each_side_needs_its_own_spread():
    rng = np.random.default_rng(2)
    many, single = runs(rng, 9, 2.0), runs(rng, 1)
    assert judged_runs(many, single, same_hardware=True).verdict == "slower"
    # Only one machine has shown its spread; the other's is assumed, and wide.
    versus = judged_runs(many, single, same_hardware=False)
    assert versus.is_spread_assumed and not judged_runs(many, single, same_hardware=True).is_spread_assumed
    assert versus.high / versus.low > 1.5
    assert not judged_runs(many, runs(rng, 3), same_hardware=False).is_spread_assumed


@pytest.mark.parametrize("rounds_se", [0.0, 0.03])
def test_of_single_runs_that_spread_as_assumed_one_pair_in_twenty_is_called_different(rounds_se):
    rng = np.random.default_rng(5)
    sides = (LEVEL + rng.normal(0, math.hypot(SESSIONS_SD, rounds_se), (1500, 2, 1))).tolist()
    judged = [judged_runs(*(levels(side, rounds_se) for side in pair), same_hardware=True) for pair in sides]
    assert 0.02 < np.mean([versus.p_adjusted <= 0.05 for versus in judged]) < 0.06


@pytest.mark.parametrize(
    ("ratio", "same_hardware", "verdict"),
    [(1.5, True, "slower"), (1 / 1.5, True, "faster"), (1.2, True, "unresolved"), (1.5, False, "unresolved"),
     (2.0, False, "slower"), (1 / 30, False, "faster"), (1.0, True, "unresolved")],
)  # fmt: skip
def test_single_runs_differ_where_they_lie_beyond_the_spread_of_runs(ratio, same_hardware, verdict):
    versus = judged_runs(levels([LEVEL + math.log(ratio)], 0.02), levels([LEVEL], 0.02), same_hardware=same_hardware)
    assert (versus.verdict, versus.count, versus.is_spread_assumed) == (verdict, 1, True)
    assert versus.low < ratio < versus.high
    # Of one round it is not known how much rounds differ.
    alone = judged_runs(levels([LEVEL + math.log(ratio)], None), levels([LEVEL], None), same_hardware=same_hardware)
    assert alone.low < versus.low and versus.high < alone.high


def test_two_runs_that_disagree_by_more_than_is_assumed_widen_their_interval():
    near, far = (judged_runs(levels([LEVEL, LEVEL + by]), levels([LEVEL]), same_hardware=True) for by in (0.01, 1.0))
    assert far.se_log > 2 * near.se_log


def test_the_numbers_are_students_and_welchs():
    rng = np.random.default_rng(3)
    a, b = runs(rng, 5, 1.1, 0.05), runs(rng, 4)
    for same in (True, False):
        versus, expected = judged_runs(a, b, same_hardware=same), stats.ttest_ind(logs(a), logs(b), equal_var=same)
        assert (versus.p_adjusted, versus.df) == pytest.approx((expected.pvalue, expected.df))
        assert math.log(versus.low) == pytest.approx(expected.confidence_interval().low)
    single = judged_runs(a, b[:1], same_hardware=True)  # t * s * sqrt(1/5 + 1)
    assert single.se_log == pytest.approx(np.std(logs(a), ddof=1) * math.sqrt(1.2))


def test_verdicts_are_those_of_rounds():
    def judged(ratio, sd=0.001):
        rng = np.random.default_rng(4)
        return judged_runs(runs(rng, 4, ratio, sd), runs(rng, 4, 1.0, sd), same_hardware=True).verdict

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
    assert slower_by_more_than([estimate(math.log(ratio), se, 7)], pct) == [answer]
    # Without a spread of three runs nothing is shown.
    few = [estimate(math.log(ratio)), estimate(math.log(ratio), se, 1), None]
    assert slower_by_more_than(few, pct) == ["unresolved"] * 3


def test_of_many_rows_that_are_all_alike_one_is_called_slower_in_at_most_one_of_twenty_comparisons():
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(1000):
        rows = [estimate(row.mean(), row.std(ddof=1) / 2, 3) for row in rng.normal(0, 0.02, (24, 4))]
        alarms += "slower" in slower_by_more_than(rows, 0)
    assert alarms / 1000 < 0.065


def single(log, se=0.01, rounds=8, contention=0.0):
    return [RunLevel(LEVEL + log, se, rounds, contention)]


@pytest.mark.parametrize(
    ("by", "how", "same_hardware", "verdict"),
    [
        (4.5, {}, True, "slower"),
        (4.5, {"se": None, "rounds": 1}, True, "unresolved"),
        (4.5, {"rounds": 2}, True, "unresolved"),
        (4.5, {"contention": 0.66}, True, "unresolved"),
        (30, {"se": None, "rounds": 1}, False, "slower"),
    ],
)
def test_runs_of_one_round_or_beside_other_work_need_a_larger_difference(by, how, same_hardware, verdict):
    """Two single rounds of one cell were seen to lie a factor of 4.5 apart on a busy machine."""
    sides = single(math.log(by), **how), single(0.0, **how)
    assert judged_runs(*sides, same_hardware=same_hardware).verdict == verdict


def test_two_runs_a_side_that_lie_far_apart_have_one_degree_of_freedom_each():
    far = levels([LEVEL, LEVEL + 1], 0.01), levels([LEVEL + 2, LEVEL + 3], 0.01)
    assert judged_runs(*far, same_hardware=True).verdict == "unresolved"


def test_a_lone_noisy_run_beside_three_that_agree_is_no_better_known_by_them():
    three = levels([LEVEL, LEVEL + 0.005, LEVEL - 0.005], 0.01)
    assert judged_runs(single(0.3, 0.001), three, same_hardware=True).verdict == "slower"
    noisy = judged_runs(single(0.3, None, 1), three, same_hardware=True)
    assert (noisy.verdict, noisy.is_spread_assumed) == ("unresolved", True)


def in_turn(order, logs=None, every_s=2 * RUN_S):
    """Runs of two sides in the order of the letters; each run's logarithm is its place unless `logs` has it."""
    sides = {"A": [], "B": []}
    for number, side in enumerate(order):
        log = float(number if logs is None else logs[number])
        begin_s = number * every_s
        sides[side].append(RunLevel(log, 0.01, 8, 0.0, begin_s, begin_s + RUN_S))
    return sides["A"], sides["B"]


def paired(a, b):
    return [(run_a.log, run_b.log) for run_a, run_b in pairs_in_turn(a, b)]


@pytest.mark.parametrize(
    ("order", "pairs"),
    [
        ("ABAB", [(0, 1), (2, 3)]), ("BABA", [(1, 0), (3, 2)]), ("ABBAABBA", [(0, 1), (3, 2), (4, 5), (7, 6)]),
        ("AABBAB", [(1, 2), (4, 3)]), ("ABABA", [(0, 1), (2, 3)]), ("AABBAABB", [(1, 2), (4, 3), (5, 6)]),
        ("ABA", []), ("AB", []), ("AAABBB", []), ("ABBA", [(0, 1), (3, 2)]),
    ],
)  # fmt: skip
def test_neighbours_in_time_are_pairs_where_there_are_two(order, pairs):
    assert paired(*in_turn(order)) == pairs


def test_what_overlaps_in_time_or_has_no_time_is_not_paired():
    a, b = in_turn("ABABAB")
    assert paired(a, b) and not paired(*in_turn("ABABAB", every_s=RUN_S / 2))
    assert not paired([a[0]._replace(begin_s=None, end_s=None), *a[1:]], b)


def rate_of_differences(order, levels_of, *, planted=0.0, trials=400):
    """Share of trials called different; a run varies by 2.3 %, beside the machine's level, which `levels_of` draws."""
    rng, different = np.random.default_rng(7), 0
    for _ in range(trials):
        logs = rng.normal(0, 0.023, len(order)) + levels_of(rng, len(order))
        logs += [planted * (side == "A") for side in order]
        different += judged_runs(*in_turn(order, logs), same_hardware=True).verdict in ("faster", "slower")
    return different / trials


def wandering(sd):
    """A machine whose level forgets itself within an hour; runs are ten minutes apart."""
    stays = math.exp(-1 / 6)

    def levels_of(rng, count):
        level = [rng.normal(0, sd)]
        while len(level) < count:
            level.append(stays * level[-1] + rng.normal(0, sd * math.sqrt(1 - stays**2)))
        return np.array(level)

    return levels_of


@pytest.mark.parametrize("counts", [(1, 1), (3, 1), (3, 3), (5, 5)])
def test_identical_code_measured_one_side_after_the_other_is_seldom_called_different(counts):
    """With the spread of runs alone it was up to 43 % at 2.6 %, the figure for sessions hours apart, and 82 at 10.7."""
    order = "A" * counts[0] + "B" * counts[1]
    for session_sd, most in ((0.026, 0.05), (0.107, 0.10)):

        def levels_of(rng, _, sd=session_sd):
            return np.repeat(rng.normal(0, sd, 2), counts)

        assert rate_of_differences(order, levels_of) <= most


def test_runs_in_turn_are_free_of_what_the_machine_did_in_between():
    for sd in (0.026, 0.107):
        assert rate_of_differences("ABBAAB", wandering(sd)) <= 0.07
        assert rate_of_differences("ABABABAB", wandering(sd)) <= 0.07
    assert rate_of_differences("ABBAABBA", wandering(0.026), planted=math.log(1.1)) >= 0.8


def test_further_sessions_beside_two_pairs_are_used():
    a, b = levels([0.0] * 7), levels([-0.05, -0.051], begin_s=DAY_S / 2)
    a[0], a[1] = a[0]._replace(log=0.001), a[1]._replace(log=-0.001)
    assert len(pairs_in_turn(a, b)) == 2
    known = over_runs(a, b, same_hardware=True)
    assert (known.unit, known.is_spread_assumed) == ("session", False)
    few = over_runs(a[:2], b, same_hardware=True)
    assert (few.unit, few.is_spread_assumed) == ("pair", True)
    assert known.half_width(0.95) < few.half_width(0.95), "more data, a narrower interval"


def test_a_steady_drift_cancels_where_each_side_comes_first_as_often():
    def drift(_, count):
        return 0.01 * np.arange(count)

    assert rate_of_differences("ABBAABBA", drift) <= 0.05 < rate_of_differences("AB" * 6, drift)


def test_runs_that_follow_each_other_are_one_session_and_three_sessions_show_their_spread():
    base = [LEVEL, LEVEL + 0.002, LEVEL - 0.002]
    later = [log + 0.1 for log in base]
    for every_s, verdict, count in ((RUN_S, "unresolved", 1), (RUN_S + 2 * SESSION_GAP_S, "slower", 3)):
        sides = levels(later, 0.001, begin_s=100 * DAY_S, every_s=every_s), levels(base, 0.001, every_s=every_s)
        versus = judged_runs(*sides, same_hardware=True)
        assert (versus.verdict, versus.unit, versus.count) == (verdict, "session", count)
        assert versus.is_spread_assumed == (count == 1)


def test_what_others_took_widens_the_interval_of_pairs_too():
    quiet, beside = (
        [[run._replace(contention=contention) for run in side] for side in in_turn("ABBAABBA", [0.18, 0, 0, 0.2] * 2)]
        for contention in (0.0, 0.6)
    )
    quiet, beside = (judged_runs(*sides, same_hardware=True) for sides in (quiet, beside))
    assert quiet.verdict == "slower" and quiet.unit == beside.unit == "pair"
    assert beside.verdict == "unresolved" and beside.high / beside.low > 2 * quiet.high / quiet.low
