"""A run under way on disk: whole launches come back, torn ones are left out, nobody else writes there."""

import fcntl
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
from profile_builder import profile, run_plan

from kit.profile.consistency import steps_of
from kit.profile.store import ProfileError
from kit.profile.unfinished import PLAN, SavedLaunch, UnfinishedRun, folder_of

BUILT = profile(rounds=3, cycles=2)
LAUNCHES = [launch for result in BUILT.cells for launch in result.launches]


@pytest.fixture
def path(tmp_path):
    """A run that has saved all its launches and was then left."""
    run = UnfinishedRun.begin(tmp_path / "run.json", run_plan(BUILT))
    for launch in LAUNCHES:
        run.save(saved(launch))
    run.close()
    return tmp_path / "run.json"


def saved(launch, first=1):
    steps = np.arange(first, first + steps_of(launch), dtype=np.int64)
    return SavedLaunch(launch=launch, step_ns=steps.tobytes())


def reopened(path):
    run = UnfinishedRun.reopen(path)
    run.close()
    return run


def test_plan_and_launches_come_back_as_they_were_saved(path):
    run = reopened(path)
    assert run.plan == run_plan(BUILT)
    assert [each.launch.round for each in run.launches()] == sorted(launch.round for launch in LAUNCHES)
    by_name = {(each.launch.cell_key, each.launch.round): each for each in run.launches()}
    for launch in LAUNCHES:
        assert by_name[launch.cell_key, launch.round] == saved(launch)


def test_a_launch_measured_again_replaces_the_first(path):
    run = UnfinishedRun.reopen(path)
    run.save(saved(msgspec.structs.replace(LAUNCHES[0], warmup_steps=7), 9))
    run.close()
    assert [each.launch.warmup_steps for each in run.launches() if each.steps[0] == 9] == [7]
    assert len(run.launches()) == len(LAUNCHES)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-50],
        lambda data: b"",
        lambda data: b"\x00" * len(data),
        lambda data: data.replace(b'"steps":[', b'"steps":[7,', 1),  # lists of blocks that differ in length
        lambda data: data.replace(b'"round":', b'"round":-7', 1),
        lambda data: data.replace(b'"span_ns":[', b'"span_ns":[1', 1),  # blocks that overlap
        lambda data: data.replace(b'"warmup_steps":', b'"warmup_steps":1', 1),  # more steps than were saved
        lambda data: data.replace(b'"group":"', b'"group":"x', 1),
        lambda data: b"[" * 99_999,
    ],
)
def test_a_torn_file_is_left_out_and_the_others_stay(path, damage):
    victim = sorted(folder_of(path).glob("r0*"))[2]
    victim.write_bytes(damage(victim.read_bytes()))
    assert len(reopened(path).launches()) == len(LAUNCHES) - 1


def test_a_run_whose_folder_has_gone_writes_to_no_other_that_is_there_now(path):
    run = UnfinishedRun.reopen(path)
    folder_of(path).rename(path.with_name("gone"))
    UnfinishedRun.begin(path, run_plan(BUILT)).close()
    with pytest.raises(FileNotFoundError):
        run.save(saved(LAUNCHES[0]))
    assert reopened(path).launches() == []


def test_one_run_at_a_time_writes_there(path):
    held = UnfinishedRun.reopen(path)
    with pytest.raises(ProfileError, match=f"alive .process {os.getpid()}."):
        UnfinishedRun.reopen(path)
    held.close()
    reopened(path)


def test_a_file_system_without_locks_is_no_obstacle(path, monkeypatch):
    def refuse(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    reopened(path)


def test_begin_refuses_what_is_there_and_where_it_cannot_write(path):
    plan = run_plan(BUILT)
    with pytest.raises(ProfileError, match="--resume --out"):
        UnfinishedRun.begin(path, plan)
    with pytest.raises(ProfileError, match="No such file"):
        UnfinishedRun.begin(path.parent / "gone" / "run.json", plan)


def test_reopen_refuses_what_is_not_there_and_what_is_damaged(path):
    with pytest.raises(ProfileError, match="no unfinished run"):
        UnfinishedRun.reopen(path.parent / "other.json")
    with pytest.raises(ProfileError, match=rf"this is a folder; [^\n]*: {path.name}$"):
        UnfinishedRun.reopen(path.parent)
    for damage in (b"", b'{"id": 3}', b"\xff\xfe", b"[" * 99_999):
        (folder_of(path) / PLAN).write_bytes(damage)
        with pytest.raises(ProfileError, match="is damaged, or"):
            UnfinishedRun.reopen(path)


def test_remove_leaves_nothing(path):
    before = len([*Path("/proc/self/fd").iterdir()])
    UnfinishedRun.reopen(path).remove()
    assert [*path.parent.iterdir()] == []
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_plan_whose_groups_have_other_cells_is_refused_in_a_line(path):
    file = folder_of(path) / PLAN
    UnfinishedRun.reopen(path).close()
    plan = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode(plan | {"cells": []}))
    with pytest.raises(ProfileError, match="Expected keys of cells"):
        UnfinishedRun.reopen(path)
