"""A real run beside programs that take the CPUs: it says so at once, ends in time, and marks what it shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fault_runs import Workplace
from msgspec import structs
from planted_files import plant
from profile_builder import cell, profile, run_plan

from kit.compare.clean import OTHERS_MOST
from kit.compare.runs import run_of
from kit.fingerprint.machine_state import others_now
from kit.profile.store import read_profile
from kit.runner import progress
from kit.runner.interrupt import StopFlag

BUSY = [sys.executable, "-c", "while True: pass"]


@pytest.fixture
def neighbours():
    """A program that never stops for each CPU."""
    programs = [subprocess.Popen(BUSY) for _ in os.sched_getaffinity(0)]
    yield programs
    for program in programs:
        program.kill()
        program.wait()


@pytest.mark.slow
def test_beside_neighbours_that_never_stop_a_run_says_so_and_ends(tmp_path, neighbours):
    place = Workplace(tmp_path)
    answer = place.run()
    assert answer.code == 0, answer.stderr
    place.check_whole()
    first = answer.stderr.splitlines()[0]
    assert first.startswith("kit: other programs use ")
    assert "% of the CPUs (py" in first
    assert "cycle repeated (" in answer.stderr
    rounds = run_of("p", read_profile(place.path)).rounds
    assert rounds.disturbed == {*rounds.by_group}
    assert " ms c " in answer.stderr or " µs c " in answer.stderr


def test_who_uses_the_cpus_is_named(neighbours):
    others = others_now(sorted(os.sched_getaffinity(0)), OTHERS_MOST)
    assert others.fraction > 0.5
    assert not others.is_quiet
    assert others.busiest, "processes of other tests may be busier than these"


@pytest.mark.parametrize("stat", ["", "cpu 1 2 3\n", "cpu 1 2 3\ncpu0 9 9 9 9 9 9 9\n"])
def test_a_kernel_that_counts_no_times_gives_a_reason_and_disturbs_nothing(tmp_path, stat):
    plant(tmp_path, {"proc/stat": stat} if stat else {})
    others = others_now([0, 1], OTHERS_MOST, root=tmp_path)
    assert (others.fraction, others.reason.code, others.is_quiet) == (None, "others_unknown", True)


@pytest.mark.parametrize(
    ("looks", "seconds", "expected_words"),
    [
        ([0.02], 0, []),
        ([0.46], 0, ["other programs use 46 %"]),
        ([0.46, 0.46, 0.02, 0.3, 0.02, 0.03, 0.02], 60, ["other programs use 46 %"]),
        (
            [0.46] * 3,
            1e-9,
            [
                "other programs use 46 %",
                "did not stop within 1e-09 s; measuring anyway: while they run no cycle counts, and there is no "
                "verdict (--threads 1 leaves them CPUs)",
            ],
        ),
        ([None] * 3, 60, []),
    ],
)
def test_waiting_ends_when_the_cpus_are_quiet_or_time_is_up(monkeypatch, looks, seconds, expected_words):
    left = [others_now([0], OTHERS_MOST, 0.0)._replace(fraction=fraction) for fraction in looks]
    monkeypatch.setattr(progress, "others_now", lambda cpus, most: left.pop(0))
    lines = []
    progress.wait_for_quiet(run_plan(profile()), seconds, StopFlag(), lines.append)
    assert len(lines) == len(expected_words)
    assert all(words in line for words, line in zip(expected_words, lines, strict=True))
    assert len(left) in (0, 2), "it looks no more than it must"


def test_looking_again_and_again_opens_no_more_files():
    def opened():
        return len(list(Path("/proc/self/fd").iterdir()))

    others_now([min(os.sched_getaffinity(0))], OTHERS_MOST, 0.0)
    before = opened()
    for _ in range(20):
        others_now([min(os.sched_getaffinity(0))], OTHERS_MOST, 0.0)
    assert opened() <= before


@pytest.mark.parametrize(
    ("threads", "cpus", "device", "is_advised"),
    [
        (None, [0, 1], "cpu", True),
        (2, [0, 1], "cpu", True),
        (1, [0, 1], "cpu", False),
        (None, [0], "cpu", False),
        (None, [0, 1], "gpu", False),
    ],
)
def test_fewer_threads_are_advised_where_there_are_several(monkeypatch, threads, cpus, device, is_advised):
    busy = others_now([0], OTHERS_MOST, 0.0)._replace(fraction=0.5)
    monkeypatch.setattr(progress, "others_now", lambda cpus, most: busy)
    plan = structs.replace(run_plan(profile()), cpus=cpus, cells=[cell(threads=threads, device=device)])
    lines = []
    progress.wait_for_quiet(plan, 0, StopFlag(), lines.append)
    assert ["--threads 1" in line for line in lines] == [is_advised]
