"""Fleets with planted nodes: the slow ones are named and no others, as often as is promised."""

import math

import numpy as np
import pytest

from kit.stats.fleet import judge_fleet
from kit.stats.runs import RunLevel
from kit.stats.verdict import ALPHA

SD = 0.01


def fleet(count, slow=(), rng=None, runs=1, se=0.003):
    """Levels of nodes that scatter by SD; `slow`: logarithms by which the first ones are slower."""
    rng = rng or np.random.default_rng(count)
    levels = rng.normal(0, SD, count)
    levels[: len(slow)] += slow
    return [[RunLevel(float(level), se, 4)] * runs for level in levels]


def named(nodes):
    return {place for place, versus in enumerate(judge_fleet(nodes)) if versus.verdict in ("slower", "faster")}


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
            [RunLevel(float(level + of), 0.003, 10) for of in rng.normal(0, 0.026, count)]
            for level, count in zip(levels, counts, strict=True)
        ]
        wrong += bool(named(nodes))
    assert wrong <= draws * ALPHA + 2.5 * math.sqrt(draws * ALPHA)


def test_several_slow_nodes_do_not_hide_each_other():
    for count, slow in ((500, 5), (40, 8), (12, 3), (8, 2)):
        judged = judge_fleet(fleet(count, [0.1] * slow))
        assert {place for place, versus in enumerate(judged) if versus.verdict == "slower"} == set(range(slow))
        assert not any(versus.verdict == "faster" for versus in judged)


def test_the_ratio_and_its_interval_hold_what_was_planted():
    rng, held = np.random.default_rng(3), 0
    for _ in range(100):
        judged = judge_fleet(fleet(100, [0.08], rng=rng))[0]
        assert judged.verdict == "slower" and judged.low > 1 and judged.p_adjusted <= ALPHA
        held += judged.low <= math.exp(0.08) <= judged.high
    assert held >= 95


def test_intervals_of_alike_nodes_cover_one_as_often_as_they_say():
    rng, held, of = np.random.default_rng(5), 0, 0
    for _ in range(40):
        for versus in judge_fleet(fleet(20, rng=rng)):
            held += versus.low <= 1 <= versus.high
            of += 1
    assert 0.92 <= held / of <= 0.98


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
