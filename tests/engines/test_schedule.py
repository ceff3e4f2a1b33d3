from profile_builder import build_blank_launch

from kit.engines.conductor import conduct, remaining
from kit.engines.schedule import schedule
from kit.suites.plan import plan_cells
from kit.suites.suite import load_suite

SUITE = load_suite("quick")
CELLS = plan_cells(SUITE.cells)


def requests(seed=0, launches=4):
    return schedule(CELLS, launches=launches, plan=SUITE.measure.plan(), data="mnist", seed=seed, cpus=[0, 1])


def test_every_round_holds_every_cell_once():
    planned = requests()
    for round_number in range(4):
        in_round = planned[round_number * len(CELLS) : (round_number + 1) * len(CELLS)]
        assert {request.round for request in in_round} == {round_number}
        assert {request.cell.key for request in in_round} == {cell.key for cell in CELLS}


def test_the_order_comes_from_the_seed_and_differs_between_rounds():
    assert requests(seed=1) == requests(seed=1)
    order = [request.cell.key for request in requests(seed=1)]
    assert order != [request.cell.key for request in requests(seed=2)]
    assert order[: len(CELLS)] != order[len(CELLS) : 2 * len(CELLS)]


def test_only_the_first_round_proves_parity_and_evaluates():
    assert all((request.parity, request.evaluate) == (request.round == 0,) * 2 for request in requests())


class Recorder:
    def __init__(self):
        self.kept, self.begun = [], []

    def add(self, launch):
        self.kept.append(launch)

    def begins(self, request):
        # Whatever was launched before is on "disk" by now.
        assert len(self.kept) == len(self.begun)
        self.begun.append(request.cell.key)

    def ended(self, request, launch, duration_s):
        assert self.kept[-1] is launch


def answer(request, *, fails=()):
    failed = request.cell.key in fails
    return build_blank_launch(request.cell.key, request.round, failure="planted" if failed else None)


def run(planned, fails=(), clock=lambda: 0, deadline_ns=None):
    recorder, finished = Recorder(), []
    conduct(
        planned,
        finished=finished,
        journal=recorder,
        run_launch=lambda request: answer(request, fails=fails),
        watcher=recorder,
        now_ns=clock,
        deadline_ns=deadline_ns,
    )
    return recorder, finished


def test_each_launch_is_kept_before_the_next_begins():
    recorder, finished = run(requests())
    assert len(recorder.kept) == len(finished) == 4 * len(CELLS)


def test_a_failed_cell_is_not_launched_again_and_the_others_finish():
    broken = CELLS[3].key
    recorder, _ = run(requests(), fails=(broken,))
    assert recorder.begun.count(broken) == 1
    assert all(recorder.begun.count(cell.key) == 4 for cell in CELLS if cell.key != broken)


def test_past_the_deadline_the_round_is_finished_and_no_other_begins():
    ticks = iter(range(10_000))
    recorder, _ = run(requests(), clock=lambda: next(ticks), deadline_ns=3)
    assert len(recorder.begun) == len(CELLS)


def test_a_resumed_run_has_exactly_the_launches_that_had_not_ended():
    planned = requests()
    finished = [answer(request) for request in planned[:17]]
    assert remaining(planned, finished) == planned[17:]


def test_a_resumed_run_leaves_out_the_cells_that_have_failed():
    planned = requests()
    broken = planned[2].cell.key
    finished = [answer(request, fails=(broken,)) for request in planned[:5]]
    assert remaining(planned, finished) == [r for r in planned[5:] if r.cell.key != broken]
