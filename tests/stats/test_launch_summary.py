import numpy as np
import pytest

from kit.stats.launch_summary import lag_1_autocorrelation, summarize_launch


def noisy(level_ns, steps, seed=0):
    return np.rint(level_ns * np.exp(np.random.default_rng(seed).normal(0, 0.005, steps))).astype(np.int64)


def test_steady_steps_begin_at_the_later_of_plan_and_detection():
    times = np.concatenate([[10**9], noisy(2e7, 99), noisy(1e7, 300)])
    early = summarize_launch(times, 20, 3)
    assert (early.round, early.verdict) == (3, "warmup")
    assert early.warmup_steps == pytest.approx(100, abs=2)
    assert early.steady_steps == times.size - early.warmup_steps
    late = summarize_launch(times, 250, 3)
    assert late.steady_steps == 150
    assert late.warmup_steps == early.warmup_steps
    assert late.median_ns == int(np.rint(np.median(times[250:])))
    assert late.p95_ns == int(np.rint(np.percentile(times[250:], 95)))


def test_without_a_steady_state_there_is_no_steady_number():
    times = np.concatenate([[10**9], noisy(1e7, 200), noisy(2e7, 100)])
    summary = summarize_launch(times, 20, 0)
    assert summary.verdict == "no_steady_state"
    assert (summary.median_ns, summary.p95_ns, summary.warmup_steps, summary.autocorrelation) == (None,) * 4
    assert summary.steady_steps == 0
    assert summary.reason.startswith("its last half has levels ")


def test_a_launch_with_numbers_needs_no_reason():
    assert summarize_launch(noisy(1e7, 300), 20, 0).reason is None


def test_a_plan_that_leaves_almost_no_steady_steps_gives_no_number():
    summary = summarize_launch(noisy(1e7, 100), 95, 0)
    assert (summary.verdict, summary.median_ns) == ("no_steady_state", None)
    assert summary.reason == "too few steps come after the warm-up: 5 of 10"


def test_autocorrelation_of_a_planted_process():
    shocks = np.random.default_rng(0).normal(size=20_000)
    values = np.zeros_like(shocks)
    for index in range(1, values.size):
        values[index] = 0.6 * values[index - 1] + shocks[index]
    assert lag_1_autocorrelation(values) == pytest.approx(0.6, abs=0.02)
    assert lag_1_autocorrelation(shocks) == pytest.approx(0.0, abs=0.02)


def test_autocorrelation_of_a_constant_is_unknown():
    assert summarize_launch([1000] * 100, 10, 0).autocorrelation is None
