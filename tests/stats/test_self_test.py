"""The whole answer, on launches whose truth is planted."""

import math

import msgspec
import numpy as np
import pytest
from measured_series import self_test_launches

from kit.profile.launch import Failure, Threads, Utilization
from kit.stats.self_test import APART, SHUFFLED, judge_self_test

HARDWARE = "a" * 64


def judged(launches, simulated=60):
    return judge_self_test(launches, cpu="Example CPU", hardware_sha256=HARDWARE, simulated=simulated)


@pytest.fixture(scope="module")
def quiet():
    return judged(self_test_launches(np.random.default_rng(4), 20), simulated=200)


def rule(answer, name):
    return next(tally for tally in answer.rules if tally.rule == name)


def test_a_quiet_host_finds_three_percent_and_raises_no_alarm(quiet):
    ours = rule(quiet, "kit, paired, band 1 %")
    for tallies in (ours.real, ours.simulated):
        assert tallies["+3 %"].slower >= 0.95 * tallies["+3 %"].comparisons
        assert tallies["+5 %"].slower == tallies["+5 %"].comparisons
        shuffled = tallies[SHUFFLED]
        assert shuffled.faster + shuffled.slower <= 0.05 * shuffled.comparisons
        # Launches that ran apart cannot be paired.
        assert tallies[APART] is None
    assert quiet.host_band.band < 0.01
    assert quiet.host_band.hardware_sha256 == HARDWARE
    assert quiet.host_band.launches == 40
    assert quiet.launches_a_side == 10
    plants = {count.planted_slowdown_pct: count.measured for count in quiet.launches}
    assert plants[0.0] is None
    for slowdown_pct in (2.0, 3.0, 5.0):
        assert plants[slowdown_pct].value == pytest.approx(1 + slowdown_pct / 100, abs=0.006)


def test_real_comparisons_are_at_least_forty_and_rivals_are_asked_the_same(quiet):
    assert sum(not tally.ours for tally in quiet.rules) == 5
    for tally in quiet.rules:
        assert tally.real[SHUFFLED].comparisons == 200
        if tally.real[APART] is not None:
            assert tally.real[APART].comparisons >= 40
        assert tally.simulated[SHUFFLED].comparisons == 200


def test_drift_shows_in_sides_that_ran_apart_and_widens_the_band():
    launches = self_test_launches(
        np.random.default_rng(5), 20, drift=lambda place: 0.05 * math.sin(2 * math.pi * place)
    )
    answer = judged(launches)
    assert answer.band_apart > 4 * answer.band_shuffled
    assert answer.host_band.band == max(answer.band_apart, answer.band_shuffled, answer.band_expected)
    assert answer.host_band.band_in_turns == answer.band_shuffled
    apart = rule(answer, "kit, Welch, band 1 %").real[APART]
    assert apart.faster + apart.slower > 0.2 * apart.comparisons
    within = rule(answer, "kit, Welch, host's band").real[APART]
    assert within.faster + within.slower <= 0.06 * within.comparisons
    # What took turns shares the drift: a slow-down is found that the band of the host would hide.
    turns, hidden = rule(answer, "kit, paired, band 1 %"), rule(answer, "kit, paired, host's band")
    assert turns.real["+3 %"].slower >= 0.95 * turns.real["+3 %"].comparisons
    assert hidden.real["+3 %"].slower == 0


def test_too_few_launches_give_no_band_and_say_so():
    answer = judged(self_test_launches(np.random.default_rng(6), 4), simulated=20)
    assert answer.host_band is None
    assert "18 unslowed launches with a steady state are needed, 8 are there" in answer.no_band
    assert answer.launches_a_side == 4
    few = judged(self_test_launches(np.random.default_rng(6), 1))
    assert few.rules[0].real == {}
    assert few.noise is None


def test_failed_launches_are_counted_and_left_out():
    launches = self_test_launches(np.random.default_rng(7), 4)
    for launch in launches[3:5]:
        launch.failure = Failure(phase="import", reason="planted")
    answer = judged(launches, simulated=20)
    assert answer.failed == 2
    assert sum(count.finished for count in answer.launches) == len(launches) - 2
    nothing = judged([msgspec.structs.replace(launches[3], step_ns=None)])
    assert nothing.failed == 1
    assert nothing.host_band is None


def test_the_answer_is_the_same_each_time():
    launches = self_test_launches(np.random.default_rng(8), 6)
    assert judged(launches, simulated=20) == judged(launches, simulated=20)


def test_launches_whose_cpus_others_had_are_not_judged():
    launches = self_test_launches(np.random.default_rng(7), 4)
    before = {count.planted_slowdown_pct: count.steady for count in judged(launches, simulated=20).launches}
    place = next(place for place, launch in enumerate(launches) if launch.planted_slowdown_pct == 0)
    launch = launches[place]
    launch.threads = Threads(requested=2, reported=2, reported_reason=None, cpus=[0, 1])
    launch.utilization = Utilization(
        process_cpu_pct=100.0,
        machine_cpu_pct=200.0,
        rss_peak_b=None,
        frequency_mhz=None,
        throttled_ns=None,
        cpu_taken_pct=100.0,
        samples=9,
        sampler_cpu_pct=0.3,
    )
    after = {count.planted_slowdown_pct: count.steady for count in judged(launches, simulated=20).launches}
    assert after == before | {0.0: before[0.0] - 1}
