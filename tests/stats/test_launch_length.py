"""How many steps pay in a launch, on launches whose variances are known."""

import math

import numpy as np
import pytest

from kit.stats.launch_length import MEDIAN_OVER_MEAN_VARIANCE, Pilot, steps_that_pay

MS = 1_000_000


def pilots(*, between, within, launches=60, steps=4000, around_ns=2_000 * MS, seed=3, shared=0.0):
    random = np.random.default_rng(seed)
    found = []
    for _ in range(launches):
        noise = random.normal(0, within, steps)
        for i in range(1, steps):
            noise[i] = shared * noise[i - 1] + math.sqrt(1 - shared**2) * noise[i]
        found.append(Pilot((MS * np.exp(random.normal(0, between) + noise)).astype(np.int64), around_ns))
    return found


def test_the_optimum_of_kalibera_and_jones():
    found = steps_that_pay(pilots(between=0.01, within=0.05))
    expected = math.sqrt(2000 * MEDIAN_OVER_MEAN_VARIANCE * 0.05**2 / 0.01**2)
    assert found == pytest.approx(expected, rel=0.25)


def test_steps_that_share_their_noise_count_for_fewer():
    alone = steps_that_pay(pilots(between=0.01, within=0.05))
    shared = steps_that_pay(pilots(between=0.01, within=0.05, shared=0.5))
    assert shared == pytest.approx(alone * math.sqrt(3), rel=0.3)


def test_the_dearer_a_launch_the_more_steps_it_should_have():
    cheap = steps_that_pay(pilots(between=0.01, within=0.05, around_ns=500 * MS))
    dear = steps_that_pay(pilots(between=0.01, within=0.05, around_ns=8_000 * MS))
    assert dear == pytest.approx(4 * cheap, rel=0.05)


def test_where_launches_agree_there_is_no_limit():
    same = Pilot((MS * np.exp(np.random.default_rng(0).normal(0, 0.05, 400))).astype(np.int64), 1000 * MS)
    assert steps_that_pay([same, same, same]) is None


def test_that_number_gives_the_most_precise_cell_for_its_time():
    """Simulated: the variance of a cell's mean, times what it cost, is smallest at the number that is said to pay."""
    between, within, launch_ms = 0.02, 0.2, 1000.0
    best = steps_that_pay(pilots(between=between, within=within, around_ns=int(launch_ms * MS)))

    def price(steps):
        of_median = MEDIAN_OVER_MEAN_VARIANCE * within**2 / steps
        return (between**2 + of_median) * (launch_ms + steps)

    assert price(best) < min(price(best / 3), price(best * 3))
