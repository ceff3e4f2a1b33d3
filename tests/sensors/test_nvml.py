"""Against a stand-in for the vendor's libraries, below pynvml."""

import functools
import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pynvml
import pytest

from kit.profile.facts import Accelerator
from kit.profile.fields import Reason
from kit.profile.instruments import Energy, SensorReadings, SensorReport, SensorSummary
from kit.report.reasons_in_words import REASONS
from kit.sensors import nvml

LOOK = """
import sys, msgspec
from kit.devices import DEVICES
from pathlib import Path
from kit.report.reasons_in_words import sentence
from kit.sensors import nvml
gpu = DEVICES["gpu"]
sensors = [(s.report, s.read().value if s.is_available else None) for s in nvml.open_sampled()]
listed = gpu.listed()
doctor = {condition.subject: sentence(condition.what) for condition in gpu.conditions(Path("/")) if not condition.fine}
same_bus = nvml.pci_bus_ids(1) == [sensors[0][0].device_id]
cuda = same_bus, nvml.memory_b(0), len(nvml.pci_bus_ids(3))
answer = sensors, listed if isinstance(listed, list) else [], gpu.states(), doctor, gpu.is_exclusive(1), cuda
sys.stdout.write(msgspec.json.encode(answer).decode())
"""


class Look(msgspec.Struct, array_like=True):
    """What one process sees of the stand-in."""

    sensors: list[tuple[SensorReport, float | None]]
    listed: list[Accelerator]
    states: list[Accelerator]
    doctor: dict[str, str]
    is_exclusive: bool
    cuda: tuple[bool, int | None, int]

    def readings(self):
        return {report.name.removeprefix("nvml.0."): (report, value) for report, value in self.sensors}


@pytest.fixture(scope="module")
def look(in_nvml_process):
    """Look once at each setting of the stand-in."""

    @functools.cache
    def look(wrong="", **settings):
        return msgspec.json.decode(in_nvml_process(LOOK, wrong, **settings), type=Look)

    return look


def test_every_quantity_of_a_gpu(look):
    readings = look().readings()
    values = {name: value for name, (_, value) in readings.items()}
    energy = values.pop("energy")
    assert values == {
        "power": 200.0,
        "utilization": 87.0,
        "memory": 3 * 2**30,
        "frequency": 1755.0,
        "temperature": 54.0,
        "throttled": 1.0,
        "power_violation": 7000.0,
        "thermal_violation": 0.0,
    } | dict.fromkeys(nvml.ACTIVITIES)  # an activity is a difference: a first reading has none
    assert energy > 0
    assert energy % 20 == 0
    late = {name for name, (report, _) in readings.items() if report.lag_max_ns == nvml.LAG_MAX_NS}
    assert late == {"energy", "power"}
    assert readings["energy"][0].counter
    assert readings["energy"][0].update_period_ns == pytest.approx(100_000_000, rel=0.2)
    assert all(report.sampled and report.status == "measured" for report, _ in readings.values())
    assert look().cuda == (True, 80 << 30, 0), "CUDA and NVML call a GPU by one bus id; of three GPUs there is none"
    assert look(CUDA_STAND_IN="none").cuda == (False, None, 0)


@pytest.mark.parametrize(("of_gpu", "lag_ns"), [("GPU-stand-in-0", 170_000_000), ("another", nvml.LAG_MAX_NS)])
def test_joules_allow_for_the_lag_that_a_self_test_measured_on_this_very_gpu(look, tmp_path, of_gpu, lag_ns):
    bus, file = look().sensors[0][0].device_id, tmp_path / "hardware-gpu.json"
    lags = [{"lag_low_ns": -30_000_000, "lag_high_ns": high_ns} for high_ns in (110_000_000, 120_000_000)]
    facts = {"gpu.0.device_id": bus, "gpu.0.uuid_sha256": hashlib.sha256(of_gpu.encode()).hexdigest()}
    responses = [{"sensor": "nvml.0.energy", "device_id": bus} | lag for lag in lags]
    file.write_text(json.dumps({"identity": {"facts": facts}, "responses": responses}))
    readings = look(KIT_GPU_FILE=str(file)).readings()
    assert readings["energy"][0].lag_max_ns == lag_ns
    assert readings["power"][0].lag_max_ns == nvml.LAG_MAX_NS, "the file says nothing of power"


def test_power_falls_back_to_the_older_call_and_says_so(look):
    report, value = look("no_instant").readings()["power"]
    assert value == 190.0
    assert "mean over 1 s" in report.source


@pytest.mark.parametrize(
    ("wrong", "names", "code"),
    [
        ("no_energy", ["energy"], "nvml_no_energy_counter"),
        ("no_clock_events", ["throttled"], "nvml_not_supported"),
        ("old driver", ["throttled"], "nvml_failed"),
        ("no_gpm", nvml.ACTIVITIES, "nvml_no_gpm"),
        ("mig", nvml.ACTIVITIES, "nvml_no_gpm"),
    ],
)
def test_a_gpu_or_driver_that_lacks_some_quantities_keeps_the_rest(look, old_nvml_folder, wrong, names, code):
    readings = look(wrong, **({"folder": old_nvml_folder} if wrong == "old driver" else {})).readings()
    lost = {name: report for name, (report, _) in readings.items() if report.status == "unavailable"}
    assert lost.keys() == {*names}
    assert {report.reason.code for report in lost.values()} == {code}
    assert readings["power"][1] == 200.0


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ("no_driver", "nvml_driver_not_loaded"),
        ("no_permission", "nvml_no_permission"),
        ("mismatch", "nvml_version_mismatch"),
        ("no_gpu", "nvml_no_gpu"),
    ],
)
def test_each_obstacle_has_its_own_reason(look, wrong, code):
    seen = look(wrong)
    ((report, value),) = seen.sensors
    assert (report.name, report.reason, value) == ("nvml.energy", Reason(code=code), None)
    assert REASONS[code]
    assert (seen.listed, seen.states) == ([], [])


@pytest.mark.parametrize("name", [name for name in dir(pynvml) if name.startswith("nvmlClocksEventReason")])
def test_every_bit_that_nvml_names_is_known(name):
    mask = getattr(pynvml, name)
    requested = ("GpuIdle", "ApplicationsClocksSetting", "UserDefinedClocks", "DisplayClockSetting", "None")
    assert bool(nvml.slowing(mask)) != name.endswith(requested)
    assert not any(word.startswith("unnamed") for word in nvml.slowing(mask))


def test_update_period_of_a_counter_that_steps_fails_now_and_then_or_stands_still():
    calls = iter(range(10**9))
    period_ns = nvml.update_period_ns(lambda: None if next(calls) % 3 == 2 else time.monotonic_ns() // 50_000_000, 0.4)
    assert period_ns == pytest.approx(50_000_000, rel=0.3)
    assert nvml.update_period_ns(lambda: 7, limit_s=0.1) is None


def test_identity_and_state_of_each_gpu(look):
    (gpu,), (state,) = look().listed, look().states
    assert (gpu.kind, gpu.model, gpu.memory_b, gpu.driver) == ("gpu", "Stand-in H100", 80 << 30, "570.1")
    assert len(gpu.uuid_sha256) == 64
    assert state == Accelerator(
        name="gpu 0",
        power_cap_w=230.0,
        power_cap_default_w=700.0,
        clock_limit_mhz=1400.0,
        clock_mhz=1755.0,
        temperature_c=54.0,
        device_id="0000:65:00.0",
        clock_max_mhz=1980.0,
        compute_mode="default",
        mig=False,
        mps=False,
        ecc=True,
        processes=0,
        power_violation_ns=7000,
        thermal_violation_ns=0,
        pcie_width=16,
        pcie_width_max=16,
        pcie_generation=1,
        pcie_generation_max=5,
        ecc_uncorrected=0,
        remapped_rows=0,
        remap_pending=False,
        remap_failed=False,
    )


def test_modes_that_bound_measurements_are_in_the_state_and_the_doctor_says_the_remedy(look):
    seen = look("exclusive", NVML_PROCESSES="3")
    assert (seen.states[0].compute_mode, seen.states[0].processes) == ("exclusive_process", 3)
    assert "nvidia-smi -i 0 -c DEFAULT" in seen.doctor["GPU 0 compute mode"]
    assert (seen.is_exclusive, look().is_exclusive, look().doctor) == (True, False, {})
    assert look("mig").states[0].mig is True
    assert "-mig 0" in look("mig").doctor["GPU 0 MIG"]


def test_a_gpu_that_has_fallen_off_its_bus_leaves_the_others_their_indices(look):
    seen = look(NVML_BOARDS="3", NVML_GONE="1")
    assert len(seen.listed) == 2
    assert [(state.name, state.device_id) for state in seen.states] == [
        ("gpu 0", "0000:65:00.0"), ("gpu 2", "0000:67:00.0"),
    ]  # fmt: skip
    gone = look(NVML_GONE="0")
    assert (gone.listed, gone.states) == ([], [])


def test_what_a_gpu_does_not_offer_is_null(look):
    (state,) = look("no_application_clock").states
    assert (state.clock_limit_mhz, state.power_cap_w) == (None, 230.0)


# The windows are shorter than energy needs; tests of `kit.stats.window_energy` check the thresholds.
SAMPLE = """
import sys, time, msgspec
from kit.sensors.sources import now_ns, probe_all
from kit.sensors.sampler import Sampling
from kit.stats import window_energy
window_energy.WINDOW_MIN_NS, window_energy.UPDATES_MIN = 10**9, 5
window_energy.COVERAGE_MIN, window_energy.ERROR_SHARE_MAX = 0.7, 0.3
sampling = Sampling.start(probe_all())
sampling.wait_for_first()
begin = now_ns()
time.sleep(2.2)
end = now_ns()
samples = sampling.stop()
series = [s._replace(report=msgspec.structs.replace(s.report, lag_max_ns=10**8)) for s in samples.series]
samples = samples._replace(series=series)
energies = samples.energy("steady", [(begin, end)], 10, 5)
answer = (samples.summaries([(begin, end)]), energies, samples.over_time((begin, end)))
sys.stdout.write(msgspec.json.encode(answer).decode())
"""


@pytest.fixture(scope="module")
def sampled(in_nvml_process):
    """Summaries, energy and readings over time of samplers that run at once, each beside GPUs of other settings."""
    planted = {"NVML_POWER_VIOLATION_PCT": "25", "NVML_TENSOR_PCT": "41", "NVML_DRAM_PCT": "7", "NVML_RIPPLE_PCT": "5"}
    settings = dict.fromkeys(("constant_energy", "falling_energy", "zero_power", "power_capped"), planted)
    settings["two GPUs"] = {"NVML_BOARDS": "2", "NVML_WATTS": "150", "NVML_PERIOD_MS": "20", "NVML_QUANTUM_MJ": "500"}
    settings["throttles"] = {"NVML_THROTTLED_MHZ": "1410"}
    settings["lost"] = {"NVML_LOST_AFTER_MS": "2000"}
    with ThreadPoolExecutor(len(settings)) as pool:
        answers = pool.map(lambda wrong: in_nvml_process(SAMPLE, wrong, **settings[wrong]), settings)
        decoded = [
            msgspec.json.decode(answer, type=tuple[dict[str, SensorSummary], list[Energy], list[SensorReadings]])
            for answer in answers
        ]
    return {
        wrong: (summaries, {energy.sensor: energy for energy in energies}, {each.sensor: each for each in readings})
        for wrong, (summaries, energies, readings) in zip(settings, decoded, strict=True)
    }


def watts(energy):
    return energy.joules_j / (energy.window_ns / 1e9)


@pytest.mark.parametrize(
    ("wrong", "sensor", "code"),
    [
        ("constant_energy", "nvml.0.energy", "counter_stuck"),
        ("falling_energy", "nvml.0.energy", "counter_reset"),
        ("zero_power", "nvml.0.power", "zero_power"),
    ],
)
def test_nonsense_of_a_sensor_is_no_joules_and_the_rest_stays(sampled, wrong, sensor, code):
    summaries, energies, _ = sampled[wrong]
    assert (energies[sensor].joules_j, energies[sensor].reason.code) == (None, code)
    (other,) = energies.keys() - {sensor}
    assert watts(energies[other]) == pytest.approx(200, rel=0.1)
    assert summaries["nvml.0.utilization"].mean == 87.0


def test_the_sampler_sees_the_planted_gpu(sampled):
    summaries, energies, _ = sampled["power_capped"]
    percentages = {name.removeprefix("nvml.0."): seen.mean for name, seen in summaries.items() if seen.unit == "%"}
    planted = {
        "thermal_violation": 0, "sm_activity": 60, "tensor_activity": 41, "fp32_activity": 5, "dram_activity": 7,
        "utilization": 87.0, "throttled": 100.0, "throttled.software_power_cap": 100.0,
    }  # fmt: skip
    assert percentages.items() >= planted.items()
    assert percentages["power_violation"] == pytest.approx(25, rel=0.05)
    assert percentages.keys() == planted.keys() | {"power_violation", "sampler.cpu"}
    assert summaries["nvml.0.utilization"].max == 87.0
    assert summaries["nvml.0.memory"].unit == "B"
    assert not any("energy" in name for name in summaries)  # updated too seldom for the power of a block
    assert energies.keys() == {"nvml.0.energy", "nvml.0.power"}
    for energy in energies.values():
        assert watts(energy) == pytest.approx(200, rel=0.1), energy
        assert energy.samples == 10


def test_joules_of_two_gpus_are_each_gpus_own_whatever_the_counters_period(sampled):
    _, energies, readings = sampled["two GPUs"]
    for sensor, bus, planted_w in (("nvml.0.energy", "0000:65:00.0", 150), ("nvml.1.energy", "0000:66:00.0", 300)):
        assert energies[sensor].device_id == bus
        assert watts(energies[sensor]) == pytest.approx(planted_w, rel=0.05)
    assert readings.keys() == {f"nvml.{board}.{name}" for board in (0, 1) for name in ("power", "frequency")}


def test_a_board_that_throttles_shows_when_its_clock_falls(sampled):
    clock = sampled["throttles"][2]["nvml.0.frequency"]
    # The processor of the stand-in's host may be late, so that the fall is somewhere within the window.
    assert (clock.unit, clock.values[-1]) == ("MHz", 1410.0)
    assert clock.values == sorted(clock.values, reverse=True) and set(clock.values) <= {1755.0, 1410.0}
    assert len(clock.at_ns) == len(clock.values) > 5, "a clock is read at each tick, once in 0.1 s"


def test_a_gpu_that_is_lost_in_mid_block_gives_no_joules_and_says_why(sampled):
    lost = sampled["lost"][1]["nvml.0.energy"]
    assert (lost.joules_j, lost.reason.code) == (None, "energy_low_coverage")
