"""Members in real processes of this machine: stopped, continued, ended, and what is said of those that fail."""

import os
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from kit_process import kit
from msgspec.structs import replace
from profile_builder import cell

from kit.environment import PHASE_LIMIT_S
from kit.errors import KitError
from kit.profile.cell import Variant
from kit.profile.launch import StepPlan
from kit.profile.schema import Group
from kit.runner.interrupt import StopFlag
from kit.runner.member import Member, phase_limit_s
from kit.runner.processes import local, start_process
from kit.runner.processes.process import MemberRequest
from kit.suites.plan import MemberPlan
from kit.worker.messages import Prepare, ProgramRequest

PLANTED = Path(__file__).parents[1] / "faults" / "planted"
# With the kit of this checkout, whichever is installed.
PYTHONPATH = f"{PLANTED}{os.pathsep}{Path(__file__).parents[2]}"
PLAN = StepPlan(cycles=2, block_s=0.05, lead_in_s=0.005, warmup_s=0.05, warmup_steps=5, energy_s=0.0)


CELL = cell("plain", task="infer", batch=16, compile_mode="eager")


def request(python=sys.executable, **environment):
    prepare = Prepare(
        programs=[ProgramRequest(cell=CELL)],
        plan=PLAN,
        data={"mnist": "synthetic"},
        seed=0,
        threads=2,
        cpus=sorted(os.sched_getaffinity(0)),
        clock="monotonic_raw",
        prove=False,
    )
    return MemberRequest(
        "plain", Variant(name="v", python=str(python), env={"PYTHONPATH": PYTHONPATH, **environment}), prepare
    )


@pytest.fixture
def start():
    """Start a member; whatever is left of it is killed at the end."""
    started = []

    def make(asked=None, stop=None):
        asked = asked or request()
        groups = [Group(key="g", cells=[CELL.key], baseline=CELL.key)]
        plan = MemberPlan("p", [CELL])
        started.append(Member(plan, asked, start_process(asked), groups, 0, stop or StopFlag()))
        return started[-1]

    yield make
    for member in started:
        member.kill()


def children():
    return [psutil.Process(child.pid) for child in psutil.Process().children()]


def worker():
    # Between its fork and its exec a child has another command line.
    end_s = time.monotonic() + 30
    while not (workers := [child for child in children() if "kit.worker" in child.cmdline()]):
        assert time.monotonic() < end_s
        time.sleep(0.01)
    (process,) = workers
    return process


def launch_of(member):
    (launch,) = member.launches.values()
    return launch


def cpu_s(process):
    times = process.cpu_times()
    return times.user + times.system


def test_a_variant_takes_the_threads_of_its_members_over(start):
    asked = request(OMP_NUM_THREADS="1")
    member = start(asked._replace(prepare=replace(asked.prepare, tells_threads=False)))
    member.prepare()
    environment = worker().environ()
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment.get("NPROC") == os.environ.get("NPROC")
    assert launch_of(member).threads.reported is None  # it was told nothing


def test_a_member_is_stopped_between_its_blocks_and_ends_with_all_it_had(start):
    member = start()
    member.prepare()
    process = worker()
    folder = Path(process.environ()["TMPDIR"])
    assert folder.is_dir()
    assert process.environ()["OMP_NUM_THREADS"] == "2"
    assert member.build(CELL.key, "g") > 0
    for cycle in range(3):
        assert process.status() == psutil.STATUS_STOPPED
        before_s = cpu_s(process)
        time.sleep(0.05)
        assert cpu_s(process) == before_s
        member.warm_up(CELL.key, "g")
        done = member.block(CELL.key, cycle, 0.02)
        assert len(done.step_ns) >= 3
        member.add(CELL.key, "g", done)
    member.finish()
    launch = launch_of(member)
    assert (launch.data.name, launch.blocks.cycle, launch.failure) == ("synthetic", [0, 1, 2], None)
    assert launch.certificate.source == "monotonic_raw"
    assert not process.is_running()
    assert not folder.exists()


def failure_of(member):
    member.prepare()
    assert member.has_ended
    return launch_of(member).failure


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
        ("""read line; echo '{"answer": "warmed_up"}'""", "protocol", None),
    ],
)
def test_how_it_ended_is_said(start, tmp_path, text, code, values):
    member = start(request(script(tmp_path, text)))
    failure = failure_of(member)
    assert failure.phase == "start"
    assert failure.reason.code == code
    if values is not None:
        assert failure.reason.values == values


def test_one_that_has_ended_when_it_is_to_stop_is_said(tmp_path):
    process = start_process(request(script(tmp_path, "kill -KILL $$")))
    try:
        while psutil.Process(process._process.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert process.pause() is False
        assert process.how_it_ended().values == {"signal": "SIGKILL"}
    finally:
        process.kill()


def test_one_that_is_killed_while_stopped_is_said_at_its_next_block(start):
    member = start()
    member.prepare()
    member.build(CELL.key, "g")
    worker().kill()
    assert member.block(CELL.key, 0, 0.02) is None
    failure = launch_of(member).failure
    assert failure.reason.values == {"signal": "SIGKILL"}
    assert failure.phase == "steady"


def test_a_kill_for_want_of_memory_is_told_from_others(start, monkeypatch):
    kills = iter([7, 8])
    monkeypatch.setattr(local, "_memory_kills", lambda: next(kills))
    member = start()
    worker().kill()
    assert failure_of(member).reason.code == "out_of_memory"


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "ten"])
def test_a_limit_that_is_no_number_of_seconds_is_refused(monkeypatch, text):
    monkeypatch.setenv(PHASE_LIMIT_S, text)
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
    pid_file = tmp_path / "child"
    text = f'sleep 60 & echo $! > {pid_file}; exec {sys.executable} "$@"'
    member = start(request(script(tmp_path, text)))
    member.prepare()
    child = psutil.Process(int(pid_file.read_text()))
    end = time.monotonic() + 60
    while child.status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < end
        time.sleep(0.01)
    member.kill()
    _, alive = psutil.wait_procs([child], timeout=60)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


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
    from kit.profile.store import read_profile, read_steps

    (tmp_path / "tiny.toml").write_text(SUITE)
    # On one CPU: threads that wait for each other beside other work on this machine would make it three times as long.
    one_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    answer = kit(tmp_path, "run", "tiny.toml", "--data", "synthetic", "--out", "run.json", under=one_cpu)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "run.json\n"
    # Other tests may disturb cycles, which are then measured again, and rounds.
    lines = [line for line in answer.stderr.splitlines() if not line.startswith("kit: other programs use")]
    assert lines[0].startswith("2 cells in 2 groups, 2 rounds of 2 cycles, about ")
    done = [line for line in lines if " done: " in line]
    assert [line[: len("round 1 of 2")] for line in done[:2]] == ["round 1 of 2", "round 2 of 2"]
    # Where no terminal reads standard output, the table goes beside it.
    assert any(line.startswith("mlp train") for line in lines)
    assert "kit compare run.json --" in lines[-1]
    profile = read_profile(tmp_path / "run.json")
    launches = [launch for cell in profile.cells for launch in cell.launches]
    assert all(launch.failure is None for launch in launches)
    assert 4 <= len(launches) <= 2 * len(done)
    assert all(2 <= len(launch.blocks.median_ns) <= 4 for launch in launches)
    # Training and inference had one process a round, and one start.
    assert len({(launch.round, launch.process) for launch in launches}) == len(done)
    steps = read_steps(tmp_path / "run.json", profile)
    for launch in launches:
        (raw,) = [times for name, times in steps.items() if name.startswith(f"r{launch.round} {launch.cell_key} ")]
        timed = sum(launch.blocks.lead_in) + sum(launch.blocks.steps)
        assert len(raw) == 1 + launch.warmup_steps + timed
