"""Which launches are compared with which."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from measured_series import measured

from kit.stats import self_comparisons, simulated_launches
from kit.stats.aa_band import aa_band
from kit.stats.binomial import share_interval
from kit.stats.rules import Question, rules
from kit.stats.self_comparisons import apart, planted, shuffled

NO_BAND = {"no band": 0.0}
OURS = [rule for rule in rules(NO_BAND, NO_BAND) if rule.ours]


@pytest.fixture
def random():
    return np.random.default_rng(0)


def places(launches):
    return [launch.round for launch in launches]


@pytest.mark.parametrize(("launches", "side"), [(40, 10), (28, 10), (21, 6), (18, 5), (9, 4)])
def test_sides_are_disjoint_and_equally_long(random, launches, side):
    unslowed = measured(random, launches)
    assert self_comparisons.launches_a_side(unslowed) == side
    for question in [*shuffled(unslowed, 50, random), *apart(unslowed, random)]:
        ours, theirs = places(question.candidate), places(question.baseline)
        assert len(set(ours)) == len(set(theirs)) == side
        assert not set(ours) & set(theirs)


@pytest.mark.parametrize("launches", range(self_comparisons.UNSLOWED_FOR_BAND, 45))
def test_enough_launches_make_forty_comparisons(random, launches):
    assert len(apart(measured(random, launches, steps=5), random)) >= 40


def test_shuffled_sides_take_turns_and_apart_sides_do_not(random):
    unslowed = measured(random, 40)
    for question in shuffled(unslowed, 20, random):
        assert question.paired
        assert all(a // 2 == b // 2 for a, b in zip(*map(places, question[:2]), strict=True))
    questions = apart(unslowed, random)
    assert len(questions) == 231
    for question in questions:
        first, second = sorted([places(question.candidate), places(question.baseline)])
        assert not question.paired
        assert max(first) < min(second)
    # The baseline is the earlier side in about half of them.
    earlier = sum(places(question.baseline)[0] < places(question.candidate)[0] for question in questions)
    assert 70 < earlier < 160


def test_slowed_launches_are_compared_within_their_round(random):
    slowed, unslowed = measured(random, 20, slower_pct=3), measured(random, 20) + measured(random, 20)
    for question in planted(slowed, unslowed[5:], 50, random):
        assert places(question.candidate) == places(question.baseline)
        assert len(set(places(question.candidate))) == 10
        assert all(launch.median_ns > 0 for launch in question.baseline)
    assert planted(slowed[:3], unslowed[5:20], 50, random) == []


def test_the_band_is_what_95_in_100_stay_within(random):
    def question(ratio):
        (baseline,) = measured(random, 1)
        return Question([baseline._replace(median_ns=baseline.median_ns * ratio)], [baseline], paired=False)

    assert aa_band([]) is None
    strays = [question(1 + place / 1000) for place in range(101)]
    assert aa_band(strays) == pytest.approx(0.095, abs=1e-4)
    # Which side is the baseline plays no role.
    assert aa_band([Question(q.baseline, q.candidate, paired=False) for q in strays]) == pytest.approx(aa_band(strays))


@pytest.mark.parametrize("of", [20, 1000])
def test_the_interval_of_a_share_holds_it_95_times_in_100(random, of):
    for share in (0.05, 0.5):
        held = [
            low <= share <= high for low, high in (share_interval(int(n), of) for n in random.binomial(of, share, 500))
        ]
        assert np.mean(held) >= 0.93
    assert share_interval(0, of)[0] == 0
    assert share_interval(of, of)[1] == 1


def test_simulated_launches_are_like_those_they_were_learned_from(random):
    levels = [0.0]
    for step in random.normal(0, 0.02, 399):
        levels.append(0.6 * levels[-1] + step)
    seen = measured(random, 400, levels=levels, steps=80)
    model = simulated_launches.learn(seen)
    assert model.launch_spread == pytest.approx(0.025, rel=0.25)
    assert model.resemblance == pytest.approx(0.6, abs=0.15)
    assert model.step_spread == pytest.approx(0.05, rel=0.2)
    drawn = [launch for q in simulated_launches.apart(model, 300, random) for launch in (*q.baseline, *q.candidate)]
    again = simulated_launches.learn(drawn)
    assert again.launch_spread == pytest.approx(model.launch_spread, rel=0.15)
    assert again.step_spread == pytest.approx(model.step_spread, rel=0.1)


def test_simulated_slow_downs_are_as_large_as_planted(random):
    model = simulated_launches.learn(measured(random, 40))
    ratios = [
        np.mean(
            np.log([ours.median_ns / theirs.median_ns for ours, theirs in zip(q.candidate, q.baseline, strict=True)])
        )
        for q in simulated_launches.planted(model, 5.0, 300, random)
    ]
    assert np.exp(np.mean(ratios)) == pytest.approx(1.05, abs=0.002)


@pytest.mark.parametrize(("resemblance", "kind"), [(0.0, "apart"), (0.0, "planted"), (0.5, "planted")])
def test_launches_that_do_not_drift_apart_raise_alarms_five_times_in_a_hundred(random, resemblance, kind):
    """Of the kit's own rules, before the band takes effect. Rounds that turn round leave a little over five, drawn
    pairs of rounds being alike: 6.3 % at most."""
    model = simulated_launches.learn(measured(random, 40, spread=0.03))._replace(resemblance=resemblance)
    draw = simulated_launches.apart if kind == "apart" else partial(simulated_launches.planted, slowdown_pct=0.0)
    said = Counter()
    for question in draw(model, comparisons=4000, random=random):
        for rule in OURS:
            if question.paired or not rule.needs_pairs:
                said[rule.name] += rule.answer(question) in ("faster", "slower")
    for alarms in said.values():
        assert alarms <= (0.075 if resemblance else 0.06) * 4000


def test_launches_that_resemble_each_other_raise_alarms_between_sides_that_ran_apart(random):
    """Why the host has a band."""
    model = simulated_launches.learn(measured(random, 40, spread=0.03))._replace(resemblance=0.6)
    (welch,) = [rule for rule in OURS if not rule.needs_pairs]
    said = [welch.answer(question) for question in simulated_launches.apart(model, 500, random)]
    assert sum(verdict in ("faster", "slower") for verdict in said) > 0.15 * len(said)
