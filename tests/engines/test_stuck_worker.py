"""A worker that does not go when it is killed.

The stand-in for one that is stuck in a driver: a tracer (ptrace) that sleeps, to whom the kernel gives the dead worker
before its parent may have it.
"""

import errno
import os
import signal
import sys
from pathlib import Path

import pytest

from kit.engines import leftovers
from kit.engines.interrupts import interrupts_held_back
from kit.engines.leftovers import StuckWorkerError
from kit.engines.local import run_launch
from kit.profile.launch import LaunchRequest, StepPlan

TRACER = Path(__file__).parents[1] / "faults" / "planted" / "tracer.py"
# From <linux/prctl.h>, for kernels that let only a parent trace: prctl(2).
PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, 2**64 - 1

PLAN = StepPlan(warmup_s=1, warmup_steps_min=3, steady_s=1, steps_min=20, steps_max=5000)


@pytest.fixture
def stuck(plant, tmp_path, monkeypatch):
    """The planted worker begins to be traced, and goes on as it is told to; the tracer ends with the test."""
    told = tmp_path / "tracer"
    monkeypatch.setattr(leftovers, "ENDED_WITHIN_S", 0.5)

    def make(then):
        tracer = [sys.executable, str(TRACER)]
        plant(
            "import ctypes, subprocess\n"
            f"ctypes.CDLL(None).prctl({PR_SET_PTRACER}, ctypes.c_ulong({PR_SET_PTRACER_ANY}))\n"
            # Neither in the launch's session nor with its mark: it would be ended with it.
            f"tracer = subprocess.Popen([*{tracer}, str(os.getpid())], env={{}}, start_new_session=True, "
            "stdout=subprocess.PIPE)\n"
            f"Path({str(told)!r}).write_text(str(tracer.pid))\n"
            "said = tracer.stdout.readline()\n"
            "assert said == b'traces\\n', said\n" + then
        )

    yield make
    os.kill(int(told.read_text()), signal.SIGKILL)


def request_for(cell):
    fields = {"round": 0, "plan": PLAN, "data": "synthetic", "seed": 0, "threads": 3, "cpus": [0]}
    return LaunchRequest(cell=cell, **fields, parity=False, evaluate=False)


def test_the_run_stops_and_says_which_process_does_not_end(stuck, torch_cell):
    stuck("time.sleep(600)")
    limits_s = dict.fromkeys([None, "import", "parity"], 3.0)
    with pytest.raises(StuckWorkerError) as caught:
        run_launch(request_for(torch_cell), limits_s)
    assert caught.value.errno == errno.EBUSY
    assert caught.value.filename.startswith("process ")
    assert caught.value.strerror.startswith("the worker does not end within 0.5 s of SIGKILL (state ")


def test_an_interrupt_is_heeded_all_the_same(stuck, torch_cell):
    stuck("os.kill(os.getppid(), signal.SIGTERM)\ntime.sleep(600)")
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        run_launch(request_for(torch_cell))
