"""A member whose runner is gone ends, be it at work, waiting or stopped."""

import signal
import subprocess
import sys
import time

import msgspec
import psutil
import pytest
from member_process import PLANTED, cell, prepare

# Starts a member, makes it ready, and waits to be killed; the member's standard input outlives it.
RUNNER = f"""
import os, subprocess, sys, time
sys.path.insert(0, {str(PLANTED.parents[1] / "worker")!r})
from member_process import MemberProcess
member = MemberProcess()
member.process.stdin.write(sys.argv[1].encode() + b"\\n")
member.process.stdin.flush()
while b'"done"' not in member.process.stdout.readline():
    pass
os.set_inheritable(member.process.stdin.fileno(), True)
keep = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, close_fds=False)
print(member.process.pid, keep.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("stopped", [False, True], ids=["waiting", "stopped"])
def test_it_dies_with_its_runner(stopped):
    command = msgspec.json.encode(prepare(cell("plain", "infer"))).decode()
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, command], stdout=subprocess.PIPE, text=True)
    member, keep = (psutil.Process(int(pid)) for pid in runner.stdout.readline().split())
    try:
        if stopped:
            member.send_signal(signal.SIGSTOP)
            while member.status() != psutil.STATUS_STOPPED:
                time.sleep(0.01)
        runner.kill()
        runner.wait(10)
        _, alive = psutil.wait_procs([member], timeout=60)
        assert not alive
    finally:
        runner.stdout.close()
        for process in (member, keep):
            if process.is_running():
                process.kill()


def test_one_whose_runner_has_gone_already_does_not_begin():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    answer = subprocess.run(
        [sys.executable, "-m", "kit.worker", "--runner", str(gone.pid)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert answer.returncode == 1
    assert "has ended" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_end_of_its_input_is_its_end():
    answer = subprocess.run(
        [sys.executable, "-m", "kit.worker", "--runner", str(psutil.Process().pid)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (0, b"")
