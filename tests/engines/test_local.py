"""The engine and a worker that misbehaves: a planted program in its place."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from kit.engines.interrupts import interrupts_held_back, terminate_as_interrupt
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_waits_for_the_end_of_what_must_not_be_cut(number):
    done = False
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), interrupts_held_back():
        signal.raise_signal(number)
        done = True
    assert done


def test_what_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminate_as_interrupt(), interrupts_held_back():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_worker_dies_with_its_engine():
    child = (
        "import os, time; from kit.worker.parent_death import die_with; die_with(os.getppid()); "
        "print(os.getpid(), flush=True); time.sleep(600)"
    )
    engine = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"],
        stdout=subprocess.PIPE,
        text=True,
    )
    worker = psutil.Process(int(engine.stdout.readline()))
    engine.kill()
    engine.wait()
    end = time.monotonic() + 20
    while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE and time.monotonic() < end:
        time.sleep(0.02)
    alive = worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
    if alive:
        worker.kill()
    assert not alive


def test_a_worker_whose_engine_has_gone_already_does_not_begin():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    asked = f"from kit.worker.parent_death import die_with; die_with({gone.pid}); print('measures')"
    answer = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (1, "")
