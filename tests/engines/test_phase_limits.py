"""A worker that hangs is ended by the limit of the phase it hangs in, with all that it started."""

import time
from pathlib import Path
from typing import get_args

import psutil
import pytest

from kit.engines.local import run_launch
from kit.engines.phase_limits import LIMIT_VARIABLE, PHASE_S, START_S, PhaseLimitError, phase_limits_s
from kit.profile.launch import LaunchRequest, PhaseName, StepPlan

PHASES = get_args(PhaseName)
# A planted worker starts within it on a busy machine.
SHORT_S, LONG_S = 0.2, 600.0
# Begins a session of its own, lets go of its parent and heeds no signal that can be ignored.
DAEMON = """
(folder / "trail").write_text({trail!r})
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        Path({told!r}).write_text(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not Path({told!r}).exists() or not Path({told!r}).read_text():
    time.sleep(0.01)
time.sleep(600)
"""


def request_for(cell, **steps):
    plan = StepPlan(**({"warmup_s": 1, "warmup_steps_min": 3, "steady_s": 2, "steps_min": 20, "steps_max": 50} | steps))
    fields = {"round": 0, "data": "synthetic", "seed": 0, "threads": 1, "cpus": [0], "parity": False, "evaluate": False}
    return LaunchRequest(cell=cell, plan=plan, observer_s=4, **fields)


@pytest.mark.parametrize("phase", [None, "import", "compile", "steady", "parity"])
def test_only_the_limit_of_its_own_phase_ends_a_hanging_worker(plant, torch_cell, tmp_path, phase):
    told = tmp_path / "daemon"
    trail = "" if phase is None else f"import\nbuild\n{phase}\n"
    plant(DAEMON.format(trail=trail, told=str(told)))
    limits_s = dict.fromkeys([None, *PHASES], LONG_S)
    limits_s[phase] = SHORT_S
    launch = run_launch(request_for(torch_cell), limits_s)
    assert launch.failure.phase == phase
    assert launch.failure.reason == f"no end within 0.2 s: ended; {LIMIT_VARIABLE} gives a phase more seconds"
    assert launch.failure.exit_code is None
    assert_gone(int(told.read_text()))


def test_what_a_worker_that_ended_well_left_behind_is_ended_too(plant, torch_cell, tmp_path):
    told = tmp_path / "daemon"
    plant(DAEMON.format(trail="import\n", told=str(told)).removesuffix("time.sleep(600)\n"))
    assert run_launch(request_for(torch_cell)).failure is None
    assert_gone(int(told.read_text()))


def assert_gone(pid):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.02)
    raise AssertionError(f"{pid} runs on: {Path(f'/proc/{pid}/cmdline').read_bytes()}")


def test_a_phase_may_take_as_long_as_its_plan_and_the_rest(torch_cell, monkeypatch):
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    limits_s = phase_limits_s(request_for(torch_cell, warmup_s=1000, steady_s=2000))
    assert set(limits_s) == {None, *PHASES}
    assert (limits_s["warmup"], limits_s["steady"], limits_s["observer"]) == (
        PHASE_S + 3000,
        PHASE_S + 6000,
        PHASE_S + 12,
    )
    assert (limits_s[None], limits_s["compile"]) == (START_S, PHASE_S)


def test_a_user_may_give_a_phase_more_or_less(torch_cell, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "7.5")
    limits_s = phase_limits_s(request_for(torch_cell))
    assert (limits_s[None], limits_s["compile"], limits_s["steady"]) == (7.5, 7.5, 13.5)


@pytest.mark.parametrize("asked", ["0", "-1", "nan", "inf", "soon"])
def test_a_limit_that_is_no_number_of_seconds_is_one_line(torch_cell, monkeypatch, asked):
    monkeypatch.setenv(LIMIT_VARIABLE, asked)
    with pytest.raises(PhaseLimitError, match=f"{LIMIT_VARIABLE} is '{asked}'; give a number of seconds above 0"):
        phase_limits_s(request_for(torch_cell))
