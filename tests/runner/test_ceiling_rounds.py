"""Operations beside networks: in the first rounds, with few cycles and no long block; alone like any cells."""

import msgspec
import pytest
from profile_builder import sensor
from scripted_launcher import ScriptedLauncher, Watching, launches_of, plan_of, suite

from kit.runner.interrupt import StopFlag
from kit.runner.running import RunUnderWay
from kit.runner.time_left import TimeLeft
from kit.suites.plan import with_ceilings
from kit.suites.suite import Axes

JOULES = sensor("rapl.package.0", "energy", "J")


def planned(of, **more):
    plan = plan_of(of, **more)
    steps = msgspec.structs.replace(plan.suite.plan, ceiling_rounds=of.measure.ceiling_rounds)
    return msgspec.structs.replace(plan, suite=msgspec.structs.replace(plan.suite, plan=steps))


def conducted(folder, plan):
    launcher = ScriptedLauncher()
    return RunUnderWay.begin(folder / "run.json", plan).run(Watching(), StopFlag(), start=launcher.start), launcher


def of_workload(profile, name):
    return [launch for result in profile.cells if result.cell.workload == name for launch in result.launches]


def test_they_take_two_rounds_of_three_cycles_without_a_long_block(tmp_path):
    of = with_ceilings(suite(backends=["torch"], rounds=4))
    profile, launcher = conducted(tmp_path, planned(of, cycles=5, energy_s=1.0, sensors=[JOULES]))
    assert {launch.round for launch in of_workload(profile, "mlp")} == {0, 1, 2, 3}
    for name in ("matmul", "triad", "copy_in", "empty"):
        launches = of_workload(profile, name)
        assert {launch.round for launch in launches} == {0, 1}
        assert all(launch.blocks.cycle == [0, 1, 2] for launch in launches)
    assert all(launch.blocks.cycle[:5] == [0, 1, 2, 3, 4] for launch in launches_of(profile, "torch", "train"))
    assert {key.split("/")[0] for what, key in launcher.calls if what == "long_block"} == {"mlp"}
    warmup_ns, network_ns = (
        {
            phase.duration_ns
            for launch in of_workload(profile, name)
            for phase in launch.phases
            if phase.name == "warmup"
        }
        for name in ("matmul", "mlp")
    )
    assert max(warmup_ns) < min(network_ns) / 2


def test_alone_they_are_measured_as_networks_are(tmp_path):
    of = with_ceilings(msgspec.structs.replace(suite(rounds=3), cells=Axes(workloads=["empty"], backends=["torch"])))
    assert of.measure.ceiling_rounds is None
    profile, _ = conducted(tmp_path, planned(of, cycles=5))
    launches = of_workload(profile, "empty")
    assert [launch.round for launch in launches] == [0, 1, 2]
    assert all(launch.blocks.cycle == [0, 1, 2, 3, 4] for launch in launches)


def test_the_estimate_knows_that_they_end_before_the_networks():
    plain = suite(backends=["torch"], rounds=8)
    of = with_ceilings(plain)
    alone, beside = (TimeLeft(planned(each, cycles=4), now=lambda: 0).estimate() for each in (plain, of))
    cells = sum(cell.workload != "mlp" for cell in planned(of).cells)
    # A start of 5.6 s, and of each a warm-up of 0.3 s and three blocks; in two rounds.
    assert beside.seconds - alone.seconds == pytest.approx(2 * (5.6 + cells * (0.3 + 3 * 0.25)))
