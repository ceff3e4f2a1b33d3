from profile_builder import build_run_plan

from kit.engines.schedule import in_order, round_requests
from kit.suites.plan import plan_cells
from kit.suites.suite import load_suite

CELLS = plan_cells(load_suite("quick").cells)


def keys(seed, round):
    return [cell.key for cell in in_order(CELLS, seed, round)]


def test_every_round_holds_every_cell_once():
    for round in range(4):
        assert sorted(keys(0, round)) == sorted(cell.key for cell in CELLS)


def test_every_second_round_turns_the_one_before_round():
    for round in range(0, 8, 2):
        assert keys(3, round + 1) == keys(3, round)[::-1]


def test_a_steady_rise_over_two_rounds_falls_on_every_cell_alike():
    order = keys(5, 0) + keys(5, 1)
    places = {key: [at for at, other in enumerate(order) if other == key] for key in order}
    assert len({sum(at) for at in places.values()}) == 1


def test_the_order_comes_from_the_seed_and_differs_between_pairs_of_rounds():
    assert keys(1, 0) == keys(1, 0)
    assert keys(1, 0) != keys(2, 0)
    assert keys(1, 0) != keys(1, 2)


def test_the_order_stays_where_a_cell_leaves():
    left_out = CELLS[4]
    rest = [key for key in keys(1, 0) if key != left_out.key]
    plan = build_run_plan(CELLS, seed=1)
    requests = round_requests(plan, 0, lambda cell: plan.steps)
    assert [request.cell.key for request in requests if request.cell != left_out] == rest


def test_only_the_first_round_proves_parity_and_evaluates():
    plan = build_run_plan(CELLS)
    for round in range(3):
        for request in round_requests(plan, round, lambda cell: plan.steps):
            assert (request.parity, request.evaluate) == (round == 0, round == 0)


def test_one_launch_of_the_run_watches_the_observer():
    plan = build_run_plan(CELLS, observer_s=3.0)
    requests = [r for round in range(3) for r in round_requests(plan, round, lambda cell: plan.steps)]
    watching = [(r.cell, r.round) for r in requests if r.observer_s]
    assert watching == [(CELLS[0], 0)]
