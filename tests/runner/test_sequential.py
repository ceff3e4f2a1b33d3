"""Workers that cannot be alive together run one after another, and the profile says why."""

import pytest
from planted_files import plant
from scripted_launcher import NO_DEVICE_MEMORY, Death, ScriptedLauncher

from kit.devices import DEVICES
from kit.runner import why_sequential
from kit.sensors import cgroup


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
    monkeypatch.setattr(why_sequential, "available_memory_b", lambda: (5 << 30) - len(launcher.alive) * (2 << 30))
    run = conducted(rounds=2)
    profile = run.begin(launcher)
    check_sequential(run, profile, "lack_of_memory")
    values = all_launches(profile)[0].turns_reason.values
    assert values["needed_b"] > values["available_b"]
    # Two found room, the third did not: it was not started beside them.
    assert launcher.most_alive == 2


def test_a_small_network_needs_no_room_for_a_larger_one(conducted, monkeypatch):
    monkeypatch.setattr(why_sequential, "available_memory_b", lambda: 3 << 30)
    profile = conducted(workloads=["mlp", "cnn"], rounds=1).begin(ScriptedLauncher(larger_b={"mlp": 4 << 30}))
    turns = {cell.cell.workload: {launch.turns for launch in cell.launches} for cell in profile.cells}
    assert turns == {"mlp": {"sequential"}, "cnn": {"blocks"}}


def test_memory_that_comes_back_brings_blocks_back(conducted, monkeypatch):
    available_b = iter([0, *[1 << 40] * 99])
    monkeypatch.setattr(why_sequential, "available_memory_b", lambda: next(available_b))
    profile = conducted(rounds=2).begin()
    assert [(launch.round, launch.turns) for launch in profile.cells[0].launches] == [(0, "sequential"), (1, "blocks")]


def test_pages_that_only_cache_files_are_room_below_a_limit(monkeypatch, tmp_path):
    plant(tmp_path, {"memory.current": "900", "memory.stat": "anon 300\ninactive_file 500\nactive_file 100\n"})
    monkeypatch.setattr(cgroup, "memory_limit_b", lambda: 1000)
    monkeypatch.setattr(cgroup, "folders", lambda controller: [tmp_path])
    assert why_sequential.available_memory_b() == 1000 - 900 + 500


def test_a_lone_cell_needs_no_turns(conducted, monkeypatch):
    monkeypatch.setattr(why_sequential, "available_memory_b", lambda: 0)
    profile = conducted(backends=["torch"], devices=["tpu"]).begin()
    assert {launch.turns for launch in all_launches(profile)} == {"blocks"}


def test_a_worker_that_dies_in_its_whole_turn_leaves_the_others_theirs(conducted):
    run = conducted(devices=["tpu"], rounds=1)
    profile = run.begin(ScriptedLauncher(deaths=[Death("torch", "block", nth=1)]))
    failed = {launch.cell_key.split("/")[1]: launch.failure for launch in all_launches(profile)}
    assert failed["torch"] is not None
    assert (failed["jax"], failed["tensorflow"]) == (None, None)


def test_a_network_that_its_share_of_a_board_is_too_small_for_has_all_of_it_alone(conducted):
    launcher = ScriptedLauncher(device_share={"torch": 0.5})
    run = conducted(devices=["gpu"], rounds=2)
    profile = run.begin(launcher)
    check_sequential(run, profile, "lack_of_device_memory")
    launches = all_launches(profile)
    assert {launch.device_memory_fraction for launch in launches} == {0.9}
    assert "torch" in launches[0].turns_reason.values["cell"]
    # The second round does not try again: three workers more at most, of the first.
    assert len(launcher.specs) <= 3 + 2 * 3


def test_what_does_not_fit_alone_either_fails_and_the_others_go_on(conducted):
    profile = conducted(devices=["gpu"], rounds=2).begin(ScriptedLauncher(device_share={"torch": 1.0}))
    by_backend = {}
    for launch in all_launches(profile):
        by_backend.setdefault(launch.cell_key.split("/")[1], []).append(launch)
    (failed,) = by_backend.pop("torch")
    assert failed.failure.reason.code == "out_of_device_memory"
    assert [len(launches) for launches in by_backend.values()] == [2, 2]
    assert all(launch.gave_number for launches in by_backend.values() for launch in launches)
    # Without it the others have room beside each other.
    assert [launch.turns for launch in by_backend["jax"]] == ["sequential", "blocks"]


def test_a_board_that_fills_up_in_mid_round_costs_that_round_its_blocks_and_no_cell(conducted):
    full = Death("jax", "block", nth=2, why=NO_DEVICE_MEMORY, alone=True)
    run = conducted(devices=["gpu"], rounds=1)
    profile = run.begin(ScriptedLauncher(deaths=[full]))
    launches = all_launches(profile)
    assert {launch.turns_reason.code for launch in launches} == {"lack_of_device_memory"}
    assert all(launch.failure is None and launch.blocks.cycle == [0, 1, 2, 3] for launch in launches)
