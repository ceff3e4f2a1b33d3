import signal

import pytest
from profile_builder import build_blank_launch, build_run_plan

from kit.engines.conductor import conduct
from kit.engines.continuation import Continuation
from kit.engines.interrupts import interrupts_held_back
from kit.suites.plan import plan_cells
from kit.suites.suite import load_suite

CELLS = plan_cells(load_suite("quick").cells)


class Recorder:
    def __init__(self):
        self.kept, self.begun, self.expected = [], [], None

    def add(self, launch):
        self.kept.append(launch)

    def begins(self, request):
        # Whatever was launched before is on "disk" by now.
        assert len(self.kept) == len(self.begun)
        self.begun.append(request.cell.key)

    def ended(self, launch, duration_s, expected):
        assert self.kept[-1] is launch
        self.expected = expected


def run(fails=(), clock=lambda: 0, deadline_ns=None, recorder=None, finished=None):
    recorder, finished = recorder or Recorder(), [] if finished is None else finished
    conduct(
        Continuation(build_run_plan(CELLS)),
        finished=finished,
        journal=recorder,
        run_launch=lambda request: build_blank_launch(
            request.cell.key, request.round, failure="planted" if request.cell.key in fails else None
        ),
        watcher=recorder,
        now_ns=clock,
        deadline_ns=deadline_ns,
    )
    return recorder, finished


def test_each_launch_is_kept_before_the_next_begins():
    recorder, finished = run()
    assert len(recorder.kept) == len(finished) == 4 * len(CELLS)
    assert set(recorder.expected.values()) == {0}


def test_a_failed_cell_is_not_launched_again_and_the_others_finish():
    broken = CELLS[3].key
    recorder, _ = run(fails=(broken,))
    assert recorder.begun.count(broken) == 1
    assert all(recorder.begun.count(cell.key) == 4 for cell in CELLS if cell.key != broken)


def test_an_interrupt_as_a_launch_is_written_leaves_it_in_both_places():
    class Interrupted(Recorder):
        def add(self, launch):
            super().add(launch)
            signal.raise_signal(signal.SIGINT)

    recorder, finished = Interrupted(), []
    with pytest.raises(KeyboardInterrupt):
        run(recorder=recorder, finished=finished)
    assert len(recorder.kept) == len(finished) == 1


def test_an_interrupt_in_the_last_launch_before_the_deadline_is_an_interrupt():
    class Interrupted(Recorder):
        def ended(self, *launch):
            super().ended(*launch)
            if len(self.begun) == len(CELLS):
                signal.raise_signal(signal.SIGINT)

    recorder, ticks = Interrupted(), iter(range(10_000))
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        run(recorder=recorder, clock=lambda: next(ticks), deadline_ns=3)
        pytest.fail("the deadline has ended it")
    assert len(recorder.begun) == len(CELLS)


def test_past_the_deadline_the_round_is_finished_and_no_other_begins():
    ticks = iter(range(10_000))
    recorder, _ = run(clock=lambda: next(ticks), deadline_ns=3)
    assert len(recorder.begun) == len(CELLS)
    assert set(recorder.expected.values()) == {3}
