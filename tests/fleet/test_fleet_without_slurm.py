"""`kit fleet` on this machine alone: a job over its time limit, one that fails, and what is no use to begin with."""

import os
import subprocess
import sys

import pytest
from fleet_runs import PYTHONPATH, command, fleet, suite


def test_a_job_over_its_time_limit_is_named_and_resumed(reframe, place):
    (place / "hangs").touch()
    words = suite("--scheduler", "local", "--nodes", "here", "--out", "out")
    started = command(place, f"[ -e {place}/hangs ] && exec sleep 60")
    done = fleet(place, *words, *started, "--time-limit", "2")
    assert done.returncode == 3, done.stderr
    assert "here" in done.stdout and "time limit" in done.stdout
    (place / "hangs").unlink()
    done = fleet(place, *words, *started, "--resume")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 nodes measured" in done.stderr
    assert (place / "out/here.json").exists()
    done = fleet(place, *words, *started, "--resume", "--batch", "64")
    assert done.returncode == 2 and "begun with" in done.stderr, "another suite's numbers are none of this one"


def test_a_node_whose_kit_fails_says_why_in_its_own_words(reframe, place):
    words = suite("--scheduler", "local", "--nodes", "here", "--out", "out")
    started = command(place, "echo 'kit: /data: no room left' >&2", "exit 2")
    done = fleet(place, *words, *started)
    assert done.returncode == 3
    assert "/data: no room left" in done.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--out", "x", "--batch", "none"), "--batch"),
        (("--label", "mine"), "--label"),
        (("--scheduler", "ssh"), "--nodes"),
        (("--scheduler", "ssh", "--nodes", "a,b,a"), "'a'"),
        (("--scheduler", "ssh", "--nodes", "../a"), "'../a'"),
        (("--from", "."), "--from"),
    ],
    ids=str,
)
def test_bad_words_are_one_line(reframe, place, words, line):
    done = fleet(place, *suite(), *words)
    assert done.returncode == 2
    assert line in done.stderr and done.stderr.count("\n") == 1


def test_without_reframe_one_line_says_what_to_install(place):
    code = "import sys; sys.modules['reframe'] = None; from kit.cli import main; main()"
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    done = subprocess.run(
        [sys.executable, "-c", code, "fleet", *suite()],
        cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "steadykit[fleet]" in done.stderr and done.stderr.count("\n") == 1


def test_no_scheduler_is_one_line(reframe, place):
    done = fleet(place, *suite(), PATH="/nowhere")
    assert done.returncode == 2
    assert "sinfo" in done.stderr and done.stderr.count("\n") == 1
