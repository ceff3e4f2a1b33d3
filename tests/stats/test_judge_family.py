"""Verdicts on simulated rounds whose truth is known: false alarms, coverage, power, and the rule's corners."""

import math

import numpy as np
import pytest
from scipy import stats

from kit.stats.difference import interval_at
from kit.stats.verdict import (
    ROUNDS_PRELIMINARY,
    adjusted_p,
    judge_family,
    precise_enough,
)

TRIALS = 2000


def family(rng, truths, rounds, sd):
    """Log-ratios of pairs of one group; pairs share members, so that their luck is shared as well."""
    luck = rng.normal(0, sd / math.sqrt(2), (len(truths) + 1, rounds))
    return [(math.log(truth) + own - luck[-1]).tolist() for truth, own in zip(truths, luck, strict=False)]


@pytest.mark.parametrize("rounds", [3, 4, 8])
def test_false_alarms_of_a_cell_against_itself_are_at_most_the_nominal_share(rounds):
    rng = np.random.default_rng(rounds)
    alarms = sum(
        judge_family(family(rng, [1.0], rounds, 0.02))[0].verdict in ("faster", "slower") for _ in range(TRIALS)
    )
    assert 0.025 < alarms / TRIALS < 0.065


def test_a_group_of_equals_raises_a_false_alarm_no_oftener_than_a_pair():
    rng = np.random.default_rng(5)
    alarmed = sum(
        any(one.verdict in ("faster", "slower") for one in judge_family(family(rng, [1.0] * 3, 8, 0.02)))
        for _ in range(TRIALS)
    )
    assert alarmed / TRIALS < 0.065


def test_intervals_shown_with_a_difference_hold_the_truth_as_often_as_promised():
    """The false coverage rate: of those selected, intervals at 95 % miss oftener than one in twenty."""
    rng, truths = np.random.default_rng(6), [1.0, 1.0, 1.01, 1.02]
    missed, missed_at_95 = [], []
    for _ in range(TRIALS):
        judged = zip(judge_family(family(rng, truths, 5, 0.015)), truths, strict=True)
        selected = [(one.difference, truth) for one, truth in judged if one.p_adjusted <= 0.05]
        missed.append(share_missed(selected))
        missed_at_95.append(share_missed([(interval_at(one, 0.95), truth) for one, truth in selected]))
    assert np.mean(missed) < 0.055
    assert np.mean(missed_at_95) > np.mean(missed)


def share_missed(intervals):
    return np.mean([not one.low <= truth <= one.high for one, truth in intervals]) if intervals else 0.0


@pytest.mark.parametrize(("truth", "least", "most"), [(1.03, 0.95, 1.0), (1.02, 0.65, 0.95)])
def test_power_is_as_measured(truth, least, most):
    """rounds.md: five rounds found a planted 3 % every time and 2 % in 71 to 87 %, PyTorch training (SD 1.1 %)."""
    rng = np.random.default_rng(7)
    found = sum(judge_family(family(rng, [truth], 5, 0.011))[0].verdict == "slower" for _ in range(TRIALS))
    assert least <= found / TRIALS <= most


def test_same_is_said_of_quiet_cells_and_seldom_wrongly():
    rng = np.random.default_rng(8)

    def share(truth, sd):
        return np.mean([judge_family(family(rng, [truth], 8, sd))[0].verdict == "same" for _ in range(TRIALS)])

    assert share(1.0, 0.004) > 0.99
    assert share(1.0, 0.05) < 0.05
    assert share(1.0101, 0.005) < 0.06


@pytest.mark.parametrize(
    ("logs", "verdict"),
    [
        ([0.30, 0.31, 0.29], "slower"),
        ([-0.30, -0.31, -0.29], "faster"),
        ([0.30, 0.31], "unresolved"),
        ([0.30], "unresolved"),
        ([], "unresolved"),
        ([0.005, 0.0051, 0.0049], "same"),  # shown to differ, and by nothing that matters
        ([0.012, -0.02, 0.03], "unresolved"),
    ],
)
def test_corners_of_the_rule(logs, verdict):
    judged = judge_family([logs])[0]
    assert judged.verdict == verdict
    assert (judged.p_adjusted is None) == (len(logs) < 3)
    assert (judged.difference is None) == (len(logs) < 2)


def test_the_smallest_difference_that_matters_is_the_users():
    logs = [0.03, 0.031, 0.029]
    assert judge_family([logs])[0].verdict == "slower"
    assert judge_family([logs], smallest=0.05)[0].verdict == "same"


def test_a_pair_turned_round_is_judged_the_other_way_round():
    logs = [0.011, 0.013, 0.010, 0.012]
    one, other = judge_family([logs])[0], judge_family([[-log for log in logs]])[0]
    assert (one.verdict, other.verdict) == ("slower", "faster")
    assert one.difference.low == pytest.approx(1 / other.difference.high)


def test_selected_intervals_are_as_wide_as_their_number_asks_and_exclude_one():
    plain, beside = [0.05, 0.06, 0.055, 0.052], [0.02, -0.02, 0.01, -0.013]
    alone = judge_family([plain])[0]
    judged = judge_family([plain, beside, beside])
    assert judged[0].difference.level == pytest.approx(1 - 0.05 / 3)
    assert judged[0].difference.low < alone.difference.low
    assert judged[0].difference.low > 1
    assert judged[1].difference.level == 0.95
    assert judged[0].p_adjusted > alone.p_adjusted


def test_pairs_that_cannot_be_tested_do_not_cost_the_others():
    assert judge_family([[0.05, 0.06, 0.055], [0.1], []])[0] == judge_family([[0.05, 0.06, 0.055]])[0]


def test_adjusted_p_is_benjamini_and_hochbergs():
    p = np.random.default_rng(9).random(20) ** 3
    assert adjusted_p(p) == pytest.approx(stats.false_discovery_control(p))
    assert adjusted_p([]) == []


def test_precision_is_not_looked_at_before_round_8_and_then_held():
    logs = np.random.default_rng(10).normal(0.1, 0.02, 200)
    assert not precise_enough(logs[: ROUNDS_PRELIMINARY - 1], 50)
    assert precise_enough(logs[:ROUNDS_PRELIMINARY], 50)
    half = stats.t.ppf(0.975, 199) * np.std(logs, ddof=1) / math.sqrt(200)
    assert precise_enough(logs, 101 * math.expm1(half))
    assert not precise_enough(logs, 99 * math.expm1(half))


def test_looking_from_round_8_on_covers_nearly_as_promised():
    """rounds.md: 93 to 95 %; looking from round 3 on covered 90 %."""
    rng, held = np.random.default_rng(11), 0
    trials = 500
    for _ in range(trials):
        logs = rng.normal(0, 0.03, 40).tolist()
        stop = next((n for n in range(ROUNDS_PRELIMINARY, 41) if precise_enough(logs[:n], 2)), 40)
        difference = judge_family([logs[:stop]])[0].difference
        held += difference.low <= 1 <= difference.high
    assert held / trials > 0.9
