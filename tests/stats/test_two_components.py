"""What a start and a cycle add to a ratio: planted variances come out, and no other number of cycles is better."""

import math

import numpy as np
import pytest

from kit.stats.estimate import over
from kit.stats.two_components import (
    CYCLES_LEAST,
    CYCLES_MOST,
    Components,
    GroupSeen,
    best_cycles,
    components,
    half_width,
    rounds_for_half_width,
)


def rounds(start_sd, cycle_sd, count, cycles, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(0, start_sd) + rng.normal(0, cycle_sd, cycles)).tolist() for _ in range(count)]


@pytest.mark.parametrize(("start_sd", "cycle_sd"), [(0.03, 0.05), (0.0, 0.05), (0.02, 0.01)])
def test_planted_components_come_out(start_sd, cycle_sd):
    seen = components(rounds(start_sd, cycle_sd, 3000, 12))
    assert math.sqrt(seen.cycle) == pytest.approx(cycle_sd, rel=0.1)
    assert math.sqrt(seen.start) == pytest.approx(start_sd, abs=0.004)


@pytest.mark.parametrize(("start_sd", "cycle_sd", "cycles"), [(0.02, 0.05, 4), (0.0, 0.04, 12), (0.03, 0.0, 3)])
def test_the_half_width_that_is_foreseen_is_that_of_runs(start_sd, cycle_sd, cycles):
    widths = [
        over([float(np.median(logs)) for logs in rounds(start_sd, cycle_sd, 10, cycles, seed)]).half_width(0.95)
        for seed in range(400)
    ]
    planted = Components(start_sd**2, cycle_sd**2)
    assert half_width(planted, cycles, 10) == pytest.approx(float(np.sqrt(np.mean(np.square(widths)))), rel=0.1)


def test_one_bimodal_round_and_too_few_cycles_show_no_components():
    assert components([]) is None
    assert components([[0.1, 0.2]]) is None
    assert components([[0.1], [0.2], [0.3]]) is None
    usual = components(rounds(0.0, 0.02, 8, 6))
    stalled = [*rounds(0.0, 0.02, 7, 6), [0.0, 0.01, -0.01, 0.0, 0.9, 0.8]]
    assert components(stalled).cycle < 2 * usual.cycle


@pytest.mark.parametrize("left_s", [None, 60.0, 600.0])
@pytest.mark.parametrize(
    "pair", [Components(0.02**2, 0.05**2), Components(0.001**2, 0.05**2), Components(0.03**2, 0.0)]
)
def test_no_other_number_of_cycles_leaves_narrower_intervals(pair, left_s):
    start_s, cycle_s = 8.0, 0.6
    (cycles,) = best_cycles({"g": GroupSeen([pair], cycle_s)}, start_s, 2, left_s).values()
    assert CYCLES_LEAST <= cycles <= CYCLES_MOST

    def width(count):
        # Without an end, after a long time: there the interval shrinks with the root of the time.
        whole_s = 1e5 if left_s is None else left_s
        more = whole_s / (start_s + count * cycle_s)
        return half_width(pair, count, 2 + more) * math.sqrt((2 + more) / more)  # of the rounds to come

    assert width(cycles) <= 1.001 * min(map(width, range(CYCLES_LEAST, CYCLES_MOST + 1)))


def test_little_time_gets_short_rounds_and_more_than_the_planned_rounds_take_gets_many_cycles():
    groups = {"g": GroupSeen([Components(0.03**2, 0.03**2)], 2.0)}
    assert best_cycles(groups, 8.0, 4, 0.0) == {"g": CYCLES_LEAST}
    assert best_cycles(groups, 8.0, 4, 1e5, most=8) == {"g": CYCLES_MOST}


def test_a_start_that_keeps_nothing_gets_many_cycles_and_one_that_keeps_all_the_fewest():
    groups = {
        "cycles": GroupSeen([Components(0.0, 0.05**2)], 0.5),
        "starts": GroupSeen([Components(0.05**2, 1e-8)], 0.5),
        "nothing": GroupSeen([Components(0.0, 0.0)], 0.5),
    }
    chosen = best_cycles(groups, 20.0, 2, 3600.0)
    assert chosen["cycles"] > 10 * chosen["starts"] / CYCLES_LEAST
    assert chosen["starts"] == chosen["nothing"] == CYCLES_LEAST


def test_rounds_for_a_half_width_are_enough_and_one_fewer_are_not():
    pair = Components(0.02**2, 0.05**2)
    needed = rounds_for_half_width(pair, 4, 0.01)
    assert half_width(pair, 4, needed) <= 0.01 < half_width(pair, 4, needed - 1)
