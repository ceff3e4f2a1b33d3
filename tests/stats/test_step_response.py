"""Planted responses of sensors to steps of load: delay, window and level are read back."""

import numpy as np
import pytest

from kit.stats.step_response import step_response

IDLE_W, LOAD_W = 122.0, 696.0
LOADS_S = ((3.013, 7.041), (10.067, 14.088), (17.029, 21.054))
LENGTH_S = 24.0
ZERO_NS = 10**15  # a machine that has run for eleven days


def planted(
    delay_s=0.0, window_s=0.0, gain=1.0, *, period_s=0.1, spacing_s=0.02, noise_w=3.0, counter=False, warms_w=0.0
):
    """Return when such a sensor was read and what it read; its updates and who reads it keep time by themselves."""
    rng = np.random.default_rng(0)
    grid_s = np.arange(-3.0, LENGTH_S, 0.001)
    loaded = np.zeros(grid_s.size, bool)
    power_w = np.full(grid_s.size, IDLE_W)
    for begin, end in LOADS_S:
        loaded = (grid_s >= begin) & (grid_s < end)
        power_w[loaded] = LOAD_W + warms_w * (grid_s[loaded] - begin) / (end - begin)
    energy_j = np.concatenate([[0.0], np.cumsum(power_w[:-1]) * 0.001])

    def mean_w(at_s):
        late, early = at_s - delay_s, at_s - delay_s - max(window_s, 0.001)
        return (np.interp(late, grid_s, energy_j) - np.interp(early, grid_s, energy_j)) / (late - early)

    updates_s = np.arange(-rng.uniform(0, period_s), LENGTH_S, period_s)
    shown = mean_w(updates_s)
    if counter:
        fine_j = np.concatenate([[0.0], np.cumsum(mean_w(grid_s)[:-1]) * 0.001])
        shown = np.interp(updates_s, grid_s, fine_j)
    shown = gain * shown + (0 if counter else rng.normal(0, noise_w, shown.size))
    at_s = np.arange(0.0, LENGTH_S, spacing_s)
    at_s += rng.uniform(0, spacing_s / 10, at_s.size)
    held = shown[np.searchsorted(updates_s, at_s, side="right") - 1]
    return (ZERO_NS + at_s * 1e9).astype(np.int64).tolist(), held.tolist()


LOADS = [(ZERO_NS + round(begin * 1e9), ZERO_NS + round(end * 1e9)) for begin, end in LOADS_S]


@pytest.mark.parametrize("spacing_s", [0.02, 0.05, 0.1])
@pytest.mark.parametrize(
    ("delay_s", "window_s", "gain", "counter"),
    [
        (0.0, 0.0, 1.0, False), (0.0, 0.0, 0.997, True), (0.08, 0.0, 1.0, False), (0.05, 1.0, 0.95, False),
        (0.3, 0.5, 1.0, True), (0.0, 1.0, 1.1, True), (0.5, 0.1, 1.0, False),
    ],
)  # fmt: skip
def test_what_was_planted_is_read_back(delay_s, window_s, gain, counter, spacing_s):
    at_ns, values = planted(delay_s, window_s, gain, spacing_s=spacing_s, counter=counter, warms_w=10.0)
    response = step_response(at_ns, values, LOADS, is_counter=counter)
    # What is read as often as it is fresh is up to a reading old, and nothing shows by how much.
    assert response.lag_ns / 1e9 == pytest.approx(delay_s + window_s / 2, abs=0.03 if spacing_s < 0.1 else 0.1)
    assert response.window_ns / 1e9 == pytest.approx(window_s, abs=0.1)
    assert response.delay_ns / 1e9 == pytest.approx(delay_s, abs=0.06 if spacing_s < 0.1 else 0.11)
    assert response.load == pytest.approx(gain * (LOAD_W + 5), rel=0.01)
    assert (response.before, response.after) == pytest.approx((gain * IDLE_W, gain * IDLE_W), rel=0.03)
    assert response.lag_high_ns - response.lag_low_ns < 1.2e8
    assert abs(response.lag_ns - (response.lag_low_ns + response.lag_high_ns) / 2) < 6e7
    assert response.period_ns == pytest.approx(1e8, rel=0.2)


def test_a_clock_that_stands_still_between_its_steps_is_read_back():
    at_ns, values = planted(noise_w=0.0, period_s=0.001)
    response = step_response(at_ns, values, LOADS)
    assert abs(response.lag_ns) <= 2e7
    assert (response.before, response.load, response.after) == pytest.approx((IDLE_W, LOAD_W, IDLE_W), rel=1e-3)


def test_what_shows_no_response_is_refused_with_the_reason():
    def code(at_ns, values, **more):
        return step_response(at_ns, values, LOADS, **more).code

    at_ns, values = planted()
    gone = [value if at < LOADS[1][0] else None for at, value in zip(at_ns, values, strict=True)]
    assert code(at_ns, gone) == "readings_lost"
    assert code([], []) == "readings_lost"
    assert code(*planted(period_s=1.5)) == "sensor_slower_than_load"
    assert code(*planted(window_s=6.0)) == "sensor_slower_than_load"
    assert code(*planted(window_s=6.0, counter=True), is_counter=True) == "sensor_slower_than_load"
    assert code(at_ns, np.random.default_rng(1).normal(122, 3, len(at_ns)).tolist()) == "no_step"
    assert code(at_ns, [122.0] * len(at_ns)) == "value_did_not_change"
    at_ns, values = planted(counter=True)
    assert code(at_ns, values[::-1], is_counter=True) == "counter_reset"


@pytest.mark.parametrize("period_s", [0.1, 0.25])
def test_the_period_is_that_of_the_readings_and_not_the_assumed_one(period_s):
    at_ns, values = planted(period_s=period_s)
    assert step_response(at_ns, values, LOADS, 100_000_000).period_ns == pytest.approx(period_s * 1e9, rel=0.1)
