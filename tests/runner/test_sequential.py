"""Members that cannot be alive together run one after another, and the profile says why."""

import pytest
from scripted_launcher import Death, ScriptedLauncher

from kit.devices.catalog import DEVICES
from kit.runner import sequential


def all_launches(profile):
    return [launch for cell in profile.cells for launch in cell.launches]


def check_sequential(run, profile, code):
    launches = all_launches(profile)
    assert len(launches) == 2 * 3
    assert {launch.turns for launch in launches} == {"sequential"}
    assert {launch.turns_reason.code for launch in launches} == {code}
    assert all(launch.failure is None and len(launch.blocks.cycle) == 4 for launch in launches)


@pytest.mark.parametrize("device", ["tpu", "gpu"])
def test_a_device_for_one_process_is_held_by_one_at_a_time(conducted, monkeypatch, device):
    monkeypatch.setattr(DEVICES["gpu"], "is_exclusive", lambda count: True)
    run = conducted(devices=[device], rounds=2)
    check_sequential(run, run.begin(), "exclusive_device")
    assert run.launcher.most_alive == 1


def test_no_memory_for_all(conducted, monkeypatch):
    launcher = ScriptedLauncher(resident_b=2 << 30)
    monkeypatch.setattr(sequential, "available_memory_b", lambda: (5 << 30) - len(launcher.alive) * (2 << 30))
    run = conducted(rounds=2)
    profile = run.begin(launcher)
    check_sequential(run, profile, "lack_of_memory")
    values = all_launches(profile)[0].turns_reason.values
    assert values["needed_b"] > values["available_b"]
    # Two found room, the third did not: it was not started beside them.
    assert launcher.most_alive == 2


def test_memory_that_comes_back_brings_blocks_back(conducted, monkeypatch):
    available_b = iter([0, *[1 << 40] * 99])
    monkeypatch.setattr(sequential, "available_memory_b", lambda: next(available_b))
    profile = conducted(rounds=2).begin()
    assert [(launch.round, launch.turns) for launch in profile.cells[0].launches] == [(0, "sequential"), (1, "blocks")]


def test_a_lone_cell_needs_no_turns(conducted, monkeypatch):
    monkeypatch.setattr(sequential, "available_memory_b", lambda: 0)
    profile = conducted(backends=["torch"], devices=["tpu"]).begin()
    assert {launch.turns for launch in all_launches(profile)} == {"blocks"}


def test_a_member_that_dies_in_its_whole_turn_leaves_the_others_theirs(conducted):
    run = conducted(devices=["tpu"], rounds=1)
    profile = run.begin(ScriptedLauncher(deaths=[Death("torch", "block", nth=1)]))
    failed = {launch.cell_key.split("/")[1]: launch.failure for launch in all_launches(profile)}
    assert failed["torch"] is not None
    assert (failed["jax"], failed["tensorflow"]) == (None, None)
