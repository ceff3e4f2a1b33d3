"""What a run still has to do: fixed numbers of launches, and launches until a precision is reached."""

import numpy as np
import pytest
from profile_builder import build_blank_launch, build_launch, build_run_plan, six_cells

from kit.engines import continuation
from kit.engines.continuation import LAUNCHES_TO_GIVE_UP, Continuation
from kit.engines.pilots import PILOT_LAUNCHES
from kit.stats.precision import SEQUENTIAL_LAUNCHES_MAX, SEQUENTIAL_LAUNCHES_MIN

CELLS = [result.cell for result in six_cells()]
A, B = CELLS[:2]
RANDOM = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _the_same_numbers_in_whatever_order_tests_run():
    RANDOM.bit_generator.state = np.random.default_rng(7).bit_generator.state


def steady(cell, round, level_ns, noise=0.002):
    """A launch of 120 steady steps around a level."""
    steps = (level_ns * np.exp(RANDOM.normal(0, noise, 141))).astype(int)
    return build_launch(cell, round, step_ns=[50_000_000, *map(int, steps[1:])], warmup_steps=21)


def unsteady(cell, round):
    steps = np.where(np.arange(141) < 100, 1_000_000, 2_000_000)
    return build_launch(cell, round, step_ns=[int(step) for step in steps], warmup_steps=21)


def run(plan, answer):
    """Launch after launch until the plan is content."""
    continuation, ended = Continuation(plan), []
    while requests := continuation.rest_of_round(ended):
        ended += [answer(request) for request in requests]
        assert len(ended) <= len(plan.cells) * SEQUENTIAL_LAUNCHES_MAX
    return ended, continuation


def count_of(ended, cell):
    return sum(launch.cell_key == cell.key for launch in ended)


def test_a_fixed_number_of_launches():
    ended, continuation = run(build_run_plan(CELLS, launches=3), lambda r: build_blank_launch(r.cell.key, r.round))
    assert [count_of(ended, cell) for cell in CELLS] == [3] * len(CELLS)
    assert continuation.enough(ended)
    assert not any(continuation.expected(ended).values())


@pytest.mark.parametrize("kept", range(0, 18, 5))
def test_a_resumed_run_has_exactly_the_launches_that_had_not_ended(kept):
    plan = build_run_plan(CELLS, launches=3)
    ended, _ = run(plan, lambda r: build_blank_launch(r.cell.key, r.round))
    resumed, known = Continuation(plan), ended[:kept]
    while requests := resumed.rest_of_round(known):
        known = known + [build_blank_launch(r.cell.key, r.round) for r in requests]
    assert [(x.cell_key, x.round) for x in known] == [(x.cell_key, x.round) for x in ended]


def test_a_launch_that_was_lost_from_the_middle_is_run_again():
    plan = build_run_plan(CELLS, launches=3)
    ended, continuation = run(plan, lambda r: build_blank_launch(r.cell.key, r.round))
    lost = ended.pop(7)
    (again,) = continuation.rest_of_round(ended)
    assert (again.cell.key, again.round) == (lost.cell_key, lost.round)
    assert sum(continuation.expected(ended).values()) == 1


def test_a_failed_cell_is_left_out_and_not_waited_for():
    plan = build_run_plan(CELLS, launches=3)
    ended, continuation = run(
        plan, lambda r: build_blank_launch(r.cell.key, r.round, failure="planted" if r.cell == A else None)
    )
    assert count_of(ended, A) == 1
    assert count_of(ended, B) == 3
    assert continuation.enough(ended)
    assert continuation.expected(ended)[A.key] == 0


def test_launches_go_where_the_variance_is():
    spreads = {A.key: 0.001, B.key: 0.04}
    plan = build_run_plan([A, B], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=2.0)
    ended, _ = run(plan, lambda r: steady(r.cell, r.round, 1e6 * np.exp(RANDOM.normal(0, spreads[r.cell.key]))))
    assert count_of(ended, A) == SEQUENTIAL_LAUNCHES_MIN
    # t · 0.04 / sqrt(n) = ln 1.02 at n = 18; the spread that is seen decides.
    assert SEQUENTIAL_LAUNCHES_MIN < count_of(ended, B) < 50


def test_the_expected_launches_of_a_precision_come_near_once_the_pilots_are_done():
    plan = build_run_plan([A], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=1.0)
    levels = iter(1e6 * np.exp(0.03 * RANDOM.standard_normal(200)))
    continuation, ended, foretold = Continuation(plan), [], {}
    while requests := continuation.rest_of_round(ended):
        ended += [steady(r.cell, r.round, next(levels)) for r in requests]
        foretold[len(ended)] = len(ended) + continuation.expected(ended)[A.key]
    assert foretold[len(ended)] == len(ended)
    assert foretold[len(ended) // 2] == pytest.approx(len(ended), rel=0.5)
    assert foretold[1] == foretold[2] == SEQUENTIAL_LAUNCHES_MIN


def test_a_cell_without_a_steady_state_is_given_up():
    plan = build_run_plan([A, B], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=0.5)
    ended, continuation = run(
        plan, lambda r: unsteady(r.cell, r.round) if r.cell == A else steady(r.cell, r.round, 1e6)
    )
    assert count_of(ended, A) == LAUNCHES_TO_GIVE_UP
    assert continuation.given_up(ended) == [A.key]
    assert continuation.given_up(ended[:-1]) == []


def test_a_precision_that_the_host_does_not_give_ends_all_the_same():
    plan = build_run_plan([A], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=0.01)
    ended, continuation = run(plan, lambda r: steady(r.cell, r.round, 1e6 * np.exp(RANDOM.normal(0, 0.1))))
    assert count_of(ended, A) == SEQUENTIAL_LAUNCHES_MAX
    assert continuation.given_up(ended) == [A.key]


def test_who_became_precise_or_failed_was_not_given_up():
    plan = build_run_plan([A, B], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=20.0)
    precise = [steady(A, number, 1e6) for number in range(SEQUENTIAL_LAUNCHES_MAX)]
    failed = [unsteady(B, number) for number in range(LAUNCHES_TO_GIVE_UP)]
    assert Continuation(plan).given_up([*precise, *failed]) == [B.key]
    failed[-1] = build_blank_launch(B.key, LAUNCHES_TO_GIVE_UP - 1, failure="planted")
    assert Continuation(plan).given_up([*precise, *failed]) == []


def test_a_fixed_number_of_launches_gives_nobody_up():
    launches = [unsteady(A, number) for number in range(LAUNCHES_TO_GIVE_UP)]
    assert Continuation(build_run_plan([A], launches=LAUNCHES_TO_GIVE_UP)).given_up(launches) == []


def test_after_the_pilots_a_cell_has_steps_of_its_own():
    plan = build_run_plan([A, B], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=2.0)
    # A: launches agree, their steps scatter, the same ones in another order. B: launches differ, their steps do not.
    scattered = (1e6 * np.exp(RANDOM.normal(0, 0.1, 120))).astype(int)

    def launch(cell, number):
        if cell == B:
            return steady(B, number, 1e6 * (0.95, 1.0, 1.05)[number], 0.0005)
        steps = [50_000_000, *[1_000_000] * 20, *map(int, RANDOM.permutation(scattered))]
        return build_launch(A, number, step_ns=steps, warmup_steps=21)

    continuation, ended = Continuation(plan), []
    for _ in range(PILOT_LAUNCHES):
        for request in continuation.rest_of_round(ended):
            assert request.plan == plan.steps
            ended.append(launch(request.cell, request.round))
    plans = {request.cell.key: request.plan for request in continuation.rest_of_round(ended)}
    assert plans[A.key].steady_s > plan.steps.steady_s > plans[B.key].steady_s
    assert plans[A.key].warmup_s <= plan.steps.warmup_s


def test_where_joules_are_measured_no_launch_is_shortened():
    plan = build_run_plan([B], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=2.0, steady_s_min=1.5)
    continuation, ended = Continuation(plan), []
    for _ in range(PILOT_LAUNCHES):
        for request in continuation.rest_of_round(ended):
            ended.append(steady(request.cell, request.round, 1e6 * np.exp(RANDOM.normal(0, 0.05)), 0.0005))
    (request,) = continuation.rest_of_round(ended)
    assert request.plan.steady_s == 1.5


def test_an_interval_of_few_steady_launches_does_not_end_the_search():
    """Two that happen to agree, of launches that seldom settle, are no precision."""
    settled = {1, 4, 6, 7, 9, 11}
    plan = build_run_plan([A], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=30.0)
    ended, _ = run(plan, lambda r: steady(r.cell, r.round, 1e6) if r.round in settled else unsteady(r.cell, r.round))
    assert len(ended) == 10, "round 9 brings the fifth steady one"


def test_no_more_launches_are_expected_than_there_will_be():
    plan = build_run_plan([A], launches=SEQUENTIAL_LAUNCHES_MIN, precision_pct=0.01)
    continuation = Continuation(plan)
    noisy = [steady(A, r, 1e6 * (1 + 0.3 * (r % 2))) if r % 2 or r < 4 else unsteady(A, r) for r in range(9)]
    assert continuation.expected(noisy)[A.key] == SEQUENTIAL_LAUNCHES_MAX - 9


def test_every_round_is_planned_once(monkeypatch):
    """A resumed run looks through many complete rounds: it must not learn every cell's steps for each."""
    planned = []
    real = continuation.round_requests
    monkeypatch.setattr(
        continuation, "round_requests", lambda plan, round, of: planned.append(round) or real(plan, round, of)
    )
    plan = build_run_plan(CELLS, launches=8)
    ended, _ = run(plan, lambda r: build_blank_launch(r.cell.key, r.round))
    planned.clear()
    Continuation(plan).rest_of_round(ended[:-1])
    assert planned == [7]


def test_a_cell_that_shows_no_spread_yet_is_expected_to_take_what_the_others_take():
    plan = build_run_plan([A, B], launches=5, precision_pct=2.0)
    ended = [steady(A, round, level) for round, level in enumerate((1.00e6, 1.04e6, 1.08e6))]
    ended += [steady(B, 0, 1e6), unsteady(B, 1), unsteady(B, 2)]
    expected = Continuation(plan).expected(ended)
    assert 10 < expected[A.key] < 40
    assert expected[B.key] == expected[A.key]


def test_where_no_cell_shows_a_spread_the_least_that_could_be_given_up_is_expected():
    ended = [steady(A, 0, 1e6), unsteady(A, 1), unsteady(A, 2)]
    plan = build_run_plan([A], launches=5, precision_pct=2.0)
    assert Continuation(plan).expected(ended) == {A.key: LAUNCHES_TO_GIVE_UP - 3}
