"""What is sampled during a round reaches the launches whose blocks it fell into; energy has a long block of its own."""

import numpy as np
import pytest
from scripted_launcher import S, ScriptedLauncher

from kit.profile.reason import reason
from kit.profile.sensor import SensorReport
from kit.runner import round as round_module
from kit.sensors.samples import Samples, Series

WATTS = 50.0


def sensor(name, quantity, unit, **more):
    fields = {"scope": "package 0", "source": "planted", "status": "measured", "sampled": True}
    return SensorReport(name=name, quantity=quantity, unit=unit, **(fields | more))


ENERGY = sensor("rapl.package-0", "energy", "J", counter=True, update_period_ns=1_000_000)
TEMPERATURE = sensor("cpu.temperature", "temperature", "C")


@pytest.fixture
def sampling(monkeypatch):
    """A sampler that stands in for the hardware: 50 W, and a temperature that is the second of the scripted clock."""
    launcher, asked = ScriptedLauncher(), []

    class Planted:
        def stop(self):
            at_ns = np.arange(0, launcher.now_ns + S, S // 100)
            joules = (at_ns / S * WATTS).tolist()
            return Samples(
                [Series(ENERGY, at_ns.tolist(), joules), Series(TEMPERATURE, at_ns.tolist(), (at_ns / S).tolist())]
            )

    def start(reports):
        asked.append(list(reports))
        return Planted()

    monkeypatch.setattr(round_module.Sampling, "start", start)
    return launcher, asked


def test_joules_are_of_the_long_block_and_means_of_the_others(conducted, sampling):
    launcher, asked = sampling
    run = conducted(rounds=2, cycles=3, energy_s=12.0, sensors=[ENERGY, TEMPERATURE])
    profile = run.begin(launcher)
    # One sampler a round, for all members.
    assert asked == [[ENERGY, TEMPERATURE]] * 2
    for cell in profile.cells:
        for launch in cell.launches:
            (energy,) = launch.energy
            assert (energy.sensor, energy.reason, energy.block_ns) == ("rapl.package-0", None, 12 * S)
            assert energy.joules_j / (energy.window_ns / S) == pytest.approx(WATTS)
            assert energy.samples == 5 * 128
            # The long block is none of the cycles'.
            assert launch.blocks.cycle == [0, 1, 2]
            begin_s, end_s = launch.blocks.begin_ns[0] / S, (launch.blocks.begin_ns[-1] + launch.blocks.span_ns[-1]) / S
            assert begin_s <= launch.sensors["cpu.temperature"].mean <= launch.sensors["cpu.temperature"].max <= end_s
            assert launch.sensors["cpu.temperature"].unit == "C"


@pytest.mark.parametrize("status", ["unavailable", "modelled"])
def test_without_a_sensor_of_energy_there_is_no_long_block(conducted, sampling, status):
    absent = sensor("rapl.package-0", "energy", "J", status=status, reason=reason("rapl_missing"))
    run = conducted(rounds=1, cycles=3, energy_s=12.0, sensors=[absent])
    run.begin(sampling[0])
    assert [what for what, _ in run.launcher.calls].count("block") == 3 * 3


def test_where_nothing_is_sampled_no_process_runs_beside_the_members(conducted):
    profile = conducted(rounds=1).begin()
    assert [(launch.sensors, launch.energy) for cell in profile.cells for launch in cell.launches] == [({}, [])] * 3
