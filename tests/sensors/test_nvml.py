"""Against a stand-in for the vendor's library, below pynvml."""

import hashlib
import json
import time

import msgspec
import pynvml
import pytest

from kit.errors import KitError
from kit.profile.identity import Accelerator
from kit.profile.reason import Reason
from kit.profile.sensor import Energy, SensorReport, SensorSummary
from kit.report.sentences import REASONS
from kit.sensors import nvml
from kit.sensors.measured_lag import measured_lags

READ_ALL = """
import sys, msgspec
from kit.sensors import nvml
answer = [(s.report, s.read() if s.is_available else None) for s in nvml.open_sampled()]
sys.stdout.write(msgspec.json.encode(answer).decode())
"""


def read_all(run, wrong="", **more):
    answer = msgspec.json.decode(
        run(READ_ALL, wrong, **more), type=list[tuple[SensorReport, tuple[int, float | None] | None]]
    )
    return {report.name: (report, reading and reading[1]) for report, reading in answer}


def test_every_quantity_of_a_board(in_nvml_process):
    readings = read_all(in_nvml_process)
    values = {name: value for name, (_, value) in readings.items()}
    energy = values.pop("nvml.0.energy")
    assert values == {
        "nvml.0.power": 200.0,
        "nvml.0.utilization": 87.0,
        "nvml.0.memory": 3 * 2**30,
        "nvml.0.frequency": 1755.0,
        "nvml.0.temperature": 54.0,
        "nvml.0.throttled": 1.0,
        "nvml.0.power_violation": 7000.0,
        "nvml.0.thermal_violation": 0.0,
    }
    assert energy > 0
    assert energy % 20 == 0
    late = {name for name, (report, _) in readings.items() if report.lag_max_ns == nvml.LAG_MAX_NS}
    assert late == {"nvml.0.energy", "nvml.0.power"}
    report = readings["nvml.0.energy"][0]
    assert report.counter
    assert report.update_period_ns == pytest.approx(100_000_000, rel=0.2)
    assert all(report.sampled for report, _ in readings.values())


def test_the_lag_that_a_self_test_measured_on_the_very_board_is_what_its_joules_allow_for(in_nvml_process, tmp_path):
    uuid = hashlib.sha256(b"GPU-stand-in-0").hexdigest()
    bus = read_all(in_nvml_process)["nvml.0.energy"][0].device_id
    file = tmp_path / "hardware-gpu.json"
    for of_board, lag_ns in ((uuid, 170_000_000), ("0" * 64, nvml.LAG_MAX_NS)):
        lags = [{"lag_low_ns": -30_000_000, "lag_high_ns": high_ns} for high_ns in (110_000_000, 120_000_000)]
        responses = [{"sensor": "nvml.0.energy", "device_id": bus} | lag for lag in lags]
        identity = {"facts": {"gpu.0.device_id": bus, "gpu.0.uuid_sha256": of_board}}
        file.write_text(json.dumps({"identity": identity, "responses": responses}))
        readings = read_all(in_nvml_process, KIT_GPU_FILE=str(file))
        assert readings["nvml.0.energy"][0].lag_max_ns == lag_ns
        # Of power that file tells nothing.
        assert readings["nvml.0.power"][0].lag_max_ns == nvml.LAG_MAX_NS


@pytest.mark.parametrize("content", [None, "", "{}", "[1]"])
def test_a_board_file_that_is_none_is_one_line(monkeypatch, tmp_path, content):
    file = tmp_path / "hardware-gpu.json"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("KIT_GPU_FILE", str(file))
    with pytest.raises(KitError, match=f"^KIT_GPU_FILE={file}: [^\n]*, or unset KIT_GPU_FILE$"):
        measured_lags()


def test_power_falls_back_to_the_older_call_and_says_so(in_nvml_process):
    report, value = read_all(in_nvml_process, "no_instant")["nvml.0.power"]
    assert value == 190.0
    assert "mean over 1 s" in report.source


@pytest.mark.parametrize(
    ("wrong", "name", "code"),
    [
        ("no_energy", "nvml.0.energy", "nvml_no_energy_counter"),
        ("no_clock_events", "nvml.0.throttled", "nvml_not_supported"),
        ("old driver", "nvml.0.throttled", "nvml_failed"),
    ],
)
def test_a_board_or_driver_that_lacks_one_quantity_keeps_the_rest(in_nvml_process, old_nvml_folder, wrong, name, code):
    readings = read_all(in_nvml_process, wrong, **({"folder": old_nvml_folder} if wrong == "old driver" else {}))
    report, value = readings.pop(name)
    assert (report.status, value) == ("unavailable", None)
    assert report.reason.code == code
    assert {report.status for report, _ in readings.values()} == {"measured"}
    assert readings["nvml.0.power"][1] == 200.0


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ("no_driver", "nvml_driver_not_loaded"),
        ("no_permission", "nvml_no_permission"),
        ("mismatch", "nvml_version_mismatch"),
        ("no_gpu", "nvml_no_gpu"),
    ],
)
def test_each_obstacle_has_its_own_reason(in_nvml_process, wrong, code):
    ((report, value),) = read_all(in_nvml_process, wrong).values()
    assert (report.name, report.reason, value) == ("nvml.energy", Reason(code=code), None)
    assert REASONS[code]


@pytest.mark.parametrize("name", [name for name in dir(pynvml) if name.startswith("nvmlClocksEventReason")])
def test_every_bit_that_nvml_names_is_known(name):
    mask = getattr(pynvml, name)
    asked_for = ("GpuIdle", "ApplicationsClocksSetting", "UserDefinedClocks", "DisplayClockSetting", "None")
    assert bool(nvml.slowing(mask)) != name.endswith(asked_for)
    assert not any(word.startswith("unnamed") for word in nvml.slowing(mask))


def test_update_period_of_a_counter_that_steps_fails_now_and_then_or_stands_still():
    calls = iter(range(10**9))
    period_ns = nvml.update_period_ns(lambda: None if next(calls) % 3 == 2 else time.monotonic_ns() // 50_000_000, 0.4)
    assert period_ns == pytest.approx(50_000_000, rel=0.3)
    assert nvml.update_period_ns(lambda: 7, limit_s=0.1) is None


# Windows of the example are shorter than energy needs: the thresholds are tested with arrays of known content.
SAMPLE = """
import sys, time, msgspec
from kit.sensors.catalog import probe_all
from kit.sensors.protocol import now_ns
from kit.sensors.sampler import Sampling
from kit.stats import energy
energy.WINDOW_MIN_NS, energy.UPDATES_MIN, energy.COVERAGE_MIN, energy.ERROR_SHARE_MAX = 10**9, 5, 0.7, 0.3
sampling = Sampling.start(probe_all())
sampling.wait_for_first()
begin = now_ns()
time.sleep(2.2)
end = now_ns()
samples = sampling.stop()
series = [of._replace(report=msgspec.structs.replace(of.report, lag_max_ns=10**8)) for of in samples.series]
samples = samples._replace(series=series)
answer = (samples.summaries([(begin, end)]), samples.energy(begin, end, 10, 5))
sys.stdout.write(msgspec.json.encode(answer).decode())
"""


def sample(run, wrong, **settings):
    return msgspec.json.decode(
        run(SAMPLE, wrong, NVML_RIPPLE_PCT="5", **settings), type=tuple[dict[str, SensorSummary], list[Energy]]
    )


@pytest.mark.parametrize(
    ("wrong", "sensor", "code"),
    [
        ("constant_energy", "nvml.0.energy", "counter_stuck"),
        ("falling_energy", "nvml.0.energy", "counter_reset"),
        ("zero_power", "nvml.0.power", "zero_power"),
    ],
)
def test_nonsense_of_a_board_is_no_joules_and_the_rest_stands(in_nvml_process, wrong, sensor, code):
    summaries, energies = sample(in_nvml_process, wrong)
    of_sensor = {energy.sensor: energy for energy in energies}
    assert (of_sensor[sensor].joules_j, of_sensor.pop(sensor).reason.code) == (None, code)
    (other,) = of_sensor.values()
    assert other.joules_j / (other.window_ns / 1e9) == pytest.approx(200, rel=0.1)
    assert summaries["nvml.0.utilization"].mean == 87.0


def test_the_sampler_sees_the_planted_board(in_nvml_process):
    settings = {"NVML_POWER_VIOLATION_PCT": "25", "NVML_TENSOR_PCT": "41", "NVML_DRAM_PCT": "7"}
    summaries, energies = sample(in_nvml_process, "power_capped", **settings)
    shares = {name.removeprefix("nvml.0."): of.mean for name, of in summaries.items() if of.unit == "%"}
    assert shares["power_violation"] == pytest.approx(25, rel=0.05)
    assert shares["thermal_violation"] == 0
    activities = {name: share for name, share in shares.items() if name.endswith("_activity")}
    assert activities == {"sm_activity": 60, "tensor_activity": 41, "fp32_activity": 5, "dram_activity": 7}
    assert summaries["nvml.0.utilization"].mean == summaries["nvml.0.utilization"].max == 87.0
    assert summaries["nvml.0.memory"].unit == "B"
    assert summaries["nvml.0.throttled"].mean == 100.0
    assert summaries["nvml.0.throttled.software_power_cap"].mean == 100.0
    assert len([name for name in summaries if "throttled" in name]) == 2
    assert not any("energy" in name for name in summaries)  # updated too seldom for the power of a block
    assert {energy.sensor for energy in energies} == {"nvml.0.energy", "nvml.0.power"}
    for energy in energies:
        assert energy.joules_j / (energy.window_ns / 1e9) == pytest.approx(200, rel=0.1), energy
        assert energy.samples == 10


PROBE = """
import sys, msgspec
from kit.sensors import gpm
sys.stdout.write(msgspec.json.encode([sensor.report for sensor in gpm.open_sampled()]).decode())
"""


@pytest.mark.parametrize(("wrong", "code"), [("", None), ("no_gpm", "nvml_no_gpm"), ("mig", "nvml_no_gpm")])
def test_boards_that_do_not_tell_what_they_do(in_nvml_process, wrong, code):
    reports = msgspec.json.decode(in_nvml_process(PROBE, wrong), type=list[SensorReport])
    assert len(reports) == 4
    assert {report.reason and report.reason.code for report in reports} == {code}


IDENTIFY = """
import sys, msgspec
from kit.fingerprint.identity import identity
from kit.fingerprint.machine_state import state
sys.stdout.write(msgspec.json.encode((identity().accelerators(), state().accelerators())).decode())
"""


def identify(run, wrong="", **settings):
    return msgspec.json.decode(run(IDENTIFY, wrong, **settings), type=tuple[list[Accelerator], list[Accelerator]])


def test_identity_and_state_of_each_board(in_nvml_process):
    (gpu,), (state,) = identify(in_nvml_process)
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


def test_the_state_has_what_bounds_a_board_and_who_else_is_on_it(in_nvml_process):
    _, (state,) = identify(in_nvml_process, "exclusive", NVML_PROCESSES="3")
    assert (state.compute_mode, state.processes) == ("exclusive_process", 3)
    assert identify(in_nvml_process, "mig")[1][0].mig is True


def test_a_board_that_has_fallen_off_its_bus_leaves_the_others_their_places(in_nvml_process):
    boards, states = identify(in_nvml_process, NVML_BOARDS="3", NVML_GONE="1")
    assert len(boards) == 2
    assert [(state.name, state.device_id) for state in states] == [("gpu 0", "0000:65:00.0"), ("gpu 2", "0000:67:00.0")]
    assert identify(in_nvml_process, NVML_GONE="0") == ([], [])


def test_what_a_board_does_not_tell_is_null_and_where_none_is_listed_there_is_none(in_nvml_process):
    _, (state,) = identify(in_nvml_process, "no_application_clock")
    assert (state.clock_limit_mhz, state.power_cap_w) == (None, 230.0)
    assert identify(in_nvml_process, "no_gpu") == ([], [])


SAMPLED = """
import sys, time
from kit.sensors.catalog import probe_all
from kit.sensors.protocol import now_ns
from kit.sensors.sampler import Sampling
sampling = Sampling.start([report for report in probe_all() if report.name.startswith("nvml")])
sampling.wait_for_first()
begin_ns = now_ns()
time.sleep(11.0)
end_ns = now_ns()
samples = sampling.stop()
for row in samples.energy(begin_ns, end_ns, 1, 1):
    watts = None if row.joules_j is None else row.joules_j / (row.window_ns / 1e9)
    print(row.sensor, row.device_id, watts, None if row.reason is None else row.reason.code)
"""


@pytest.mark.slow
def test_joules_of_several_boards_are_each_boards_own_whatever_the_counters_period(in_nvml_process):
    printed = in_nvml_process(SAMPLED, NVML_BOARDS="2", NVML_WATTS="150", NVML_PERIOD_MS="20", NVML_QUANTUM_MJ="500")
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines()}
    for sensor, bus, watts in (("nvml.0.energy", "0000:65:00.0", 150), ("nvml.1.energy", "0000:66:00.0", 300)):
        assert rows[sensor][0] == bus
        assert float(rows[sensor][1]) == pytest.approx(watts, rel=0.005)


@pytest.mark.slow
def test_a_board_that_is_lost_in_mid_block_gives_no_joules_and_says_why(in_nvml_process):
    printed = in_nvml_process(SAMPLED, NVML_LOST_AFTER_MS="3000")
    rows = {line.split()[0]: line.split()[2:] for line in printed.splitlines()}
    assert rows["nvml.0.energy"] == ["None", "energy_low_coverage"]


def test_cuda_and_nvml_call_a_board_by_the_same_bus_id(in_nvml_process):
    code = """
from kit.sensors import cuda
from kit.sensors.nvml import open_sampled
print(cuda.pci_bus_ids(1) == [open_sampled()[0].report.device_id], cuda.memory_b(0) == 80 << 30)
print(len(cuda.pci_bus_ids(3)))
"""
    assert in_nvml_process(code).split() == ["True", "True", "0"]
    without = "from kit.sensors import cuda\nprint(cuda.pci_bus_ids(1), cuda.memory_b(0))"
    assert in_nvml_process(without, CUDA_STAND_IN="none").split() == ["[]", "None"]


@pytest.mark.parametrize(
    ("wrong", "subject", "says"),
    [("exclusive", "GPU 0 compute mode", "nvidia-smi -i 0 -c DEFAULT"), ("mig", "GPU 0 MIG", "-mig 0")],
)
def test_the_doctor_tells_a_mode_that_bounds_measurements(in_nvml_process, wrong, subject, says):
    code = """
from kit.fingerprint.doctor_checks import conditions
from kit.report.sentences import sentence
for condition in conditions([0], 1):
    if not condition.fine:
        print(condition.subject, sentence(condition.what), sep=": ")
"""
    (line,) = [line for line in in_nvml_process(code, wrong).splitlines() if line.startswith("GPU")]
    assert line.startswith(subject)
    assert says in line


def test_members_take_whole_turns_on_a_gpu_that_only_one_process_may_hold(in_nvml_process):
    code = """
from kit.runner.sequential import exclusive_device
from kit.suites.plan import plan_cells
from kit.suites.suite import Axes, Suite
cells = plan_cells(Suite(name="x", title="", cells=Axes(workloads=["mlp"], backends=["torch"], devices=["gpu"])))
why = exclusive_device(cells)
print(None if why is None else why.code)
"""
    assert in_nvml_process(code, "exclusive").split() == ["exclusive_device"]
    assert in_nvml_process(code).split() == ["None"]
