"""What is sampled during a round reaches the launches whose blocks it fell into; energy has a long block of its own."""

from functools import partial

import numpy as np
import profile_builder as b
import pytest
from profile_builder import S
from scripted_launcher import ScriptedLauncher, plan_of, suite

from kit.profile.fields import reason
from kit.runner import round as round_module
from kit.runner.warm_up_and_blocks import has_energy, idle_s, long_block_s, planned_energy_s
from kit.sensors.sampler import Sampled, SensorSeries

STEADY_W, COMPILE_W, IDLE_W, WARMER_IDLE_W, BLOCKS_W = 50.0, 80.0, 10.0, 15.0, 30.0


sensor = partial(b.sensor, sampled=True)
ENERGY = sensor("rapl.package-0", "energy", "J", counter=True, update_period_ns=1_000_000)
TEMPERATURE = sensor("cpu.temperature", "temperature", "C")


@pytest.fixture
def sampling(monkeypatch):
    """A sampler that stands in for the hardware: power by what runs, a temperature that is the scripted second."""
    launcher, asked = ScriptedLauncher(compile_s=4.0, drift=0.1), []

    class Planted:
        def stop(self):
            at_ns = np.arange(0, launcher.now_ns + S, S // 100)
            watts = np.full(at_ns.size, BLOCKS_W)
            spans = [(STEADY_W, launcher.long_blocks), (COMPILE_W, launcher.compiled)]
            spans += [(IDLE_W, launcher.idles[::2]), (WARMER_IDLE_W, launcher.idles[1::2])]
            for power_w, windows in spans:
                for begin_ns, end_ns in windows:
                    watts[(at_ns >= begin_ns) & (at_ns < end_ns)] = power_w
            joules = np.concatenate([[0.0], np.cumsum(watts[:-1]) / 100])
            seconds = (at_ns / S).tolist()
            return Sampled(
                [
                    SensorSeries(ENERGY, at_ns.tolist(), joules.tolist()),
                    SensorSeries(TEMPERATURE, at_ns.tolist(), seconds),
                ]
            )

    def start(reports):
        asked.append(list(reports))
        return Planted()

    monkeypatch.setattr(round_module.Sampling, "start", start)
    return launcher, asked


def watts(energy):
    return energy.joules_j / (energy.window_ns / S)


def of(launch, what):
    return [energy for energy in launch.energy if energy.kind == what]


def test_joules_are_of_the_long_block_and_means_of_the_others(conducted, sampling):
    launcher, asked = sampling
    run = conducted(rounds=2, cycles=3, energy_s=12.0, sensors=[ENERGY, TEMPERATURE])
    profile = run.begin(launcher)
    # One sampler a round, for all workers.
    assert asked == [[ENERGY, TEMPERATURE]] * 2
    for cell in profile.cells:
        for launch in cell.launches:
            (energy,) = of(launch, "steady")
            assert (energy.sensor, energy.reason) == ("rapl.package-0", None)
            assert 12 * S <= energy.block_ns <= 1.01 * 12 * S
            assert watts(energy) == pytest.approx(STEADY_W, rel=0.01)
            assert energy.samples == 128 * energy.steps
            assert energy.steps == pytest.approx(energy.block_ns / launch.blocks.median_ns[-1], rel=0.2), (
                "the machine drifts"
            )
            assert (energy.begin_ns, energy.begin_ns + energy.block_ns) in launcher.long_blocks
            assert (energy.tier, energy.method) == ("device_counter", "counter_between_updates")
            assert energy.error_fraction == pytest.approx(0.011 * S / energy.block_ns, rel=0.01)
            assert energy.power_max_w == pytest.approx(STEADY_W)
            assert energy.idle_before_w == pytest.approx(IDLE_W, rel=0.02)
            assert energy.idle_after_w == pytest.approx(WARMER_IDLE_W, rel=0.02)
            (compiled,) = of(launch, "compile")
            assert watts(compiled) == pytest.approx(COMPILE_W, rel=compiled.error_fraction)
            assert (compiled.samples, compiled.block_ns) == (0, pytest.approx(4 * S, rel=0.02))
            # The long block is none of the cycles'.
            assert launch.blocks.cycle == [0, 1, 2]
            begin_s, end_s = launch.blocks.begin_ns[0] / S, (launch.blocks.begin_ns[-1] + launch.blocks.span_ns[-1]) / S
            assert begin_s <= launch.sensors["cpu.temperature"].mean <= launch.sensors["cpu.temperature"].max <= end_s
            assert launch.sensors["cpu.temperature"].unit == "C"


def test_of_two_disturbed_long_blocks_the_better_one_counts_and_says_so(conducted, sampling):
    launcher, _ = sampling
    launcher.others = lambda at_s: 0.5 + at_s / 1000
    run = conducted(rounds=1, cycles=2, energy_s=12.0, backends=["torch"], sensors=[ENERGY])
    ((launch,),) = [cell.launches for cell in run.begin(launcher).cells]
    first, _ = launcher.long_blocks
    (energy,) = of(launch, "steady")
    assert (energy.begin_ns, energy.begin_ns + energy.block_ns) == first
    (note,) = [note for note in launch.notes if note.code == "energy_disturbed"]
    assert note.values["share_pct"] > 20


def test_of_the_last_round_alone_there_is_one_long_block_a_worker(conducted, sampling):
    run = conducted(rounds=3, cycles=2, energy_s=12.0, energy_rounds="last", sensors=[ENERGY])
    profile = run.begin(sampling[0])
    for cell in profile.cells:
        assert [[energy.kind for energy in launch.energy] for launch in cell.launches] == [
            [],
            [],
            ["steady", "compile"],
        ]
    assert len(sampling[0].long_blocks) == 3
    assert len(sampling[0].idles) == 2


@pytest.mark.parametrize(("precision_pct", "rounds"), [(None, [7, 8, 9]), (1.0, [7])])
def test_rounds_for_a_precision_have_no_long_block(precision_pct, rounds):
    plan = plan_of(suite(rounds=8), precision_pct=precision_pct, energy_s=12.0, energy_rounds="last", sensors=[ENERGY])
    assert [number for number in range(10) if has_energy(plan, number)] == rounds


def test_a_fit_has_the_joules_of_its_own_blocks_in_each_of_its_rounds(conducted, sampling):
    fields = {"backends": ["torch"], "tasks": ["fit"], "rounds": 2, "sensors": [ENERGY]}
    run = conducted(**fields, energy_s=12.0, energy_rounds="last")
    for place, launch in enumerate(run.begin(sampling[0]).cells[0].launches):
        (energy,) = of(launch, "fit")
        assert (energy.method, energy.block_ns) == ("between_readings", sum(launch.blocks.span_ns))
        assert energy.samples == 128 * sum(launch.blocks.steps)
        assert watts(energy) == pytest.approx(BLOCKS_W, rel=energy.error_fraction)
        if place == 0:
            assert (energy.idle_before_w, energy.idle_reason.code) == (None, "idle_not_measured")
    again = conducted(**fields, energy_s=0.0).begin(sampling[0])
    assert [launch.energy for launch in again.cells[0].launches] == [[], []]


def test_a_block_is_as_long_as_its_sensors_need():
    def period(period_ns, **more):
        return sensor("nvml.0.energy", "energy", "J", counter=True, update_period_ns=period_ns, **more)

    assert long_block_s([ENERGY]) == pytest.approx(10.4)
    assert long_block_s([ENERGY, period(250_000_000)]) == pytest.approx(26.4)
    assert long_block_s([ENERGY], 60.0) == 60.0
    # What a sensor of power would need does not count where a counter answers.
    power = sensor("nvml.0.power", "power", "W", mean_over_ns=S)
    assert long_block_s([power]) == pytest.approx(11.8)
    assert (idle_s([ENERGY]), idle_s([period(250_000_000)])) == (3.0, 5.0)
    # What does not count at the begin of a block, or of idle, is added.
    late = period(100_000_000, lag_max_ns=1_500_000_000)
    assert long_block_s([late]) == pytest.approx(long_block_s([period(100_000_000)]) + 1.5)
    assert idle_s([late]) == 4.5


def test_without_a_sensor_of_its_device_a_cell_has_a_long_block_only_if_asked():
    absent = sensor("rapl.package-0", "energy", "J", status="unavailable", reason=reason("rapl_missing"))
    platform = sensor("hwmon.power_meter.power1", "power", "W")
    others, cells = [absent, platform], [b.cell()]
    assert [planned_energy_s(asked_s, others, cells) for asked_s in (None, 0.0, 60.0)] == [0.0, 0.0, 60.0]
    assert planned_energy_s(None, [ENERGY, platform], cells) == long_block_s([ENERGY])
    assert planned_energy_s(0.0, [ENERGY, platform], cells) == 0.0
    # A model's joules are said to be so.
    modelled = sensor("rapl.package-0", "energy", "J", status="modelled", counter=True, update_period_ns=1_000_000)
    assert planned_energy_s(None, [modelled], cells) == long_block_s([modelled])


def test_a_long_block_that_no_sensor_tells_is_kept_for_a_meter(conducted):
    profile = conducted(rounds=1, cycles=3, energy_s=12.0).begin()
    for launch in (launch for cell in profile.cells for launch in cell.launches):
        (energy,) = launch.energy
        assert (energy.sensor, energy.joules_j, energy.reason.code) == ("none", None, "meter_not_given")
        assert 12 * S <= energy.block_ns <= 1.01 * 12 * S
        assert energy.samples == 128 * energy.steps > 0
        assert energy.begin_ns >= launch.blocks.begin_ns[-1] + launch.blocks.span_ns[-1]


def test_where_nothing_is_sampled_no_process_runs_beside_the_workers(conducted):
    profile = conducted(rounds=1).begin()
    assert [(launch.sensors, launch.energy) for cell in profile.cells for launch in cell.launches] == [({}, [])] * 3
