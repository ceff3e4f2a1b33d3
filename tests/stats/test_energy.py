"""Joules from readings of known content."""

import math

import pytest

from kit.stats.energy import Joules, counter_energy, power_energy

SECOND = 1_000_000_000
PERIOD = 100_000_000
A_MINUTE_AND_A_HALF = {"seconds": 100, "end": 90, "period_ns": None}


def readings(value, seconds=14.0):
    pairs = [(at, value(at / SECOND)) for at in range(0, int(seconds * SECOND) + 1, PERIOD)]
    kept = [(at, read) for at, read in pairs if read is not None]
    return [at for at, _ in kept], [read for _, read in kept]


def of_counter(value, seconds=14.0, begin=1.0, end=13.0, period_ns=1_000_000):
    return counter_energy(*readings(value, seconds), int(begin * SECOND), int(end * SECOND), period_ns)


def stepped(power_w, update_s):
    """A counter that is fresh every `update_s`."""
    return lambda t: power_w * math.floor(t / update_s + 1e-9) * update_s


@pytest.mark.parametrize(
    ("joules", "after_12_s"),
    [
        (lambda t: 65.0 * t, 780.0),
        (lambda t: 100 * t + max(0, 50 * (t - 6)), 1550.0),
        (lambda t: None if round(t * 10) == 50 else 65.0 * t, 780.0),
    ],
    ids=["steady", "changing", "a failed read"],
)
def test_joules_over_the_window(joules, after_12_s):
    energy = of_counter(joules)
    assert energy.window_ns == pytest.approx(12 * SECOND, abs=2 * PERIOD)
    assert energy.joules_j == pytest.approx(after_12_s, rel=0.02)


def test_the_window_is_aligned_to_updates_of_the_counter():
    """1 s updates: ends that cut an update in the middle cost nothing."""
    energy = of_counter(stepped(300.0, 1.0), seconds=140, begin=10.4, end=130.6, period_ns=None)
    assert energy == Joules(pytest.approx(119 * 300.0), 119 * SECOND)


@pytest.mark.parametrize(
    ("value", "more", "code", "values"),
    [
        (lambda t: 65.0 * t, {"end": 10.9}, "energy_block_too_short", {"needed_s": 10.0}),
        (stepped(300.0, 1.0), A_MINUTE_AND_A_HALF, "energy_block_too_short", {"needed_s": 100}),
        # A longer period than the sensor claims is believed.
        (stepped(300.0, 0.5), {"seconds": 40, "end": 39}, "energy_block_too_short", {"needed_s": 50.0}),
        (lambda t: 12345.0, {}, "counter_stuck", {"block_s": 12.0}),
        (lambda t: None, {}, "counter_stuck", {}),
        (lambda t: 65.0 * (t if t < 7 else t - 7), {}, "counter_reset", {}),
        (lambda t: 65.0 * t if t < 7 else None, {}, "energy_low_coverage", {"needed_pct": 90.0}),
        (lambda t: float(t > 5), {}, "energy_low_coverage", {"coverage_pct": 0.0}),
    ],
)
def test_what_is_no_energy_is_refused(value, more, code, values):
    refusal = of_counter(value, **more)
    assert refusal.code == code
    assert {name: refusal.values[name] for name in values} == values


@pytest.mark.parametrize(
    ("power", "expected"),
    [(lambda t: 190.0, 190 * 12), (lambda t: 100 + 10 * t, 12 * 170), (lambda t: 200.0 if t != 5 else None, 200 * 12)],
)
def test_power_is_integrated(power, expected):
    energy = power_energy(*readings(power), SECOND, 13 * SECOND)
    assert energy == Joules(pytest.approx(expected), 12 * SECOND)


@pytest.mark.parametrize(
    ("power", "code"), [(lambda t: 0.0, "zero_power"), (lambda t: 9.0 if t < 3 else None, "energy_low_coverage")]
)
def test_power_that_is_none_is_refused(power, code):
    assert power_energy(*readings(power), SECOND, 13 * SECOND).code == code
