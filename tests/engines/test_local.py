"""The engine and a worker that misbehaves: a planted program in its place."""

import signal
import time
from pathlib import Path

import pytest

from kit.engines import local
from kit.engines.interrupts import interrupts_held_back
from kit.engines.local import run_launch
from kit.profile.launch import LaunchRequest, StepPlan

PLAN = StepPlan(warmup_s=1, warmup_steps_min=3, steady_s=1, steps_min=20, steps_max=5000)


def request_for(cell):
    fields = {"round": 0, "plan": PLAN, "data": "synthetic", "seed": 0, "threads": 3, "cpus": [0]}
    return LaunchRequest(cell=cell, **fields, parity=False, evaluate=False)


@pytest.mark.parametrize(
    ("ending", "reason", "exit_code"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "worker ended by SIGKILL", -9),
        ("os.kill(os.getpid(), 40)", "worker ended by signal 40", -40),
        ("sys.exit('driver gone')", "worker ended with exit code 1: driver gone", 1),
    ],
    ids=["killed", "unnamed signal", "exits"],
)
def test_a_worker_that_ends_badly_has_failed_whatever_it_recorded(plant, torch_cell, ending, reason, exit_code):
    plant(ending)
    launch = run_launch(request_for(torch_cell))
    assert (launch.failure.reason, launch.failure.exit_code, launch.failure.phase) == (reason, exit_code, "parity")
    assert launch.step_ns == [5, 6, 7], "what had been measured stays"


def test_a_worker_has_its_thread_counts_and_leaves_no_temporary_folder(plant, torch_cell):
    plant("")
    launch = run_launch(request_for(torch_cell))
    assert launch.failure is None
    folder, *threads = launch.warnings
    assert threads == ["3", "3", "3"]
    assert not Path(folder).exists()


def test_a_worker_that_leaves_no_whole_record_has_failed(plant, torch_cell):
    plant("(folder / 'launch.json').write_bytes(b'{')")
    launch = run_launch(request_for(torch_cell))
    assert (launch.failure.reason, launch.failure.exit_code) == ("worker ended without a whole record", 0)
    assert launch.step_ns is None


def test_an_interrupt_that_arrives_when_the_worker_has_ended_costs_no_launch(plant, torch_cell, monkeypatch):
    plant("")
    monkeypatch.setattr(local, "end_launch", interrupting(local.end_launch))
    launch = None
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        launch = run_launch(request_for(torch_cell))
    assert launch.failure is None
    assert launch.step_ns == [5, 6, 7]


def test_nor_does_one_that_arrives_in_the_moment_of_its_end(plant, torch_cell, monkeypatch):
    plant("")
    select, sent = local.select.select, []

    def planted(*arguments):
        answer = select(*arguments)
        if answer[0] and not sent:
            sent.append(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        return answer

    monkeypatch.setattr(local.select, "select", planted)
    kept = []
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        kept.append(run_launch(request_for(torch_cell)))
    assert sent
    assert [launch.failure for launch in kept] == [None]


def test_a_launch_that_failed_as_an_interrupt_arrived_may_have_failed_of_it(plant, torch_cell, monkeypatch):
    plant("os.kill(os.getpid(), signal.SIGTERM)")
    monkeypatch.setattr(local, "end_launch", interrupting(local.end_launch))
    kept = []
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        kept.append(run_launch(request_for(torch_cell)))
    assert not kept


def test_an_interrupt_ends_the_worker_that_runs(plant, torch_cell):
    plant("os.kill(os.getppid(), signal.SIGTERM)\ntime.sleep(600)")
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        run_launch(request_for(torch_cell))
    assert time.monotonic() - begin < 300


def interrupting(end_launch):
    def planted(*arguments):
        signal.raise_signal(signal.SIGTERM)
        return end_launch(*arguments)

    return planted
