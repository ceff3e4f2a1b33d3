import re

import numpy as np
import pytest

from kit.stats.steady_state import POINTS_MAX, STEPS_MIN, find_steady_state, median_filter, noise

STEPS = 300


def series(log_levels, sigma=0.005, seed=0, autoregression=0.0):
    """Step times around 10 ms from levels of ln t; step 0 is a compile of a second."""
    shocks = np.random.default_rng(seed).normal(0, sigma, len(log_levels))
    wander = np.zeros_like(shocks)
    for index, shock in enumerate(shocks):
        wander[index] = shock + (autoregression * wander[index - 1] if index else 0)
    return np.concatenate([[1e9], 1e7 * np.exp(np.asarray(log_levels) + wander)]).astype(np.int64)


def step_at(fraction, before, steps=STEPS):
    return np.where(np.arange(steps) < fraction * steps, before, 0.0)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("sigma", "autoregression"), [(0.005, 0), (0.03, 0), (0.01, 0.5), (0.0, 0)])
def test_flat_noise_is_flat_from_step_one(seed, sigma, autoregression):
    assert find_steady_state(series(np.zeros(STEPS), sigma, seed, autoregression))[:2] == ("flat", 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.015, 0.03, 0.5, 2.0])
@pytest.mark.parametrize("at", [0.1, 0.25, 0.45])
def test_a_slower_beginning_is_warmup_and_its_end_is_found(level, at, seed):
    verdict, start, _ = find_steady_state(series(step_at(at, level), seed=seed))
    assert verdict == "warmup"
    assert abs(start - 1 - at * STEPS) <= (10 if level < 0.02 else 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.015, 0.03, 0.5])
def test_a_faster_beginning_is_slowdown(level, seed):
    assert find_steady_state(series(step_at(0.3, -level), seed=seed)).verdict == "slowdown"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.03, -0.03, 0.5])
@pytest.mark.parametrize("at", [0.6, 0.75, 0.9])
@pytest.mark.parametrize("steps", [120, STEPS])
def test_a_change_within_the_last_half_leaves_no_steady_state(level, at, seed, steps):
    assert find_steady_state(series(step_at(at, level, steps), seed=seed))[:2] == ("no_steady_state", None)


def test_a_large_change_in_the_last_quarter_of_a_short_launch_does_not_hide_in_its_own_noise():
    assert find_steady_state(series(step_at(0.75, 0.1, 60))).verdict == "no_steady_state"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("at", [0.6, 0.8, 0.9])
def test_a_burst_that_passes_is_a_disturbance(at, seed):
    levels = np.zeros(STEPS)
    levels[int(at * STEPS) : int(at * STEPS) + 14] = 0.5
    assert find_steady_state(series(levels, seed=seed)).verdict == "flat"


@pytest.mark.parametrize("seed", range(5))
def test_a_burst_in_the_first_half_is_left_behind(seed):
    levels = np.zeros(STEPS)
    levels[60:74] = 0.5
    verdict, start, _ = find_steady_state(series(levels, seed=seed))
    assert (verdict, abs(start - 75) <= 1) == ("warmup", True)


@pytest.mark.parametrize("seed", range(5))
def test_a_warmup_that_ends_just_after_the_middle_is_never_within_the_steady_steps(seed):
    verdict, start, _ = find_steady_state(series(step_at(0.52, 0.1), seed=seed))
    assert verdict == "warmup"
    assert abs(start - 1 - 0.52 * STEPS) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_a_short_noisy_launch_keeps_half_of_its_steps(seed):
    # Levels between one and two sigmas apart, the first reaching into the last half: wandering, not warm-up.
    _, start, _ = find_steady_state(series(step_at(0.75, -0.08, 36), sigma=0.05, seed=seed))
    assert start is None or start <= 21


@pytest.mark.parametrize("seed", range(5))
def test_bursts_that_fill_more_than_a_tenth_leave_no_steady_state(seed):
    levels = np.zeros(STEPS)
    for at in (0.55, 0.7, 0.85):
        levels[int(at * STEPS) : int(at * STEPS) + 14] = 0.5
    assert find_steady_state(series(levels, seed=seed)).verdict == "no_steady_state"


@pytest.mark.parametrize("seed", range(5))
def test_levels_within_the_noise_are_one_level(seed):
    assert find_steady_state(series(step_at(0.6, 0.05, 2000), sigma=0.1, seed=seed)).verdict == "flat"


def test_steps_that_differ_by_half_are_no_level():
    times = series(np.zeros(STEPS), sigma=1.5)
    sigma = noise(median_filter(np.log(times[1:])))
    assert 0.5 < sigma < np.log(2)
    reason = f"its steps scatter by {100 * np.expm1(sigma):.3g} %, which is no level"
    assert find_steady_state(times) == ("no_steady_state", None, reason)


WANDERS = re.compile(
    r"its last half has levels (?P<apart>.+) apart, and (?P<allowed>.+) is allowed; "
    r"the largest change is (?P<change>.+) (?P<way>slower|faster), (?P<place>.+) of 301"
)


def wander_of(levels, **more):
    """The parts of its reason; sizes in percent."""
    found = WANDERS.fullmatch(find_steady_state(series(levels, **more)).reason).groupdict()
    return found | {size: float(found[size].removesuffix(" %")) for size in ("apart", "allowed", "change")}


def about(log_change):
    return pytest.approx(100 * np.expm1(log_change), abs=0.5)


@pytest.mark.parametrize(("change", "way"), [(0.3, "slower"), (0.05, "slower"), (-0.05, "faster"), (-0.3, "faster")])
@pytest.mark.parametrize("seed", range(5))
def test_the_reason_names_the_planted_change(change, way, seed):
    wander = wander_of(step_at(0.7, -change), seed=seed)
    assert (wander["apart"], wander["change"], wander["way"]) == (about(abs(change)), about(abs(change)), way)
    assert 1.0 <= wander["allowed"] <= 2.5
    assert wander["place"] in {"at step 210", "at step 211", "at step 212"}


@pytest.mark.parametrize(
    ("early", "late", "way", "place"), [(0.03, 0.1, "slower", "at step 241"), (0.04, -0.3, "faster", "at step 241")]
)
def test_of_two_changes_the_larger_is_named(early, late, way, place):
    wander = wander_of(step_at(0.6, -early) + step_at(0.8, -late))
    assert wander["apart"] == about(max(early + late, abs(late)))
    assert (wander["change"], wander["way"], wander["place"]) == (about(abs(late)), way, place)


def test_a_change_of_the_first_half_is_not_the_one_that_is_named():
    # -0.02, -0.12, -0.04, 0: the largest is the fall in the first half, between levels of the last half's band.
    wander = wander_of(step_at(0.2, 0.1) + step_at(0.6, -0.08) + step_at(0.8, -0.04))
    assert (wander["change"], wander["way"], wander["place"]) == (about(0.08), "slower", "at step 181")


def test_a_burst_that_passes_is_not_the_change_that_is_named():
    levels = step_at(0.7, -0.1)
    levels[205:217] = 1.0
    wander = wander_of(levels)
    assert (wander["change"], wander["way"]) == (about(0.1), "slower")
    assert wander["place"] == "between steps 206 and 218"


def test_in_a_long_series_the_place_is_told_in_steps():
    steps = 4 * POINTS_MAX + 3
    reason = find_steady_state(series(step_at(0.8, -0.1, steps))).reason
    place = int(re.search(rf"at step (\d+) of {steps + 1}$", reason)[1])
    assert abs(place - 0.8 * steps) <= 10


@pytest.mark.parametrize(("steps", "at"), [(31, 21), (41, 28), (61, 45), (91, 70), (121, 100), (301, 200)])
def test_constant_steps_that_triple_are_not_one_level(steps, at):
    verdict, _, reason = find_steady_state(np.where(np.arange(steps) < at, 10**7, 3 * 10**7))
    assert verdict == "no_steady_state"
    assert reason.endswith(f"apart, and 1 % is allowed; the largest change is 3 times slower, at step {at} of {steps}")


@pytest.mark.parametrize("seed", range(5))
def test_levels_within_one_percent_are_one_level(seed):
    assert find_steady_state(series(step_at(0.3, 0.006), sigma=0.001, seed=seed))[:2] == ("flat", 1)


def test_a_ramp_is_warmup_and_the_steady_part_is_level():
    steps = np.arange(STEPS)
    verdict, start, _ = find_steady_state(series(0.5 * np.exp(-steps / 15)))
    assert verdict == "warmup"
    assert 30 <= start <= 120


def test_slow_then_fast_then_middling_is_a_slowdown():
    levels = np.concatenate([np.full(40, 0.3), np.full(60, -0.1), np.zeros(200)])
    assert find_steady_state(series(levels)).verdict == "slowdown"


def test_single_spikes_are_not_levels():
    times = series(np.zeros(STEPS))
    times[10::17] *= 8
    assert find_steady_state(times).verdict == "flat"


def test_a_coarse_clock_is_flat():
    coarse = np.random.default_rng(0).choice([33_000, 34_000], p=[0.7, 0.3], size=STEPS)
    assert find_steady_state(coarse).verdict == "flat"


def test_too_few_steps_have_no_steady_state():
    none = find_steady_state(np.full(STEPS_MIN, 1000))
    assert none == ("no_steady_state", None, "too few steps to see a change of level: 20 of 21")
    assert find_steady_state(np.full(STEPS_MIN + 1, 1000)).verdict == "flat"
    assert find_steady_state([]).verdict == "no_steady_state"


def test_long_series_are_thinned_and_the_start_is_still_found():
    steps = 4 * POINTS_MAX + 3
    verdict, start, _ = find_steady_state(series(step_at(0.2, 0.1, steps)))
    assert verdict == "warmup"
    assert abs(start - 0.2 * steps) <= 10


@pytest.mark.parametrize("bad", [0, -5])
def test_a_step_without_duration_is_refused(bad):
    with pytest.raises(ValueError, match="positive"):
        find_steady_state([100, bad, 100])


def test_the_scale_of_time_does_not_matter():
    times = series(step_at(0.3, 0.05))
    assert find_steady_state(times) == find_steady_state(times * 1000)


def test_median_filter_takes_the_median_of_three():
    assert median_filter(np.array([5.0, 1.0, 9.0, 2.0, 2.0])).tolist() == [5.0, 5.0, 2.0, 2.0, 2.0]
