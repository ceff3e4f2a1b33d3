"""What boards make of a launch: gauges and joules of its own board alone, marks of what bounded it, whose joules."""

from functools import partial

import numpy as np
import pytest
from profile_builder import S, sensor
from scripted_launcher import ScriptedLauncher

from kit.compare.clean import DEVICE_OTHERS
from kit.devices import DEVICES
from kit.profile.facts import Accelerator
from kit.runner import round as round_module
from kit.sensors import nvml
from kit.sensors.sampler import Sampled, SensorSeries

USED, OTHER = "0000:65:00.0", "0000:66:00.0"
ALONE_W, TURNS_W, OTHER_W, IDLE_W, RIPPLE_W = 600.0, 400.0, 90.0, 70.0, 0.3


report = partial(sensor, sampled=True)


POWER = [
    report("nvml.0.power", "power", "W", mean_over_ns=S, device_id=USED),
    report("nvml.1.power", "power", "W", mean_over_ns=S, device_id=OTHER),
]
UTILIZATION = report("nvml.0.utilization", "utilization", "%", update_period_ns=S // 6, device_id=USED)
MASK = report("nvml.0.throttled", "throttling", nvml.MASK, device_id=USED)
TEMPERATURE = report("cpu.temperature", "temperature", "C")
SENSORS = [*POWER, UTILIZATION, MASK, TEMPERATURE]


def state(device_id=USED, **more):
    fields = {"power_cap_w": 700.0, "power_cap_default_w": 700.0, "processes": 0, "mig": False}
    return Accelerator(name="gpu 0", device_id=device_id, **(fields | more))


@pytest.fixture
def launch_on(conducted, monkeypatch):
    """A launch of a run beside a sampler that sees two boards; what each look at them sees."""

    def run(*looks, device="gpu", energy_s=12.0, slowed=0.0, device_ids=(USED,), cpus=0.0):
        launcher = ScriptedLauncher(device_ids=device_ids, others=lambda at_s: cpus * (1 + at_s / 10_000))
        states = iter(looks or [[state()]])
        last = []

        def look():
            last[:] = next(states, last)
            return list(last)

        class Planted:
            def stop(self):
                at_ns = np.arange(0, launcher.now_ns, S // 10)
                is_long = np.zeros(at_ns.size, bool)
                for begin_ns, end_ns in launcher.long_blocks:
                    is_long |= (at_ns >= begin_ns) & (at_ns <= end_ns)
                power_w = np.where(is_long, ALONE_W, TURNS_W) + RIPPLE_W * (np.arange(at_ns.size) % 3 - 1)
                masks = np.where(np.arange(at_ns.size) % 10 < 10 * slowed, 0x4, 0x1)
                for begin_ns, end_ns in launcher.idles:
                    power_w[(at_ns >= begin_ns) & (at_ns <= end_ns)] = IDLE_W
                others_w, busy_pct = np.full(at_ns.size, OTHER_W), np.where(is_long, 99.0, 50.0)
                values = (power_w, others_w, busy_pct, masks, np.ones(at_ns.size))
                pairs = zip(SENSORS, values, strict=True)
                return Sampled([SensorSeries(of, at_ns.tolist(), values.tolist()) for of, values in pairs])

        monkeypatch.setattr(round_module.Sampling, "start", lambda reports: Planted())
        monkeypatch.setattr(DEVICES["gpu"], "states", look)
        made = conducted(backends=["torch"], devices=[device], rounds=1, energy_s=energy_s, sensors=SENSORS)
        (result,) = made.begin(launcher).cells
        (launch,) = result.launches
        assert launch.gave_number
        return launch

    return run


def steady(launch):
    return [energy for energy in launch.energy if energy.kind == "steady"]


def codes(launch):
    return [mark.code for mark in launch.notes]


def test_gauges_are_of_the_long_block_and_of_the_board_that_was_used(launch_on):
    sensors = launch_on().sensors
    assert sensors["nvml.0.power"].mean == pytest.approx(ALONE_W, abs=RIPPLE_W)
    assert sensors["nvml.0.utilization"].mean == 99.0
    assert not [name for name in sensors if name.startswith("nvml.1")]
    assert "cpu.temperature" in sensors


def test_power_of_the_board_that_was_used_is_kept_over_its_long_block(launch_on):
    (power,) = launch_on().long_block_readings
    assert (power.sensor, power.unit) == ("nvml.0.power", "W")
    assert all(abs(watts - ALONE_W) <= RIPPLE_W for watts in power.values)
    assert power.at_ns[0] < S // 10 and 11.9 * S < power.at_ns[-1] <= 12.2 * S
    assert launch_on(energy_s=0.0).long_block_readings == []
    assert launch_on(device="cpu", device_ids=()).long_block_readings == []


def test_without_a_long_block_a_slow_gauge_is_left_out_with_the_reason(launch_on):
    launch = launch_on(energy_s=0.0)
    assert "nvml.0.utilization" not in launch.sensors
    for name in ("nvml.0.power", "nvml.0.utilization"):
        assert launch.sensor_reasons[name].code == "gauge_window_too_short"


def test_no_board_stands_beside_a_cpu_cell(launch_on):
    launch = launch_on(device="cpu", device_ids=())
    assert launch.sensors.keys() == {"cpu.temperature"}
    assert launch.notes == []


@pytest.mark.parametrize(
    ("processes", "cpus", "tries"), [([3, 1], 0.0, 2), ([3, 1], 1.9, 2), ([3, 3], 0.0, 2), ([1, 1], 0.0, 1)]
)
def test_joules_are_of_a_block_in_which_no_other_computed_or_refused(launch_on, monkeypatch, processes, cpus, tries):
    """`processes`: on the board, the worker's own among them, in each long block; `cpus`: that others use."""
    blocks, long_block = [], round_module.RoundWorker.long_block

    def counted(*arguments):
        blocks.append(long_block(*arguments))
        return blocks[-1]

    monkeypatch.setattr(round_module.RoundWorker, "long_block", counted)
    seen = lambda *_: processes[min(len(blocks), 2) - 1] if blocks else 1  # noqa: E731
    monkeypatch.setattr(DEVICES["gpu"], "processes", seen)
    launch = launch_on(cpus=cpus)
    assert len(blocks) == tries
    entries = [energy for energy in steady(launch) if energy.device_id == USED]
    assert entries
    if processes[-1] == 1:
        assert all(energy.begin_ns == blocks[-1].begin_ns[0] and energy.joules_j for energy in entries)
    else:
        assert {(energy.joules_j, energy.reason.code) for energy in entries} == {(None, "device_shared")}
        assert {energy.reason.values["processes"] for energy in entries} == {2}


def test_workers_that_take_turns_on_a_board_are_not_others(conducted, monkeypatch):
    launcher = ScriptedLauncher()
    monkeypatch.setattr(DEVICES["gpu"], "processes", lambda *_: len(launcher.alive) + 1)
    profile = conducted(backends=["torch", "jax"], devices=["gpu"], rounds=1).begin(launcher)
    seen = {others for cell in profile.cells for others in cell.launches[0].blocks.counters[DEVICE_OTHERS]}
    assert seen == {1}


def test_a_board_that_is_as_it_should_be_leaves_no_mark_and_its_joules(launch_on):
    launch = launch_on(slowed=0.0)
    assert launch.notes == []
    (energy,) = steady(launch)
    assert energy.joules_j / (energy.window_ns / S) == pytest.approx(ALONE_W, rel=1e-3)
    assert (energy.idle_before_w, energy.idle_after_w) == pytest.approx((IDLE_W, IDLE_W))
    assert energy.idle_processes == 0


def test_what_slowed_or_bounded_a_board_is_marked(launch_on):
    (throttled,) = launch_on(slowed=0.8).notes
    assert throttled.code == "device_throttled"
    assert throttled.values["share_pct"] == pytest.approx(80, abs=2)
    assert throttled.values["causes"] == "software power cap"
    (capped,) = launch_on([state(power_cap_w=230.0)]).notes
    assert (capped.code, capped.values) == ("power_capped", {"cap_w": 230.0, "default_w": 700.0})
    assert launch_on([state(), state(OTHER, power_cap_w=230.0, processes=9)]).notes == []


@pytest.mark.parametrize(
    ("looks", "marks", "why"),
    [
        ([[state(processes=2)], [state()]], ["device_shared"], "device_shared"),
        ([[state()], [state(processes=1)]], ["device_shared"], "device_shared"),
        ([[state(mig=True)]], [], "gpu_in_slices"),
    ],
)
def test_joules_of_a_board_that_was_not_the_workers_alone_are_null(launch_on, looks, marks, why):
    launch = launch_on(*looks)
    assert codes(launch) == marks
    (energy,) = steady(launch)
    assert (energy.joules_j, energy.window_ns, energy.reason.code) == (None, None, why)
    assert energy.idle_processes == max(state.processes for look in looks for state in look)
    # The gauges stand: they say of whom they are.
    assert launch.sensors["nvml.0.power"].mean == pytest.approx(ALONE_W, abs=RIPPLE_W)


def test_a_board_that_vanishes_between_looks_loses_nothing(launch_on):
    launch = launch_on([state()], [])
    assert (launch.failure, launch.notes, len(steady(launch))) == (None, [], 1)
