"""A member whose runner is gone before it begins; `tests/faults` has one that loses it at work, and stopped."""

import os
import subprocess
import sys


def started(runner):
    return subprocess.run(
        [sys.executable, "-m", "kit.worker", "--runner", str(runner)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_member_whose_runner_has_gone_does_not_begin():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    answer = started(gone.pid)
    assert (answer.returncode, answer.stderr.count("\n")) == (1, 1)
    assert "has ended" in answer.stderr


def test_the_end_of_its_input_is_its_end():
    answer = started(os.getpid())
    assert (answer.returncode, answer.stdout) == (0, "")
