"""A worker whose engine is killed: its child, or that of a script between them."""

import contextlib
import subprocess
import sys

import psutil
import pytest

from kit.worker.parent_death import started_ticks

WORKER = (
    "import os, sys, time; from kit.worker.parent_death import die_with; die_with(*map(int, sys.argv[1:])); "
    "print(os.getpid(), flush=True); time.sleep(600)"
)
# Starts the worker as an engine does, with what stands between given as its arguments.
ENGINE = f"""
import os, subprocess, sys
from kit.worker.parent_death import started_ticks
me = [str(os.getpid()), str(started_ticks(os.getpid()))]
subprocess.run([*sys.argv[1:], sys.executable, "-c", {WORKER!r}, *me], start_new_session=True)
"""
SCRIPT = ["sh", "-c", '"$@"; exit $?', "sh"]


@pytest.mark.parametrize("between", [[], SCRIPT, SCRIPT * 2], ids=["its child", "a script's", "a script's script's"])
def test_a_worker_dies_with_its_engine_and_so_does_what_stands_between(between):
    engine = subprocess.Popen([sys.executable, "-c", ENGINE, *between], stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(engine.stdout.readline()))
    started = [
        process for process in [worker, *worker.parents()] if engine.pid in {one.pid for one in process.parents()}
    ]
    assert len(started) == 1 + len(between) // len(SCRIPT)
    engine.kill()
    engine.wait()
    _, alive = psutil.wait_procs(started, timeout=20)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not alive


def asked(*engine):
    code = f"from kit.worker.parent_death import die_with; die_with(*{engine}); print('measures')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_worker_whose_engine_has_gone_already_does_not_begin():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    answer = asked(gone.pid)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "has gone" in answer.stderr


def test_nor_one_whose_engines_number_another_process_has_now():
    other = subprocess.Popen(["sleep", "600"])
    try:
        ticks = started_ticks(other.pid)
        assert asked(other.pid, ticks).stdout == "measures\n"
        answer = asked(other.pid, ticks - 1)
        assert (answer.returncode, answer.stdout) == (1, "")
    finally:
        other.kill()
        other.wait()


def test_nobody_waits_where_the_kernel_does():
    code = (
        "import os, threading; from kit.worker.parent_death import die_with; die_with(os.getppid()); "
        "print(threading.active_count())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


def test_who_waits_takes_no_cpu():
    code = """
import os, sys, time
from kit.worker.parent_death import die_with
die_with(int(sys.argv[1]))
def thread():
    (pid,) = set(os.listdir("/proc/self/task")) - {str(os.getpid())}
    status = open(f"/proc/self/task/{pid}/status").read()
    return [line for line in status.splitlines() if "ctxt_switches" in line]
time.sleep(0.3)
before = thread()
end = time.monotonic() + 1
while time.monotonic() < end:
    pass
print(len(before), thread() == before)
"""
    other = subprocess.Popen(["sleep", "600"])
    try:
        command = [sys.executable, "-c", code, str(other.pid)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "2 True\n"
    finally:
        other.kill()
        other.wait()
