"""Fleets with planted nodes: the slow ones are named and no others, as often as is promised."""

import math

import numpy as np
import pytest

from kit.stats.estimate import ALPHA
from kit.stats.fleet_outliers import judge_fleet, said_again
from kit.stats.sessions import RunLevel

SD = 0.01


def fleet(count, slow=(), rng=None, runs=1, se=0.003):
    """Levels of nodes that scatter by SD; `slow`: logarithms by which the first ones are slower."""
    rng = rng or np.random.default_rng(count)
    levels = rng.normal(0, SD, count)
    levels[: len(slow)] += slow
    return [[RunLevel(float(level), se, 4)] * runs for level in levels]


def named(nodes):
    return {index for index, versus in enumerate(judge_fleet(nodes)) if versus.verdict in ("slower", "faster")}


@pytest.mark.parametrize("count", [4, 5, 8, 12, 40, 200])
def test_of_alike_fleets_few_have_a_node_named(count):
    rng, draws = np.random.default_rng(7), 400 if count < 100 else 100
    wrong = sum(bool(named(fleet(count, rng=rng))) for _ in range(draws))
    assert wrong <= draws * ALPHA + 2.5 * math.sqrt(draws * ALPHA)


def test_a_node_of_one_run_among_others_of_ten_is_seldom_named():
    rng, draws = np.random.default_rng(11), 300
    wrong = 0
    for _ in range(draws):
        levels = rng.normal(0, SD / 2, 20)
        counts = [10] * 19 + [1]
        nodes = [
            [RunLevel(float(level + luck), 0.003, 10) for luck in rng.normal(0, 0.026, count)]
            for level, count in zip(levels, counts, strict=True)
        ]
        wrong += bool(named(nodes))
    assert wrong <= draws * ALPHA + 2.5 * math.sqrt(draws * ALPHA)


def test_several_slow_nodes_do_not_hide_each_other():
    for count, slow in ((500, 5), (40, 8), (12, 3), (8, 2)):
        judged = judge_fleet(fleet(count, [0.1] * slow))
        assert {index for index, versus in enumerate(judged) if versus.verdict == "slower"} == set(range(slow))
        assert not any(versus.verdict == "faster" for versus in judged)


def test_the_ratio_and_its_interval_hold_what_was_planted():
    rng, held = np.random.default_rng(3), 0
    for _ in range(100):
        judged = judge_fleet(fleet(100, [0.08], rng=rng))[0]
        assert judged.verdict == "slower" and judged.low > 1 and judged.p_adjusted <= ALPHA
        held += judged.low <= math.exp(0.08) <= judged.high
    assert held >= 95


def test_intervals_of_alike_nodes_cover_one_as_often_as_they_say():
    rng, held, count = np.random.default_rng(5), 0, 0
    for _ in range(40):
        for versus in judge_fleet(fleet(20, rng=rng)):
            held += versus.low <= 1 <= versus.high
            count += 1
    assert 0.92 <= held / count <= 0.98


def slow_by_two(levels, second):
    """The nodes that one run says are slower, and of those the slow ones, once `second` has measured them again."""
    runs = [[RunLevel(float(level), 0.003, 8)] for level in levels]
    suspects = {index for index, versus in enumerate(judge_fleet(runs)) if versus.verdict == "slower"}
    for index in suspects:
        runs[index].append(RunLevel(float(second(index)), 0.003, 8))
    judged = judge_fleet(runs)
    again = said_again(runs, judged)
    return suspects, {index for index in suspects if judged[index].verdict == "slower" and again[index]}


def test_of_alike_fleets_whose_measurements_have_tails_few_have_a_node_named_slow():
    """bench_fleet_tails.py has more of these."""
    rng, draws = np.random.default_rng(17), 60
    fleets = [slow_by_two(SD * rng.standard_t(3, 32), lambda _: SD * rng.standard_t(3)) for _ in range(draws)]
    by_one, by_two = (sum(bool(places) for places in column) for column in zip(*fleets, strict=True))
    assert by_two <= draws * ALPHA < by_one


def test_a_node_is_slow_when_a_second_measurement_repeats_it():
    levels = np.random.default_rng(2).normal(0, SD, 30)
    levels[0] += 0.1
    assert slow_by_two(levels, lambda _: 0.1) == ({0}, {0})
    assert slow_by_two(levels, lambda _: 0.0) == ({0}, set())


def test_one_of_many_profiles_makes_no_node_slow():
    def named_again(nodes):
        return said_again(nodes, judge_fleet(nodes))[0]

    for of_first, says in (([0.3, 0.0, 0.0], False), ([0.3, 0.1, 0.1], True), ([-0.3, -0.1, -0.1], True)):
        others = fleet(20, runs=3, rng=np.random.default_rng(4))
        assert named_again([[RunLevel(log, 0.003, 8) for log in of_first], *others]) is says


def test_of_two_nodes_the_slower_is_slow_by_two_measurements():
    def pair(*logs):
        nodes = [[RunLevel(log, 0.01, 4) for log in logs], [RunLevel(0.0, 0.01, 4)]]
        return said_again(nodes, judge_fleet(nodes))

    double = math.log(2)
    assert pair(double) == [None, None]
    assert pair(double, double) == [True, None]
    assert pair(double, 0.0) == [None, None], "the two together do not stand out"


def test_a_node_whose_rounds_scatter_is_not_called_slow_for_it():
    nodes = fleet(30, [0.06])
    assert named(nodes) == {0}
    nodes[0] = [nodes[0][0]._replace(se=0.05)]
    assert named(nodes) == set()


def test_two_nodes_are_judged_by_spreads_that_are_assumed():
    def pair(log):
        return judge_fleet([[RunLevel(log, 0.01, 4)], [RunLevel(0.0, 0.01, 4)]])

    near, far = pair(0.1), pair(math.log(2))
    assert [versus.verdict for versus in near] == ["unresolved", "unresolved"]
    assert [versus.verdict for versus in far] == ["slower", "faster"]
    assert all(versus.is_spread_assumed for versus in far)


def test_a_lone_node_has_no_verdict_and_alike_levels_do_no_harm():
    assert judge_fleet([[RunLevel(0.3, 0.01, 4)]])[0].verdict == "unresolved"
    assert {versus.verdict for versus in judge_fleet([[RunLevel(1.0)]] * 6)} == {"same"}
    assert judge_fleet([]) == []
