import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from kit.worker.supervisor import STOP

COUNTING = "import time\nwhile True:\n    print('tick', flush=True)\n    time.sleep(0.01)\n"
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"asked\\n"))
os.write(1, b"\\n")
while True:
    time.sleep(0.01)
"""
ENDING = """
import signal, sys
signal.signal({number}, lambda *_: sys.exit(7))
print(flush=True)
signal.pause()
"""


@pytest.fixture
def supervised():
    """Start a Python program behind a supervisor: `supervised(code, *options) -> Popen`."""
    started = []

    def start(code, *options):
        command = [sys.executable, "-m", "kit.worker.supervisor", *options, sys.executable, "-c", code]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def last_line(process):
    return json.loads(process.stdout.read().splitlines()[-1])


def test_a_stopped_command_does_nothing_until_it_is_asked_again(supervised):
    process = supervised(COUNTING)
    assert process.stdout.readline() == b"tick\n"
    process.stdin.write(STOP)
    while (line := process.stdout.readline()) == b"tick\n":
        pass
    assert json.loads(line) == {"type": "Stopped"}
    os.set_blocking(process.stdout.fileno(), False)
    time.sleep(0.2)
    assert process.stdout.read() is None
    process.stdin.write(b"a request\n")
    os.set_blocking(process.stdout.fileno(), True)
    assert process.stdout.readline() == b"tick\n"


@pytest.mark.parametrize("stops", [False, True])
def test_the_end_of_its_input_ends_the_command_stopped_or_not(supervised, tmp_path, stops):
    folder = tmp_path / "files"
    process = supervised(COUNTING, "--folder", str(folder))
    process.stdout.readline()
    assert folder.is_dir()
    (child,) = psutil.Process(process.pid).children()
    if stops:
        process.stdin.write(STOP)
    process.stdin.close()
    assert last_line(process)["reason"] == {"code": "signal", "values": {"signal": "SIGKILL"}}
    process.wait(10)
    assert not child.is_running() and not folder.exists()


def test_a_grace_lets_the_command_end_by_itself(supervised):
    process = supervised(ENDING.format(number=int(signal.SIGTERM)), "--grace", "10")
    process.stdout.readline()
    process.stdin.close()
    assert process.wait(10) == 7


def test_a_command_that_will_not_end_is_killed_after_its_grace(supervised):
    process = supervised(STUBBORN, "--grace", "0.2")
    process.stdout.readline()
    process.stdin.close()
    assert process.stdout.readline() == b"asked\n"
    assert process.wait(10) == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_is_the_commands(supervised, number):
    process = supervised(ENDING.format(number=int(number)), "--grace", "10")
    process.stdout.readline()
    process.send_signal(number)
    assert process.wait(10) == 7


def test_the_command_has_its_variables_and_its_path_may_look_like_one(supervised, tmp_path):
    (tmp_path / "jax=0.9").symlink_to("/bin/sh")
    process = supervised("", "--env=A=b=--c", str(tmp_path / "jax=0.9"), "-c", "echo $A; read line")
    assert process.stdout.readline() == b"b=--c\n"


def test_a_folder_that_cannot_be_made_is_refused(supervised):
    process = supervised("", "--folder", "/proc/none")
    assert last_line(process)["reason"]["code"] == "refused"
