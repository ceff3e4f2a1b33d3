"""`kit run` as users run it: skipped frameworks, failed cells, interrupts, resuming."""

import os
import signal
import subprocess
import sys
import time

import pytest

from kit.profile.journal import journal_path, read_journal
from kit.profile.store import read_profile

pytestmark = pytest.mark.frameworks

TINY = """
name = "tiny"
title = "Seconds long, for tests"
[cells]
workloads = ["mlp"]
backends = ["torch", "jax"]
tasks = ["infer"]
batches = [16]
[measure]
launches = {launches}
warmup_s = 0.05
warmup_steps_min = 3
steady_s = 0.1
steps_min = 30
steps_max = 200
"""


@pytest.fixture
def tiny(tmp_path):
    def write(launches=1):
        path = tmp_path / "tiny.toml"
        path.write_text(TINY.format(launches=launches))
        return str(path)

    return write


def command(*arguments):
    return [sys.executable, "-m", "kit", "run", *arguments, "--data", "synthetic"]


def run(*arguments, cwd, **environment):
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=200,
        check=False,
    )


def test_a_run_writes_a_profile_and_prints_its_path(tiny, tmp_path):
    answer = run(tiny(), "--out", "run.json", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "run.json\n"
    profile = read_profile(tmp_path / "run.json")
    assert [cell.status for cell in profile.cells] == ["ok", "ok"]
    assert not profile.interrupted
    assert not journal_path(tmp_path / "run.json").exists()
    again = run(tiny(), "--out", "run.json", cwd=tmp_path)
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_a_missing_framework_is_skipped_with_one_line_and_the_rest_runs(tiny, tmp_path, bare_python):
    answer = run(tiny(), "--out", "run.json", cwd=tmp_path, KIT_PYTHON_JAX=str(bare_python))
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr.count("skipped: jax is not installed") == 1
    profile = read_profile(tmp_path / "run.json")
    assert [cell.cell.backend for cell in profile.cells] == ["torch"]
    assert [entry.backend for entry in profile.suite.skipped] == ["jax"]


def test_a_worker_that_dies_fails_its_cell_and_the_others_finish(tiny, tmp_path):
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *--probe*) exec {sys.executable} "$@";; esac\n'
        "echo 'about to die' >&2\nkill -SEGV $$\n"
    )
    python.chmod(0o755)
    answer = run(tiny(launches=2), "--out", "run.json", cwd=tmp_path, KIT_PYTHON_JAX=str(python))
    assert answer.returncode == 3
    assert "SIGSEGV" in answer.stderr
    assert "about to die" in answer.stderr
    assert "Traceback" not in answer.stderr
    status = {cell.cell.backend: cell for cell in read_profile(tmp_path / "run.json").cells}
    assert status["torch"].status == "ok"
    assert len(status["torch"].launches) == 2
    assert status["jax"].status == "failed"
    assert "SIGSEGV" in status["jax"].failures[0].reason
    assert status["jax"].summary.step_ns is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_had_finished_and_can_be_resumed(tiny, tmp_path, number):
    path = tmp_path / "run.json"
    suite = tiny(launches=3)
    process = subprocess.Popen(
        command(suite, "--out", str(path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    end = time.monotonic() + 100
    while time.monotonic() < end:
        if journal_path(path).exists() and len(read_journal(journal_path(path))[1]) >= 2:
            break
        time.sleep(0.05)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert f"--resume --out {path}" in stderr

    interrupted = read_profile(path)
    assert interrupted.interrupted
    kept = [launch for cell in interrupted.cells for launch in cell.launches]
    assert 2 <= len(kept) < 6

    answer = run("--resume", "--out", str(path), cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    resumed = read_profile(path)
    assert not resumed.interrupted
    assert resumed.id == interrupted.id
    launches = [launch for cell in resumed.cells for launch in cell.launches]
    assert sorted((launch.cell_key, launch.round) for launch in launches) == sorted(
        (cell.key, round_number) for cell in resumed.cells for round_number in range(3)
    )
    # The launches that had finished are the very same, not measured anew.
    before = {(launch.cell_key, launch.round): launch.started for launch in kept}
    assert before.items() <= {(launch.cell_key, launch.round): launch.started for launch in launches}.items()
    assert not journal_path(path).exists()
