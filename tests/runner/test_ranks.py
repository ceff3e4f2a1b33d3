"""Ranks and their supervisors are real; below them a program in the worker's place answers as each test plans it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace
from real_worker import cell, spec_of
from scripted_launcher import plan_of, suite

from kit.errors import KitError
from kit.runner import worker_processes
from kit.runner.interrupt import StopFlag
from kit.runner.worker_processes import Ranks, WorkerFailed
from kit.runner.worker_spec import default_threads, worker_spec
from kit.suites.groups import WorkerPlan
from kit.worker.messages import Build, Finish, Measure, Segment

# Acts by the rank that it is, as `Prepare` says, and answers the rest with `Done`.
STAND_IN = """
import base64, ctypes, json, os, signal, subprocess, sys, time
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # as a worker does: it ends with its supervisor
plan, rank = json.loads(os.environ["PLAN"]), 0
for line in sys.stdin:
    request = json.loads(line)
    kind, done = request["type"], {"type": "Done", "address": "127.0.0.1:1", "counters": [*plan["counters"][0]]}
    rank = request.get("rank", request.get("part", rank))
    if kind == "Prepare":
        done["part"] = {"python": plan["pythons"][rank]}
    if kind == "Measure":
        waits = b"".join(ns.to_bytes(8, "little") for ns in plan["waits"][rank])
        done = {"type": "Measured", "begin_ns": rank, "span_ns": 9, "waits": base64.b64encode(waits).decode(),
                "ran": [len(waits) // 8], "counters": [*plan["counters"][rank].values()]}
    if kind == "Build" and rank == plan["guilty"]:
        exec(plan["does"])
    print(json.dumps(done), flush=True)
"""
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
COUNTERS = {"process.cpu_ns": 10, "machine.busy_ns": 100, "pressure.cpu_some_ns": 7}
PLAN = {"pythons": ["3.11.7"] * 3, "guilty": None, "does": "", "waits": [[5, 5]] * 3, "counters": [COUNTERS] * 3}
LIMIT_S = 60


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Start ranks that act as planned, prepared and joined: `started(ranks=1, **plan) -> Ranks`."""
    program, python = tmp_path / "program.py", tmp_path / "python"
    program.write_text(STAND_IN)
    python.write_text(f'#!/bin/sh\n[ "$4" = kit.worker ] && set -- {program}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(worker_processes, "FAILED_GRACE_S", 0.5)
    monkeypatch.setattr(worker_processes, "ENDED_GRACE_S", 0.5)
    made = []

    def start(count=1, stop=None, hosts=(), **plan):
        spec = spec_of(cell(devices=count), ranks=count, cpus=[*range(count)], env={"PLAN": json.dumps(PLAN | plan)})
        spec = spec._replace(hosts=hosts)
        spec = spec._replace(variant=type(spec.variant)(name="v", python=str(python), env=spec.variant.env))
        # These CPUs need not be there: the stand-in takes none.
        spec = spec._replace(prepare=type(spec.prepare)(**_fields(spec.prepare) | {"cpus": [0]}))
        made.append(Ranks(spec, stop or StopFlag()))
        made[-1].ask(spec.prepare, LIMIT_S)
        made[-1].ask(spec.join, LIMIT_S)
        return made[-1]

    yield start
    for each in made:
        each.end()


def _fields(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def failure_of(worker, request=None, limit_s=LIMIT_S):
    with pytest.raises(WorkerFailed) as failed:
        worker.ask(request or Build(program=0, cell=cell(), seed=0), limit_s)
    return failed.value


@pytest.mark.parametrize(
    ("does", "code", "values"),
    [
        ("print('noise', flush=True)", "protocol", {}),
        (KILL, "signal", {"signal": "SIGKILL"}),
        (f"sys.stdout.write('half an ans'); sys.stdout.flush(); {KILL}", "signal", {"signal": "SIGKILL"}),
        ("print('last words', file=sys.stderr); sys.exit(3)", "exit_code", {"exit_code": 3, "message": "last words"}),
        ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)", "supervisor_ended", {"signal": "SIGKILL"}),
        ("time.sleep(60)", "phase_timeout", {"limit_s": 0.5}),
        (f"subprocess.Popen(SLEEPS, start_new_session=True, stdout=2); {KILL}", "signal", {}),
    ],
)
def test_how_a_worker_failed_is_said_and_nothing_of_it_is_left(started, does, code, values):
    # The name of what it starts is this case's alone: others run beside it.
    sleeps = f"sleep 61.{os.getpid()}{time.monotonic_ns()}"
    does = does.replace("SLEEPS", f"{sleeps.split()}")
    worker = started(guilty=0, does=f"subprocess.Popen({sleeps.split()}, stdout=subprocess.DEVNULL); {does}")
    failed = failure_of(worker, limit_s=0.5 if code == "phase_timeout" else LIMIT_S)
    assert (failed.reason.code, failed.goes_on) == (code, False)
    assert values.items() <= failed.reason.values.items()
    check_ended(sleeps)


def check_ended(command):
    end_s = time.monotonic() + 60
    while left := subprocess.run(["pgrep", "-f", f"^{command}"], capture_output=True, check=False).stdout.split():
        assert time.monotonic() < end_s, left


def test_what_a_killed_supervisor_leaves_is_ended_whatever_had_its_number_before(started):
    """The kernel numbers processes anew from 1 after pid_max, which a long run or a busy machine reaches."""
    last_pid = Path("/proc/sys/kernel/ns_last_pid")
    try:
        last_pid.write_text(last_pid.read_text())
    except OSError as error:
        pytest.skip(f"no process can be given a number: {error}")
    earlier = subprocess.Popen(["sleep", "60"])
    assert earlier.pid in {process.pid for process in psutil.process_iter()}  # which remembers it
    earlier.kill()
    earlier.wait()
    sleeps = f"sleep 61.{os.getpid()}{time.monotonic_ns()}"
    # Other tests start processes, too, and one of theirs may get the number.
    take = f"""
for _ in range(50):
    with open("{last_pid}", "w") as file:
        file.write("{earlier.pid - 1}")
    left = subprocess.Popen({sleeps.split()}, stdout=subprocess.DEVNULL)
    if left.pid == {earlier.pid}:
        break
    left.kill()
    left.wait()
else:
    sys.exit("others have the number")
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(60)
"""
    assert failure_of(started(guilty=0, does=take)).reason.code == "supervisor_ended"
    check_ended(sleeps)


def test_ranks_use_all_cpus_of_each_host():
    plan = plan_of(suite(backends=["torch"], device_counts=[2]))
    shared = worker_spec(plan, WorkerPlan("two", plan.cells), 0, 1.0, hosts=["n1", "n2"])
    assert (shared.ranks, shared.prepare.parts, shared.join.threads) == (2, 1, len(plan.cpus))


def test_a_quota_gives_no_thread_that_it_would_throttle():
    assert [default_threads(range(4), limit) for limit in (None, 2.5, 0.5, 9.0)] == [4, 2, 1, 4]


def test_a_cache_of_compilations_is_added_to_the_flags_that_a_user_has_set(monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "--mine")
    plan = plan_of(suite(backends=["tensorflow"]))
    plan = replace(plan, suite=replace(plan.suite, reuse_compiled=True))
    cache = worker_spec(plan, WorkerPlan("one", plan.cells), 0, 1.0).compile_cache
    assert cache["TF_XLA_FLAGS"].startswith("--mine --tf_xla_persistent_cache_directory=")


def test_the_rank_that_ended_is_blamed_and_not_the_one_that_waits_for_it(started):
    failed = failure_of(started(2, guilty=1, does=KILL))
    assert (failed.reason.code, failed.reason.values["rank"]) == ("signal", 1)


def test_the_rank_that_is_late_is_blamed(started):
    failed = failure_of(started(2, guilty=1, does="time.sleep(60)"), limit_s=1)
    assert (failed.reason.code, failed.reason.values["rank"]) == ("phase_timeout", 1)


@pytest.fixture
def other_host(tmp_path, monkeypatch):
    """Let `srun` start on this machine what is for another."""
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(worker_processes, "TELL_S", 1.0)


@pytest.mark.parametrize(
    ("guilty", "does", "code"),
    [
        (1, "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(60)", "does_not_stop"),
        (1, "time.sleep(60)", "phase_timeout"),
        (1, "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", "phase_timeout"),
        (0, "time.sleep(60)", "phase_timeout"),
    ],
)
@pytest.mark.usefixtures("other_host")
def test_a_host_whose_supervisor_does_not_answer_is_gone(started, guilty, does, code):
    failed = failure_of(started(2, hosts=["n1", "n2"], guilty=guilty, does=does), limit_s=1)
    assert (failed.reason.code, failed.reason.values["rank"]) == (code, guilty)
    assert failed.reason.values.get("host") == ("n2" if guilty else None)


def test_a_program_that_fails_in_one_rank_alone_ends_all(started):
    failed = failure_of(started(2, guilty=1, does='done = {"type": "Failed", "program": 0, "reason": {"code": "x"}}'))
    assert (failed.reason.code, failed.reason.values["rank"], failed.goes_on) == ("x", 1, False)


def test_ranks_of_other_software_are_named(started):
    with pytest.raises(WorkerFailed) as failed:
        started(2, pythons=["3.11.7", "3.12.1"])
    values = failed.value.reason.values
    assert (failed.value.reason.code, values["rank"], values["there"]) == ("ranks_differ", 1, "3.12.1")


def test_the_slowest_ranks_times_and_the_sum_of_what_all_use(started):
    counters = [{name: value * (rank + 1) for name, value in COUNTERS.items()} for rank in range(2)]
    worker = started(2, waits=[[5, 5], [7, 6]], counters=counters)
    measured = worker.ask(Measure(program=0, segments=[Segment(2)]), LIMIT_S)
    assert measured.waits_ns()[0].tolist() == [7, 6]
    assert measured.begin_ns == 0, "by rank 0's clock"
    # The ranks share the one CPU, which is counted once; what the machine counts is rank 0's.
    assert measured.counters == [30, 100, 7]


def test_a_worker_that_does_not_stop_fails(started, monkeypatch):
    worker = started()
    monkeypatch.setattr(worker_processes, "STOP_LIMIT_S", 0.0)
    with pytest.raises(WorkerFailed) as failed:
        worker.stop()
    assert failed.value.reason.code == "does_not_stop"


class LateFlag(StopFlag):
    """Is looked at when a worker has begun to answer."""

    def check(self):
        time.sleep(0.3 if self.requested else 0)
        super().check()


@pytest.mark.parametrize("does", ["time.sleep(60)", "print('more than a pipe holds' * 10_000)"])
def test_an_interrupt_ends_a_worker_that_is_busy(started, does):
    stop = LateFlag()
    worker = started(stop=stop, guilty=0, does=does)
    stop.requested, begin_s = True, time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        worker.ask(Build(program=0, cell=cell(), seed=0), LIMIT_S)
    assert time.monotonic() - begin_s < 10


def test_a_worker_that_finishes_leaves_no_process_and_no_files(started):
    def files():
        return {*Path("/tmp").glob("steadykit-" + "?" * 12)}

    before, others = files(), {*psutil.Process().children(recursive=True)}
    worker = started()
    assert len(files() - before) >= 1
    children = {*psutil.Process().children(recursive=True)} - others
    assert len(children) >= 2
    worker.ask(Finish(), LIMIT_S)
    worker.end()
    assert not any(child.is_running() for child in children)


def test_a_target_that_cannot_be_started_is_one_line():
    spec = spec_of(cell())
    spec = spec._replace(variant=type(spec.variant)(name="v", python="/nowhere/python"))
    with pytest.raises(KitError, match=r"^/nowhere/python cannot be started: No such file or directory; install it"):
        Ranks(spec, StopFlag())
