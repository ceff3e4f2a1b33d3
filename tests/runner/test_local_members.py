"""The local launcher with real processes: stopped, continued, ended, and what is said of those that fail."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from kit.errors import KitError
from kit.profile.cell import Cell, Variant
from kit.profile.launch import StepPlan
from kit.runner.launchers import conversation, local
from kit.runner.launchers.conversation import phase_limit_s
from kit.runner.launchers.local import LocalLauncher
from kit.runner.launchers.protocol import MemberFailedError, MemberRequest
from kit.runner.stop import StopFlag
from kit.worker.messages import Prepare, ProgramRequest

PLANTED = Path(__file__).parents[1] / "faults" / "planted"
PLAN = StepPlan(cycles=2, block_s=0.05, lead_in_s=0.005, warmup_s=0.05, warmup_steps=5, energy_s=0.0)


def request(python=sys.executable, **environment):
    cell = Cell(
        workload="mlp",
        backend="plain",
        device="cpu",
        task="infer",
        batch=16,
        precision="float32",
        compile_mode="eager",
        feed="device",
    )
    prepare = Prepare(
        programs=[ProgramRequest(cell=cell)],
        plan=PLAN,
        data={"mnist": "synthetic"},
        seed=0,
        threads=2,
        cpus=sorted(os.sched_getaffinity(0)),
        clock="monotonic_raw",
        prove=False,
    )
    return MemberRequest(
        "plain", Variant(name="v", python=str(python), env={"PYTHONPATH": str(PLANTED), **environment}), prepare
    )


@pytest.fixture
def start(monkeypatch):
    """Start a member; whatever is left of it is killed at the end."""
    started = []

    def make(asked=None, stop=None, limit_s=None):
        if limit_s is not None:
            monkeypatch.setenv(conversation.LIMIT_VARIABLE, str(limit_s))
        started.append(LocalLauncher(stop or StopFlag()).start(asked or request()))
        return started[-1]

    yield make
    for member in started:
        member.kill()


def children():
    return [psutil.Process(child.pid) for child in psutil.Process().children()]


def worker():
    (found,) = [child for child in children() if "kit.worker" in child.cmdline()]
    return found


def cpu_s(process):
    times = process.cpu_times()
    return times.user + times.system


def test_a_member_is_stopped_between_its_blocks_and_ends_with_all_it_had(start):
    member = start()
    member.prepare()
    process = worker()
    folder = Path(process.environ()["TMPDIR"])
    assert folder.is_dir()
    assert process.environ()["OMP_NUM_THREADS"] == "2"
    assert member.build(0).data.name == "synthetic"
    for _ in range(3):
        member.pause()
        assert process.status() == psutil.STATUS_STOPPED
        before_s = cpu_s(process)
        time.sleep(0.05)
        assert cpu_s(process) == before_s
        member.resume()
        assert member.warm_up(0).step_ns
        assert len(member.block(0, 0.02).step_ns) >= 3
    assert member.finish().certificate.source == "monotonic_raw"
    assert not process.is_running()
    assert not folder.exists()


def test_a_member_that_is_stopped_can_be_killed(start):
    member = start()
    member.prepare()
    member.pause()
    process = worker()
    member.kill()
    assert not process.is_running()
    member.kill()


def failure_of(call):
    with pytest.raises(MemberFailedError) as error:
        call()
    return error.value.failure


def script(folder, text):
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "code", "values"),
    [
        ("echo first >&2; echo last words >&2; exit 3", "exit_code", {"exit_code": 3, "message": "last words"}),
        ("kill -SEGV $$", "signal", {"signal": "SIGSEGV"}),
        ("read line; echo hello", "protocol", None),
        ("""read line; echo '{"say": "warmed_up"}'""", "protocol", None),
    ],
)
def test_how_it_ended_is_said(start, tmp_path, text, code, values):
    member = start(request(script(tmp_path, text)))
    failure = failure_of(member.prepare)
    assert failure.phase == "start"
    assert failure.reason.code == code
    if values is not None:
        assert failure.reason.values == values


def test_one_that_is_killed_while_stopped_is_said_at_its_next_block(start):
    member = start()
    member.prepare()
    member.build(0)
    member.pause()
    worker().kill()
    failure = failure_of(lambda: (member.resume(), member.block(0, 0.02)))
    assert failure.reason.values == {"signal": "SIGKILL"}
    assert failure.phase == "steady"


def test_a_kill_for_want_of_memory_is_told_from_others(start, monkeypatch):
    kills = iter([7, 8])
    monkeypatch.setattr(local, "_memory_kills", lambda: next(kills))
    member = start()
    worker().kill()
    assert failure_of(member.prepare).reason.code == "out_of_memory"


def test_one_that_says_nothing_is_given_up_at_the_limit(start, tmp_path):
    member = start(request(script(tmp_path, "exec sleep 60")), limit_s=0.3)
    failure = failure_of(member.prepare)
    assert (failure.reason.code, failure.reason.values) == ("phase_timeout", {"limit_s": 0.3})


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "ten"])
def test_a_limit_that_is_no_number_of_seconds_is_refused(monkeypatch, text):
    monkeypatch.setenv(conversation.LIMIT_VARIABLE, text)
    with pytest.raises(KitError, match="KIT_PHASE_LIMIT_S is"):
        phase_limit_s()


def test_an_interrupt_does_not_wait_for_a_member_that_hangs(start, tmp_path):
    stop = StopFlag()
    member = start(request(script(tmp_path, "exec sleep 60")), stop)
    threading.Timer(0.2, setattr, (stop, "requested", True)).start()
    begin_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        member.prepare()
    assert time.monotonic() - begin_s < 30


def test_what_a_member_has_started_stops_and_ends_with_it(start, tmp_path):
    """As a framework's compile workers."""
    told = tmp_path / "child"
    text = f'sleep 60 & echo $! > {told}; exec {sys.executable} "$@"'
    member = start(request(script(tmp_path, text)))
    member.prepare()
    child = psutil.Process(int(told.read_text()))
    member.pause()
    end = time.monotonic() + 60
    while child.status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < end
        time.sleep(0.01)
    member.kill()
    _, alive = psutil.wait_procs([child], timeout=60)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


SUITE = """
name = "tiny"
title = "Seconds long, for tests"
[cells]
workloads = ["mlp"]
backends = ["torch"]
batches = [32]
[measure]
rounds = 2
cycles = 2
block_s = 0.05
lead_in_s = 0.005
warmup_s = 0.05
warmup_steps = 3
share = ["task"]
"""


@pytest.mark.frameworks
def test_a_real_run_of_a_real_framework(tmp_path):
    from kit.profile.steps import read_steps
    from kit.profile.store import read_profile

    (tmp_path / "tiny.toml").write_text(SUITE)
    # On one CPU: threads that wait for each other beside other work on this machine would make it three times as long.
    one_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    answer = subprocess.run(
        [*one_cpu, sys.executable, "-m", "kit", "run", "tiny.toml", "--data", "synthetic", "--out", "run.json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "run.json\n"
    said = answer.stderr.splitlines()
    assert said[0].startswith("2 cells in 2 groups, 2 rounds of 2 cycles, about ")
    assert [line for line in said if "done" in line] == [f"round {number} of 2 done: 2 launches" for number in (1, 2)]
    # Where no terminal reads standard output, the table goes beside it.
    assert any(line.startswith("mlp train") for line in said)
    assert said[-1].startswith("kit compare run.json ")
    profile = read_profile(tmp_path / "run.json")
    launches = [launch for cell in profile.cells for launch in cell.launches]
    assert [(launch.round, launch.failure) for launch in launches] == [(0, None), (1, None)] * 2
    assert profile.clock is not None
    assert all(len(launch.blocks.median_ns) == 2 for launch in launches)
    assert all(launch.blocks.counters["process.cpu_ns"] for launch in launches)
    # Training and inference had one process a round, and one start.
    assert {len({one.calibration_start for one in launches if one.round == number}) for number in (0, 1)} == {1}
    assert len({(launch.round, launch.process) for launch in launches}) == 2
    # The first round proves.
    assert [launch.parity is not None for launch in launches] == [True, False] * 2
    assert [bool(launch.kernels) for launch in launches] == [True, False] * 2
    steps = read_steps(tmp_path / "run.json", profile)
    for launch in launches:
        (own,) = [found for name, found in steps.items() if name.startswith(f"r{launch.round} {launch.cell_key} ")]
        timed = sum(launch.blocks.lead_in) + sum(launch.blocks.steps)
        assert len(own) == 1 + launch.warmup_steps + timed
