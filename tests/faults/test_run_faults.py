"""A run that is killed, interrupted or finds no room keeps finished rounds; `--resume` ends with the same cells."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from fault_runs import Workplace, unfinished

from kit.profile.store import read_profile
from kit.profile.unfinished import folder_of

# The run is met in the second round, by the worker that trains, in the midst of a block.
IN_ROUND_TWO = {"cell": "/train/", "at": "block", "nth": 1, "start": 1}


def first_round(place):
    kept = place.kept()
    assert {(key.split("/")[3], number) for key, number in kept} == {("train", 0), ("infer", 0)}
    return kept


def test_a_run_that_is_killed(place):
    answer = place.run(faults=[IN_ROUND_TWO | {"do": "signal_runner", "signal": "SIGKILL"}])
    assert answer.code == -9
    # One worker is at work, the other is stopped: their supervisors end both.
    end = time.monotonic() + 10
    while place.left() and time.monotonic() < end:
        time.sleep(0.05)
    assert place.left() == []
    kept = first_round(place)
    resumed = place.go_on()
    assert resumed.code == 0, resumed.stderr
    place.check_whole(kept)


@pytest.mark.parametrize("signal", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_a_run_that_is_interrupted(place, signal):
    answer = place.run(faults=[IN_ROUND_TWO | {"do": "signal_runner", "signal": signal}])
    assert answer.code == 130
    (line,) = answer.messages
    assert f"1 of 2 rounds saved. Resume: `kit run --resume --out {place.path}`" in line
    # Of the whole rounds there is a table.
    assert f"kit compare {place.path} --" in answer.stderr
    assert answer.stdout == f"{place.path}\n"
    assert place.left() == []
    kept = first_round(place)
    assert read_profile(place.path).interrupted
    assert len(place.launches()) == 2
    if signal == "SIGTERM":
        assert "KIT_PHASE_LIMIT_S is 'soon'" in place.go_on(KIT_PHASE_LIMIT_S="soon").stderr
    else:
        resumed = place.go_on()
        assert resumed.code == 0, resumed.stderr
        place.check_whole(kept)


SIZE_B = 4 << 20


@pytest.fixture
def small_disk(tmp_path):
    """The folder of a file system of SIZE_B, in a mount namespace of its own, reached through one of its processes."""
    mount = f'mount -t tmpfs -o size={SIZE_B} tmpfs "{tmp_path}" && echo ready && exec sleep 600'
    root = [] if os.getuid() == 0 else ["--map-root-user"]
    holder = subprocess.Popen(
        ["unshare", *root, "--mount", "sh", "-c", mount], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        if holder.stdout.readline() != "ready\n":
            pytest.skip(f"no file system can be mounted here: {holder.stderr.read().strip()}")
        yield Path(f"/proc/{holder.pid}/root{tmp_path}")
    finally:
        holder.kill()
        holder.communicate()


def test_a_disk_that_is_full(small_disk, tmp_path_factory):
    place = Workplace(small_disk, counts=tmp_path_factory.mktemp("counts"))
    answer = place.run(faults=[IN_ROUND_TWO | {"do": "fill_disk", "folder": str(small_disk)}])
    assert answer.code == 2, answer.stderr
    (line,) = answer.messages
    assert "No space left on device" in line
    assert f"kit run --resume --out {place.path}" in line
    kept = place.kept()
    assert len(kept) >= 2
    assert place.left() == []
    (small_disk / "ballast").unlink()
    resumed = place.go_on()
    assert resumed.code == 0, resumed.stderr
    place.check_whole(kept)


def test_what_a_run_under_way_refuses(place):
    answer = place.run("--budget", "0.01")
    assert answer.code == 0
    assert "the budget of 0.01 s is used up; 1 of 2 rounds saved" in answer.messages[0]
    assert f"{place.path} --budget 0.01`" in answer.messages[0]
    for again, says in ((place.run(), "an unfinished run"), (place.go_on("--seed", "1"), "--seed is 1 here and 0 in")):
        assert again.code == 2
        assert says in again.messages[0]
    assert unfinished(place)
    # As the shell's history has it, with --resume added.
    as_typed = place.run("--budget", "0.01", "--resume")
    assert as_typed.code == 0, as_typed.stderr
    place.check_whole({})
    assert not unfinished(place)


def test_a_run_does_not_go_on_with_other_cpus(place):
    assert place.run("--budget", "0.01").code == 0
    elsewhere = place.go_on(under=["taskset", "-c", str(min(os.sched_getaffinity(0)))])
    if len(os.sched_getaffinity(0)) > 1:
        assert elsewhere.code == 2
        assert "usable CPUs" in elsewhere.messages[0]
    assert unfinished(place) or elsewhere.code == 0


def meanwhile(place, act, *options):
    """Run, and act once its first round is on the disk."""
    folder, ended = folder_of(place.path), []
    running = threading.Thread(target=lambda: ended.append(place.run(*options)))
    running.start()
    end = time.monotonic() + 60
    while not [*folder.glob("r0000-*.json")] and time.monotonic() < end:
        time.sleep(0.02)
    result = act(folder)
    running.join()
    return ended[0], result


def test_beside_a_run_that_is_alive_nobody_is_told_to_delete_it(place):
    answer, (other, resumed) = meanwhile(place, lambda _: (place.run("--force"), place.go_on()))
    for refused in (other, resumed):
        assert refused.code == 2
        assert "is being written by a run that is alive (process " in refused.messages[0]
        assert "rm -r" not in refused.stderr
    assert answer.code == 0, answer.stderr
    place.check_whole()


def test_a_run_whose_folder_is_removed_loses_nothing(place):
    answer, _ = meanwhile(place, lambda folder: folder.rename(folder.with_name("gone")))
    assert answer.code == 0, answer.stderr
    place.check_whole()


def test_a_profile_that_was_cut_short_is_not_called_complete(place):
    assert place.run("--budget", "0.01").code == 0
    folder = folder_of(place.path)
    folder.rename(folder.with_name("gone"))
    assert "it lacks rounds" in place.go_on().messages[0]


def test_a_file_that_comes_during_a_run_stays_and_the_run_is_kept(place):
    answer, _ = meanwhile(place, lambda _: place.path.write_text("mine"))
    assert answer.code == 2
    assert place.path.read_text() == "mine"
    assert "this file was made during the run" in answer.messages[0]
    place.path.unlink()
    resumed = place.go_on()
    assert resumed.code == 0, resumed.stderr
    place.check_whole()
