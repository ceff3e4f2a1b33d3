"""Levels, trends and percentiles of steps: two levels are found; drift, noise and outliers are not taken for them."""

import math

import numpy as np
import pytest

from kit.stats.modes_and_trends import (
    GAP_LEAST_PLAIN,
    LaunchSteps,
    change_in_launches,
    median_slope,
    percentile_ns,
    trending,
    two_modes,
)

ROUNDS, CYCLES = 8, 12
BLOCKS = ROUNDS * CYCLES
# Seconds: a cycle of three members, and the start of the next round.
TIMES_S = np.concatenate([number * 30 + 0.8 * np.arange(CYCLES) for number in range(ROUNDS)])


def noise(rng, sd):
    """Of blocks, and the luck of each round's process."""
    return rng.normal(0, sd, BLOCKS) + np.repeat(rng.normal(0, 0.04, ROUNDS), CYCLES)


def walk(rng, span_pct):
    """A machine whose speed wanders over `span_pct`, between rounds as well."""
    steps = rng.normal(0, np.sqrt(np.diff(TIMES_S, prepend=-0.8)))
    walked = np.cumsum(steps)
    return walked / np.ptp(walked) * math.log1p(span_pct / 100) + rng.normal(0, 0.02, BLOCKS)


def autoregressive(rng, coefficient, sd):
    values = np.zeros(BLOCKS)
    for i, shock in enumerate(rng.normal(0, sd, BLOCKS)):
        values[i] = coefficient * values[i - 1] + shock
    return values


NOTHING = {
    "noise": lambda rng: noise(rng, rng.uniform(0.01, 0.1)),
    "heavy tails": lambda rng: 0.03 * rng.standard_t(3, BLOCKS),
    "outliers": lambda rng: noise(rng, 0.03) + (rng.random(BLOCKS) < 0.06) * rng.exponential(0.5, BLOCKS),
    "autoregressive": lambda rng: autoregressive(rng, rng.uniform(0.3, 0.95), 0.05),
    "walk 10 %": lambda rng: walk(rng, 10),
    "walk 30 %": lambda rng: walk(rng, 30),
}


def modal(rng, ratio, share, how, sd):
    if how == "rounds":
        slow = np.repeat(rng.permutation(ROUNDS) < max(1, round(share * ROUNDS)), CYCLES)
    elif how == "blocks":
        slow = rng.permutation(BLOCKS) < share * BLOCKS
    else:  # for some seconds
        slow = np.roll(np.arange(BLOCKS) < share * BLOCKS, rng.integers(BLOCKS))
    return slow * math.log(ratio) + rng.normal(0, sd, BLOCKS), slow


@pytest.mark.parametrize("kind", NOTHING)
def test_one_level_is_not_two(kind):
    rng = np.random.default_rng(1)
    alarms = sum(two_modes(NOTHING[kind](rng)) is not None for _ in range(400))
    assert alarms <= 8


@pytest.mark.parametrize("span_pct", [10, 30, 60])
def test_drift_of_a_lone_cell_is_not_two_levels(span_pct):
    rng = np.random.default_rng(2)
    assert not any(two_modes(walk(rng, span_pct), gap_least=GAP_LEAST_PLAIN) for _ in range(400))


@pytest.mark.parametrize("how", ["rounds", "blocks", "seconds"])
@pytest.mark.parametrize(
    ("ratio", "sd", "least"), [(1.25, 0.02, 0.9), (1.5, 0.04, 0.95), (2.0, 0.07, 0.95)], ids=["1.25", "1.5", "2"]
)
def test_two_levels_are_found(how, ratio, sd, least):
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(200):
        values, slow = modal(rng, ratio, rng.uniform(0.12, 0.88), how, sd)
        modes = two_modes(values)
        if modes is not None:
            seen += 1
            assert modes.slow_log - modes.fast_log == pytest.approx(math.log(ratio), abs=0.6 * math.log(ratio))
            assert np.mean(modes.slow == slow) > 0.9
    assert seen / 200 >= least


def test_a_lone_cell_of_two_speeds_is_found_in_spite_of_drift():
    rng = np.random.default_rng(4)
    steps = [modal(rng, 2, 0.4, "seconds", 0.03)[0] + walk(rng, 20) for _ in range(100)]
    assert sum(two_modes(values, gap_least=GAP_LEAST_PLAIN) is not None for values in steps) >= 90


def test_modes_are_those_of_the_member_whose_own_step_follows_them():
    rng = np.random.default_rng(5)
    drift = walk(rng, 30)
    modal_own, steady_own = drift + modal(rng, 2, 0.4, "blocks", 0.02)[0], drift + rng.normal(0, 0.02, BLOCKS)
    assert two_modes(modal_own - steady_own, own_log=modal_own) is not None
    assert two_modes(steady_own - modal_own, own_log=steady_own) is None


@pytest.mark.parametrize(
    "values", [[], [1.0], [1.0] * 50, [1.0] * 3 + [2.0] * 3, [1.0, math.nan] * 20, [1.0] * 48 + [2.0] * 2]
)
def test_too_few_or_no_differences_are_one_level(values):
    assert two_modes(np.array(values)) is None


def log_ratios(rng, count=8, cycles=12, trend=0.0, noise=0.03):
    """Log-ratios that move by `trend` from the first cycle to the last."""
    return [
        rng.normal(0, 0.05) + rng.normal(0, noise, cycles) - trend * np.linspace(0, 1, cycles) for _ in range(count)
    ]


def test_a_warm_up_that_was_too_short_shows():
    (trend,) = trending([log_ratios(np.random.default_rng(1), trend=0.12)])
    low, high = trend.interval()
    assert low < np.exp(-0.08) < high < 1  # thirds lie two thirds apart
    assert trend.count == 8


def test_what_does_not_matter_is_no_trend():
    rng = np.random.default_rng(2)
    assert trending([log_ratios(rng, trend=0.006, noise=0.001)]) == [None]


@pytest.mark.parametrize(
    ("count", "members", "cycles"), [(3, 1, 12), (8, 1, 12), (8, 24, 12), (3, 1, 3), (6, 1, 4), (6, 3, 4)]
)
def test_false_alarms_are_at_most_nominal_of_however_many_members(count, members, cycles):
    rng = np.random.default_rng(count)
    repeats = 1000 if members == 1 else 200
    alarms = [any(trending([log_ratios(rng, count, cycles) for _ in range(members)])) for _ in range(repeats)]
    assert np.mean(alarms) < (0.065 if members == 1 else 0.09)  # of 200 more come by chance once in a hundred times


def test_too_few_rounds_or_cycles_say_nothing():
    rng = np.random.default_rng(4)
    members = [log_ratios(rng, count=2, trend=0.5), log_ratios(rng, cycles=2, trend=0.5), []]
    assert trending(members) == [None] * 3
    assert trending([[*log_ratios(rng, count=3, trend=0.5), *log_ratios(rng, cycles=2)]])[0].count == 3


@pytest.mark.parametrize(("percent", "needed"), [(95, 20), (99, 100)])
def test_a_percentile_needs_a_step_above_it(percent, needed):
    assert percentile_ns(np.arange(needed - 1), percent) is None
    assert percentile_ns(np.arange(needed), percent) == pytest.approx(needed - 1, abs=1)


def test_few_steps_do_not_pull_it_down():
    rng = np.random.default_rng(1)
    percentiles = [percentile_ns(rng.integers(0, 1_000_000, 20), 95) for _ in range(4000)]
    assert np.median(percentiles) == pytest.approx(950_000, rel=0.02)


def launches_of(rng, count, cycles, sd=0.03, *, kind="white", growth=0.0):
    """Launches whose blocks and their thirds are noisy; the step grows by `growth`, a logarithm, within each."""
    made = []
    for _ in range(count):
        blocks = {
            "white": rng.normal(0, sd, cycles),
            "heavy tails": sd * rng.standard_t(3, cycles),
            "walk": np.cumsum(rng.normal(0, sd, cycles)),
            "bursts": rng.normal(0, sd, cycles) + (rng.random(cycles) < 0.1) * rng.uniform(0.2, 2.3, cycles),
        }[kind]
        half = rng.random(cycles) < 0.5
        within = (rng.random(cycles) < 0.1) * rng.uniform(0.2, 2.3, cycles) if kind == "bursts" else np.zeros(cycles)
        at = growth * np.arange(cycles) / cycles
        parts = [blocks + rng.normal(0, sd, cycles) + at + growth * place / cycles for place in (1 / 6, 5 / 6)]
        early, late = parts[0] + within * half, parts[1] + within * ~half
        made.append(LaunchSteps(*(values.tolist() for values in (blocks + at + growth / 2 / cycles, early, late))))
    return made


@pytest.mark.parametrize("kind", ["white", "heavy tails", "walk", "bursts"])
@pytest.mark.parametrize(("count", "cycles"), [(3, 2), (4, 2), (4, 6), (8, 12)])
def test_noise_is_no_change_within_launches(kind, count, cycles):
    rng = np.random.default_rng(1)
    draws = 400 if cycles < 12 else 20
    alarms = sum(change_in_launches(launches_of(rng, count, cycles, kind=kind)) is not None for _ in range(draws))
    assert alarms <= 0.03 * draws


@pytest.mark.parametrize(("count", "cycles"), [(3, 1), (3, 2), (8, 2), (4, 5), (3, 6), (8, 12)])
@pytest.mark.parametrize("growth", [math.log(1.5), -math.log(1.5)])
def test_a_step_that_changes_is_found_whatever_the_number_of_cycles(count, cycles, growth):
    rng = np.random.default_rng(1)
    changes = [change_in_launches(launches_of(rng, count, cycles, 0.01, growth=growth)) for _ in range(20)]
    assert all(changes)
    assert np.median([change.log for change in changes]) == pytest.approx(growth, rel=0.15)


@pytest.mark.parametrize(("count", "cycles"), [(3, 2), (4, 2), (4, 12)])
@pytest.mark.parametrize("place", ["first", "last"])
def test_one_disturbed_block_hides_no_change_and_makes_none(count, cycles, place):
    rng = np.random.default_rng(1)
    for growth in (0.0, math.log(1.6)):
        launches = launches_of(rng, count, cycles, 0.005, growth=growth)
        for values in launches[1]:
            values[0 if place == "first" else -1] += math.log(8)
        change = change_in_launches(launches)
        assert (change is None) if growth == 0 else change.log == pytest.approx(growth, rel=0.2)


def test_blocks_that_begin_anew_change_within_themselves():
    launches = [LaunchSteps([0.1] * 6, [0.0] * 6, [0.3] * 6)] * 3
    assert change_in_launches(launches) == (pytest.approx(0.45), True)
    # Blocks that do not say how they began: the launch alone.
    assert change_in_launches([LaunchSteps([0.1 * n for n in range(6)])] * 3) == (pytest.approx(0.6), False)
    assert change_in_launches([LaunchSteps([0.0, 0.5])] * 3) is None


def test_a_median_slope_is_not_moved_by_one_value():
    assert median_slope([0.0, 1.0, 2.0, 99.0, 4.0, 5.0]) == pytest.approx(1.0)
    assert median_slope([3.0]) == 0.0


def test_a_median_slope_of_very_many_values_is_the_planted_one():
    noise = np.random.default_rng(1).normal(0, 0.05, 20_001)
    assert median_slope(list(2e-5 * np.arange(20_001) + noise)) == pytest.approx(2e-5, rel=0.1)
    # The last distance is shorter where their number is no multiple.
    for count in (250, 251, 499, 500, 501):
        assert median_slope(list(np.arange(count) * 3.0)) == pytest.approx(3.0)
