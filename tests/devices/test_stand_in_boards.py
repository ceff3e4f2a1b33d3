"""Whole runs on stand-ins for NVIDIA's libraries: what is said of boards that are shared, capped, lost, not allowed."""

import os

import pytest
from kit_process import kit
from plain_backend import SUITE, assert_idle, copied_kit

from kit.profile.store import read_profile


@pytest.fixture(scope="module")
def with_gpu(tmp_path_factory, nvml_folder):
    """Run the suite with boards of some settings: how it ended, and its launches."""
    folder = tmp_path_factory.mktemp("with_gpu")
    copied_kit(folder, "gpu")
    (folder / "small.toml").write_text(SUITE)

    def run(wrong="", options=(), **settings):
        environment = {"PYTHONPATH": os.fspath(folder), "LD_LIBRARY_PATH": str(nvml_folder), "NVML_STAND_IN": wrong}
        words = ("run", "small.toml", *options, "--data", "synthetic", "--out", "run.json", "--force")
        done = kit(folder, *words, **environment, **settings)
        assert "Traceback" not in done.stderr
        if done.returncode == 2:
            return done, None
        profile = read_profile(folder / "run.json")
        return done, [launch for result in profile.cells for launch in result.launches]

    run.kit = lambda *words: kit(folder, *words, PYTHONPATH=os.fspath(folder))
    return run


def codes(reasons):
    return {reason.code for reason in reasons}


@pytest.mark.slow
def test_a_board_that_is_capped_and_shared(with_gpu):
    done, launches = with_gpu("power_capped", NVML_PROCESSES="3", NVML_BOARDS="2")
    assert done.returncode == 0, done.stderr
    for launch in launches:
        assert launch.gave_number
        assert launch.device_ids == ["0000:65:00.0"]
        assert codes(launch.notes) == {"power_capped", "device_shared", "device_throttled"}
        assert {energy.reason.code for energy in launch.energy} == {"device_shared"}
        assert min(launch.blocks.counters["device.other_processes"]) >= 1, "the cells' own are not among the three"
        assert {name.split(".")[1] for name in launch.sensors if name.startswith("nvml")} == {"0"}
    assert "3 other processes used its device" in with_gpu.kit("compare", "run.json", "--wide").stdout


@pytest.mark.slow
def test_joules_are_those_of_the_planted_curve_of_the_boards_own(with_gpu):
    """300 W that go up and down by 40 %, whether a member runs or not: net of idle nothing is left."""
    planted = {"NVML_RIPPLE_PCT": "40", "NVML_RIPPLE_MS": "700", "NVML_WATTS": "300", "NVML_PERIOD_MS": "20"}
    # A gauge over a second has a window of two.
    done, launches = with_gpu(options=["--energy", "2.3"], NVML_BOARDS="2", **planted)
    assert done.returncode == 0, done.stderr
    # Rounds that are measured again, as other tests took the CPUs, have no long block.
    launches = [launch for launch in launches if any(energy.kind == "steady" for energy in launch.energy)]
    assert launches
    for launch in launches:
        of_block = {energy.sensor: energy for energy in launch.energy if energy.kind == "steady"}
        assert of_block.keys() == {"nvml.0.energy", "nvml.0.power"}
        for energy in of_block.values():
            watts = energy.joules_j / energy.window_ns * 1e9
            # What a block cuts off a swing, beside what it may be off.
            assert watts == pytest.approx(300, rel=energy.error_fraction + 0.1), energy
            assert 2.3e9 <= energy.block_ns < 5e9
            assert energy.begin_ns > launch.blocks.begin_ns[-1]
            assert_idle(energy, energy.idle_before_w, 300, rel=0.25)
            assert (energy.idle_processes, energy.steps * 4 <= energy.samples <= energy.steps * 8) == (0, True)
        assert of_block["nvml.0.power"].power_max_w == pytest.approx(420, rel=0.1)
        assert of_block["nvml.0.energy"].tier == "device_counter"
        (counter,) = [e for e in launch.energy if (e.kind, e.sensor) == ("compile", "nvml.0.energy")]
        assert counter.reason.code in ("too_few_updates", "energy_block_too_short"), "as long as it took"
    table = with_gpu.kit("compare", "run.json", "--wide").stdout
    assert "by device counter (nvml.0.energy)" in " ".join(table.split())
    assert "J/1k" in table and "util %" in table and " 87 " in table


def test_an_exclusive_gpu_is_used_in_turns_and_the_table_says_that_energy_was_not_requested(with_gpu):
    done, launches = with_gpu("exclusive", ["--no-energy"])
    assert done.returncode == 0, done.stderr
    assert {launch.turns for launch in launches} == {"sequential"}
    assert codes(launch.turns_reason for launch in launches) == {"exclusive_device"}
    assert [launch.energy for launch in launches] == [[], []]
    assert "(--no-energy" in " ".join(with_gpu.kit("compare", "run.json", "--wide").stdout.split())
    done, _ = with_gpu(options=["--no-energy", "--energy", "20"])
    assert done.returncode == 2 and "give one" in done.stderr


@pytest.mark.slow
def test_a_network_that_needs_more_than_a_fraction_of_the_memory_gets_all_of_it(with_gpu):
    done, launches = with_gpu(options=["--no-energy"], PLAIN_NEEDS_SHARE="0.8")
    assert done.returncode == 0, done.stderr
    assert {launch.device_memory_fraction for launch in launches} == {0.9}
    assert codes(launch.turns_reason for launch in launches) == {"lack_of_device_memory"}
    done, launches = with_gpu(options=["--no-energy"], PLAIN_NEEDS_SHARE="0.95")
    assert done.returncode == 3
    assert codes(launch.failure.reason for launch in launches) == {"out_of_device_memory"}


def test_a_board_that_another_process_holds_alone_is_refused_in_one_line(with_gpu):
    done, _ = with_gpu("exclusive", NVML_PROCESSES="1")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "another process uses GPU 0" in line


@pytest.mark.parametrize("visible", ["0", "1,-1", "GPU-stand-in-0,"])
def test_more_boards_than_are_visible_are_refused_in_one_line(with_gpu, visible):
    options = ["--devices", "2", "--backend", "torch"]
    done, launches = with_gpu(options=options, NVML_BOARDS="2", CUDA_VISIBLE_DEVICES=visible)
    assert launches is None
    (line,) = done.stderr.splitlines()
    assert "--devices 2" in line and "1 GPU" in line and f"CUDA_VISIBLE_DEVICES={visible}" in line


def test_boards_that_cannot_be_reached_are_refused_in_one_line(with_gpu):
    done, launches = with_gpu("no_permission")
    assert launches is None
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("kit: --device gpu: this machine has only cpu")
