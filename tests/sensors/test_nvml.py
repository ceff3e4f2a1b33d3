"""Against a stand-in for the vendor's library, below pynvml."""

from itertools import pairwise

import msgspec
import pytest

from kit.profile.identity import Accelerator
from kit.profile.sensor import SensorReport
from kit.sensors import nvml, nvml_library
from kit.worker.samples import Samples
from kit.worker.steady_gpu_throttling import NO_GPU
from kit.worker.steady_utilization import utilization

READ_ALL = """
import sys, msgspec
from kit.sensors import nvml
answer = [(s.probe(), s.read() if s.probe().status == "measured" else None) for s in nvml.open_all()]
sys.stdout.write(msgspec.json.encode(answer).decode())
"""


def read_all(run, wrong=""):
    answer = msgspec.json.decode(run(READ_ALL, wrong), type=list[tuple[SensorReport, tuple[int, float | None] | None]])
    return {report.name: (report, reading and reading[1]) for report, reading in answer}


def test_every_quantity_of_a_board(in_nvml_process):
    found = read_all(in_nvml_process)
    values = {name: value for name, (_, value) in found.items()}
    energy = values.pop("nvml.0.energy")
    assert values == {
        "nvml.0.power": 200.0,
        "nvml.0.utilization": 87.0,
        "nvml.0.memory": 3 * 2**30,
        "nvml.0.frequency": 1755.0,
        "nvml.0.temperature": 54.0,
        "nvml.0.clock_events": 1.0,
    }
    assert energy > 0
    assert energy % 20 == 0


def test_update_period_of_the_energy_counter_is_measured(in_nvml_process):
    report, _ = read_all(in_nvml_process)["nvml.0.energy"]
    assert report.update_period_ns == pytest.approx(100_000_000, rel=0.2)


def test_power_falls_back_to_the_older_call_and_says_so(in_nvml_process):
    report, value = read_all(in_nvml_process, "no_instant")["nvml.0.power"]
    assert value == 190.0
    assert "mean over 1 s" in report.source


def test_board_without_energy_counter_keeps_the_rest(in_nvml_process):
    found = read_all(in_nvml_process, "no_energy")
    report, value = found["nvml.0.energy"]
    assert (report.status, value) == ("unavailable", None)
    assert "Volta" in report.reason
    assert found["nvml.0.power"][1] == 200.0


def test_clock_events_are_a_mask_and_say_so(in_nvml_process):
    report, value = read_all(in_nvml_process, "power_capped")["nvml.0.clock_events"]
    assert (report.quantity, report.unit, value) == ("throttling", "1", 4.0)
    assert report.source.startswith("nvmlDeviceGetCurrentClocksEventReasons: a bit mask")


def test_clock_events_of_a_library_that_knows_the_older_name_alone(in_nvml_process):
    report, value = read_all(in_nvml_process, "old_names")["nvml.0.clock_events"]
    assert value == 32.0
    assert report.source.startswith("nvmlDeviceGetCurrentClocksThrottleReasons: ")


def test_a_board_without_clock_events_says_so_and_keeps_the_rest(in_nvml_process):
    found = read_all(in_nvml_process, "no_clock_events")
    report, value = found["nvml.0.clock_events"]
    assert (report.status, value) == ("unavailable", None)
    assert report.reason == "throttling of GPU 0: the board or its driver does not offer it"
    assert found["nvml.0.power"][1] == 200.0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("no_driver", nvml_library.DRIVER_NOT_LOADED),
        ("no_permission", nvml_library.NO_PERMISSION),
        ("mismatch", nvml_library.VERSION_MISMATCH),
        ("no_gpu", nvml_library.NO_GPU),
    ],
)
def test_each_obstacle_has_its_own_reason(in_nvml_process, wrong, said):
    found = read_all(in_nvml_process, wrong)
    assert list(found) == ["nvml.energy", "nvml.utilization"]
    assert {report.reason for report, _ in found.values()} == {said}


def test_without_the_library():
    sensors = nvml.open_all()
    if sensors[0].probe().status == "measured":
        pytest.skip("there is a GPU here")
    assert sensors[0].probe().reason
    assert sensors[0].read().value is None


def test_accelerators_of_the_identity(in_nvml_process):
    code = (
        "import sys, msgspec\nfrom kit.fingerprint.accelerators import accelerators\n"
        "sys.stdout.write(msgspec.json.encode(accelerators({})).decode())"
    )
    (gpu,) = msgspec.json.decode(in_nvml_process(code), type=list[Accelerator])
    assert (gpu.kind, gpu.model, gpu.memory_b, gpu.driver) == ("gpu", "Stand-in H100", 80 << 30, "570.1")
    assert len(gpu.uuid_sha256) == 64


SAMPLE = """
import sys, time, msgspec
from kit.worker.sampler_process import SamplerProcess
with SamplerProcess(period_s=0.05) as sampler:
    time.sleep(1.5)
sys.stdout.write(msgspec.json.encode(sampler.samples).decode())
"""


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("", ([], None)),
        ("power_capped", (["software power cap of GPU 0"], None)),
        ("old_names", (["software thermal slowdown of GPU 0"], None)),
        ("no_clock_events", (None, "throttling of GPU 0: the board or its driver does not offer it")),
        ("no_driver", (None, NO_GPU)),
    ],
)
def test_a_slowed_board_is_seen_through_the_sampler(in_nvml_process, wrong, expected):
    samples = msgspec.json.decode(in_nvml_process(SAMPLE, wrong), type=Samples)
    found = utilization(samples, samples.ticks[0].at_ns, samples.ticks[-1].at_ns)
    assert (found.gpu_throttled_by, found.reasons.get("gpu_throttled_by")) == expected


@pytest.mark.parametrize("wrong", ["", "glitch"])
def test_the_sampler_sees_the_planted_power(in_nvml_process, wrong):
    """200 W, also where every third read of the counter fails."""
    samples = msgspec.json.decode(in_nvml_process(SAMPLE, wrong), type=Samples)
    series = samples.series("nvml.0.energy")
    changes = [later for earlier, later in pairwise(series) if later.value != earlier.value]
    seconds = (changes[-1].at_ns - changes[0].at_ns) / 1e9
    assert (changes[-1].value - changes[0].value) / seconds == pytest.approx(200, rel=0.2)
    if wrong:
        assert len(series) < len(samples.ticks)
