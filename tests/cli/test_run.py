"""`kit run` as users run it: skipped frameworks, failed cells, interrupts, resuming."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import psutil
import pytest

from kit.profile.journal import Journal, JournalError, journal_path, read_journal
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
    # A resumed run takes its data from the journal.
    data = [] if "--resume" in arguments else ["--data", "synthetic"]
    return [sys.executable, "-m", "kit", "run", *arguments, *data]


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
    assert "this run is complete; `kit show run.json` shows it" in refused(
        "--resume", "--out", "run.json", cwd=tmp_path
    )


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
    assert "before its first phase: worker ended by SIGSEGV" in answer.stderr
    assert "about to die" in answer.stderr
    assert "Traceback" not in answer.stderr
    status = {cell.cell.backend: cell for cell in read_profile(tmp_path / "run.json").cells}
    assert status["torch"].status == "ok"
    assert len(status["torch"].launches) == 2
    assert status["jax"].status == "failed"
    assert "SIGSEGV" in status["jax"].failures[0].reason
    assert status["jax"].summary.step_ns is None


def launches_kept(path):
    """So far; none while the journal's first line is still being written."""
    try:
        return len(read_journal(journal_path(path)).launches)
    except JournalError:
        return 0


# tests/faults has the other signals, and every other fault.
def test_an_interrupted_run_keeps_what_had_finished_and_can_be_resumed(tiny, tmp_path):
    path = tmp_path / "run.json"
    suite = tiny(launches=3)
    process = subprocess.Popen(
        command(suite, "--out", str(path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    end = time.monotonic() + 100
    while time.monotonic() < end:
        if launches_kept(path) >= 2:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
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


def command_line(process):
    """Words of a process; none of one that has ended meanwhile."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_no_worker_outlives_an_engine_that_is_killed(tiny, tmp_path):
    engine = subprocess.Popen(command(tiny(launches=9), "--out", "run.json"), stderr=subprocess.DEVNULL, cwd=tmp_path)
    workers, end = [], time.monotonic() + 100
    while not workers and time.monotonic() < end:
        time.sleep(0.05)
        children = psutil.Process(engine.pid).children(recursive=True)
        workers = [child for child in children if "--request" in command_line(child)]
    # Past the interpreter's start, of which the kernel's promise is one of the first acts.
    time.sleep(1)
    engine.kill()
    engine.wait()
    gone, alive = psutil.wait_procs(workers, timeout=20)
    for worker in alive:
        worker.kill()
    assert gone
    assert not alive


def test_the_end_of_the_budget_is_said_with_the_way_on(tiny, tmp_path):
    answer = run(tiny(launches=2), "--backend", "torch", "--out", "run.json", "--budget", "0.001", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    said = "kit: the budget of 0.001 s has ended; 1 of 2 launches kept; go on with `kit run --resume --out run.json`"
    assert said in answer.stderr.splitlines()
    assert read_profile(tmp_path / "run.json").interrupted
    again = run(tiny(), "--out", "run.json", cwd=tmp_path)
    assert again.returncode == 2
    assert "interrupted run: go on with" in again.stderr


PRECISE = ("--backend", "torch", "--precision", "0.0001", "--out", "run.json")


def plant(path, steps_of_rounds):
    """Finished launches in the journal of a run of one cell: from the second round on, with these steps.

    Nothing is known of their CPUs: other work that the first launch met would take the numbers of all.
    """
    journal, kept = Journal.reopen(journal_path(path))
    (first,) = kept.launches
    for round_number, step_ns in enumerate(steps_of_rounds, 1):
        planted = {"step_ns": step_ns, "warmup_steps": 21, "utilization": None}
        journal.add(msgspec.structs.replace(first, round=round_number, **planted))
    journal.close()


def noisy_steps(level_ns, steps=141):
    noise = np.random.default_rng(level_ns).normal(0, 0.002, steps)
    return (level_ns * np.exp(noise)).astype(int).tolist()


def test_a_budget_that_ends_the_search_for_a_precision_says_so(tiny, tmp_path):
    answer = run(tiny(), *PRECISE, "--budget", "0.001", cwd=tmp_path)
    # One round is no end of the search: five are the least.
    assert "the budget of 0.001 s has ended; 1 of " in answer.stderr
    plant(tmp_path / "run.json", [noisy_steps(level_ns) for level_ns in (1_000_000, 1_200_000, 1_500_000, 1_700_000)])
    answer = run("--resume", "--out", "run.json", "--budget", "0.001", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    said = (
        "kit: the budget of 0.001 s has ended before every cell was as precise as asked for; `kit compare` says which"
    )
    assert said in answer.stderr.splitlines()
    profile = read_profile(tmp_path / "run.json")
    assert not profile.interrupted
    assert [len(cell.launches) for cell in profile.cells] == [6]


def test_a_cell_that_was_given_up_is_said(tiny, tmp_path):
    run(tiny(), *PRECISE, "--budget", "0.001", cwd=tmp_path)
    shifting = noisy_steps(1_000_000, 81) + noisy_steps(2_000_000, 60)
    plant(tmp_path / "run.json", [shifting] * 8)
    answer = run("--resume", "--out", "run.json", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    said = "kit: given up: 1 cell cannot be as precise as asked for here; `kit compare` says which"
    assert said in answer.stderr.splitlines()
    # Of the two that were measured nothing is known.
    unsteady = (
        r"kit: no steady state in (8|9|10) of 10 launches, which give no numbers; `kit show run.json` says why .*"
    )
    assert any(re.fullmatch(unsteady, line) for line in answer.stderr.splitlines())
    profile = read_profile(tmp_path / "run.json")
    assert not profile.interrupted
    assert [len(cell.launches) for cell in profile.cells] == [10]


def test_threads_that_the_environment_asks_for_are_said_not_to_count(tiny, tmp_path):
    cpus = len(os.sched_getaffinity(0))
    asked = ["--backend", "torch", "--out", "run.json"]
    answer = run(tiny(), *asked, cwd=tmp_path, OMP_NUM_THREADS="37", MKL_NUM_THREADS=str(cpus))
    assert answer.stderr.splitlines()[0] == (
        f"kit: OMP_NUM_THREADS=37 does not count: frameworks get a thread for each usable CPU ({cpus}); "
        "choose CPUs with taskset"
    )


# No framework is needed from here on.


def refused(*arguments, cwd):
    answer = subprocess.run(
        [sys.executable, "-m", "kit", "run", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 2
    (line,) = answer.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("given", "named"),
    [(["quick"], "SUITE"), (["--launches", "3"], "--launches"), (["--seed", "0"], "--seed"), (["--quick"], "--quick")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_journal_has_decided_cannot_be_given_again(tmp_path, given, named):
    assert f"{named} cannot be given with --resume" in refused("--resume", "--out", "x.json", *given, cwd=tmp_path)


@pytest.mark.parametrize("budget", ["inf", "nan", "-inf", "1e999"])
def test_a_budget_is_finite(tmp_path, budget):
    assert "--budget" in refused("--budget", budget, cwd=tmp_path)


def test_a_full_disk_under_the_output_is_one_line(tmp_path):
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "kit", "suites"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert answer.returncode == 2
    assert answer.stderr.startswith("kit: input or output failed: No space left on device")
    assert answer.stderr.count("\n") == 1


def test_a_reader_that_has_gone_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "kit", "suites"], stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(writing)
    assert (answer.returncode, answer.stderr) == (0, b"")
