"""A whole run beside a planted powercap tree: joules of a CPU by its package's counter."""

import os
import threading
import time
from contextlib import nullcontext

import pytest
from kit_process import kit
from plain_backend import SUITE, assert_idle, copied_kit
from planted_powercap import PowerCurve, plant_zone
from planted_processor import PROCESSORS, planted_name
from small_suite import measure

from kit.profile.store import read_profile

# The tier of joules by what the kit takes a package's counter for.
TIERS = {"measured": "device_counter", "modelled": "modelled"}


@pytest.fixture
def run_on(tmp_path):
    copied_kit(tmp_path, "gpu")
    (tmp_path / "small.toml").write_text(SUITE.replace('["gpu"]', '["cpu"]'))

    def run(joules, during=lambda folder: None, words=("small.toml", "--data", "synthetic")):
        """Run the suite beside a package that takes so many joules by a time; None: there is no powercap."""
        environment = {"PYTHONPATH": os.fspath(tmp_path), "KIT_POWERCAP_ROOT": os.fspath(tmp_path / "powercap")}
        folder = joules and plant_zone(tmp_path / "powercap", "intel-rapl:0", "package-0")
        with PowerCurve(folder, joules) if joules else nullcontext():
            other = threading.Thread(target=during, args=[folder])
            other.start()
            done = kit(tmp_path, "run", *words, "--out", "run.json", "--force", **environment)
            other.join()
        assert done.returncode == 0, done.stderr
        profile = read_profile(tmp_path / "run.json")
        return " ".join(done.stderr.split()), [of for result in profile.cells for of in result.launches]

    return run


def steady(launches):
    """The long blocks: rounds that are measured again, as other tests disturbed them, have none."""
    return [energy for launch in launches for energy in launch.energy if energy.kind == "steady"]


@pytest.mark.parametrize(
    "name",
    [
        # The session's own, as the whole of `make test` runs as it; the others take some seconds each.
        name if name == planted_name() else pytest.param(name, marks=pytest.mark.slow)
        for name, processor in PROCESSORS.items()
        if processor.rapl
    ],
)
def test_joules_of_a_package_and_of_idle_are_the_planted_ones(run_on, run_as, tmp_path, name):
    processor = run_as(name)
    shown, launches = run_on(lambda t: 65 * t)
    assert steady(launches)
    for energy in steady(launches):
        assert energy.joules_j / energy.window_ns * 1e9 == pytest.approx(65, rel=energy.error_fraction)
        for watts in (energy.idle_before_w, energy.idle_after_w):
            assert_idle(energy, watts, 65, rel=energy.idle_error_fraction)
        # Steps of some microseconds end no block early.
        assert energy.block_ns >= 1e9 and energy.samples == energy.steps * (energy.samples // energy.steps)
        assert energy.tier == TIERS[processor.rapl]
    # What a model computed is never shown as what a counter measured. A table of 100 columns may lack the joules.
    table = " ".join(kit(tmp_path, "compare", "run.json", "--wide").stdout.split())
    assert ("MODELLED, not measured" in table) == (processor.rapl == "modelled")
    assert ("by device counter (rapl.package-0)" in table) == (processor.rapl == "measured")
    assert ("vCPUs (" in table) == (processor.hypervisor == "kvm")
    assert "CPU s/1k" not in shown


def test_a_processor_without_a_counter_says_so(run_on, run_as, tmp_path):
    run_as("aarch64")
    _, launches = run_on(None)
    assert launches and not steady(launches)
    # Arm's kernels name no model: lscpu does.
    profile = read_profile(tmp_path / "run.json")
    assert (profile.identity.cpu_model, profile.identity.text("cpu.architecture")) == ("Neoverse-N1", "aarch64")
    assert [sensor.reason.code for sensor in profile.sensors if sensor.name == "rapl.energy"] == ["no_powercap"]
    assert "Neoverse-N1, " in kit(tmp_path, "compare", "run.json").stdout


def test_permission_that_is_lost_half_way_gives_no_joules_and_the_run_its_times(run_on, tmp_path):
    def lose(folder):
        """Once the run is under way: before a block of seconds could end."""
        while not list(tmp_path.glob("run.json*")):
            time.sleep(0.05)
        time.sleep(1.5)
        (folder / "energy_uj").rename(folder / "gone")

    shown, launches = run_on(lambda t: 65 * t, lose)
    assert all(launch.gave_number for launch in launches)
    assert steady(launches)
    assert all(energy.joules_j is None and energy.reason is not None for energy in steady(launches))
    # On a slow machine the counter is gone before the sampler opens it: there is no sensor then, and no refusal.
    was_opened = any(energy.sensor == "rapl.package-0" for energy in steady(launches))
    assert ("no valid reading of rapl.package-0" in shown) == was_opened


PROGRAM = """
import time
import numpy as np

def program(batch, device):
    x, resets = np.ones((64, 64)), open("resets", "a", buffering=1)
    def reset():
        resets.write(f"{time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)}\\n")
        time.sleep(0.1)
    return {"step": lambda: x @ x, "reset": reset}
"""


@pytest.mark.slow
def test_what_takes_long_to_put_back_is_put_back_before_the_joules(run_on, run_as, tmp_path):
    run_as("intel")
    (tmp_path / "program.py").write_text(PROGRAM)
    program = (
        'name = "own"\ntitle = "Own"\n[cells]\nbatches = [4]\ntasks = ["train"]\n[programs]\nown.path = "program.py"\n'
    )
    (tmp_path / "own.toml").write_text(program + measure(energy_s=3))
    _, launches = run_on(lambda t: 65 * t, words=("own.toml",))
    resets_ns = [int(line) for line in (tmp_path / "resets").read_text().splitlines()]
    assert resets_ns and steady(launches)
    for energy in steady(launches):
        within = [at for at in resets_ns if energy.begin_ns < at < energy.begin_ns + energy.block_ns]
        assert not within and energy.block_ns > 2e9
