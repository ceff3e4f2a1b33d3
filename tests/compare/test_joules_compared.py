"""Joules of a cell come out as they were planted: gross, net, paired over rounds; or why there are none."""

import numpy as np
import profile_builder as b
import pytest
from msgspec.structs import replace

from kit.compare.compare import compare_within
from kit.compare.joules import launch_energy
from kit.compare.table import LaunchRow
from kit.profile.fields import reason
from kit.profile.instruments import SensorReport
from kit.profile.schema import Launch
from kit.report.comparison_report import comparison_report
from kit.runner.finished_launch import Idle, _with_idle
from kit.sensors.sampler import Sampled, SensorSeries

S = b.S
BLOCK = {"window_ns": 10 * S, "block_ns": 10 * S, "tier": "device_counter", "error_fraction": 0.01, "steps": 100}


def drawing(power_w, spread=0.0, seed=0, *, device="cpu", sensor="rapl.package-0", rounds=None, **more):
    """Change launches so that their device drew so much in a block of 10,000 samples."""
    rng = np.random.default_rng(seed)
    idle = {"idle_before_w": 20.0, "idle_after_w": 22.0, "idle_error_fraction": 0.05}

    def change(launch):
        drawn_w = power_w * float(np.exp(rng.normal(0, spread)))
        if rounds is None or launch.round in rounds:
            launch.energy = b.energy(10 * drawn_w, sensor=sensor, **BLOCK | idle | more)

    return change


def compared(*members, **fields):
    return compare_within("x", b.profile(b.group("g", *members), **fields))


def row(comparison, name):
    return next(row for row in comparison.groups[0].rows if row.name == name)


def shown(comparison, title, name, *, wide=False):
    table = comparison_report(comparison, {}, wide=wide).tables[0]
    titles = [column.title for column in table.columns]
    line = next(cells for cells in table.rows if cells[0].words == name)
    return line[titles.index(title)].words if title in titles else None


def both(torch, jax, **fields):
    """Two rows, of 4 and 2 ms, whose launches are changed so."""
    return compared(b.member("torch", 4.0, change=torch), b.member("jax", 2.0, change=jax), **fields)


def test_joules_are_compared_round_by_round_and_stand_in_the_table():
    comparison = both(drawing(90.0, 0.02), drawing(50.0, 0.02, 1))
    versus = row(comparison, "jax").energy_versus
    assert (versus.verdict, versus.count) == ("less", 8)
    assert versus.low < 50 / 90 < versus.high
    assert shown(comparison, "J/1k", "torch").startswith(("89", "90", "91"))
    assert " × less" in shown(comparison, "J/1k", "jax") and "±" in shown(comparison, "J/1k", "jax")
    alike = both(drawing(90.0, 0.03), drawing(90.0, 0.03, 1))
    assert "within ±" in shown(alike, "J/1k", "jax"), "equal joules are no significant difference"


@pytest.mark.parametrize(("steps", "parts"), [(4762, True), (4950, False)])
def test_joules_of_a_board_that_is_slower_under_a_sustained_load_say_so(steps, parts):
    """Bursts of 2 ms a step, and a long block of 10 s whose steps take 2.10 or 2.02 ms."""
    drawn = drawing(90.0, device="gpu", sensor="nvml.0.energy", steps=steps)
    comparison = compared(b.member("torch", 2.0, device="gpu", sd=0, noise=0, change=drawn), drift=0.0)
    numbers = b.shown(row(comparison, "torch"))
    assert (numbers.sustained_ns, numbers.sustained_differs) == (pytest.approx(10 * S / steps), parts)
    assert numbers.samples_per_s == pytest.approx(128 / 2e-3)
    assert shown(comparison, "sustained step", "torch", wide=True) is not None
    assert [note.what.code for note in comparison.notes].count("sustained_differs") == parts
    assert shown(comparison, "J/1k", "torch", wide=True).endswith("†") == parts


def test_an_accelerators_joules_with_those_of_the_packages_that_drive_it_have_a_name_of_their_own():
    def change(launch):
        drawing(300.0, device="gpu", sensor="nvml.0.energy")(launch)
        for package in (0, 1):
            launch.energy += b.energy(10 * 40.0, sensor=f"rapl.package-{package}", **BLOCK)
        launch.energy += b.energy(10 * 900.0, sensor="rapl.psys", **BLOCK)

    comparison = compared(b.member("torch", 2.0, device="gpu", change=change))
    assert shown(comparison, "J/1k", "torch").split()[0] == "300"
    assert shown(comparison, "device + package", "torch", wide=True) == "380"
    record = comparison_report(comparison, {}).records[0]
    assert record["energy_with_package_per_sample_j"] == pytest.approx(0.38)


@pytest.mark.parametrize("lacks", ["the package", "the board"])
def test_where_one_of_board_and_package_does_not_answer_there_is_no_such_number(lacks):
    def change(launch):
        drawing(300.0, device="gpu", sensor="nvml.0.energy")(launch)
        launch.energy += b.energy(400.0, sensor="rapl.package-0", **BLOCK)
        refused = replace(launch.energy[lacks == "the package"], joules_j=None, window_ns=None)
        launch.energy[lacks == "the package"] = refused

    comparison = compared(b.member("torch", 2.0, device="gpu", change=change))
    assert shown(comparison, "device + package", "torch", wide=True) is None
    without = compared(b.member("torch", 2.0, change=drawing(90.0)))
    assert shown(without, "device + package", "torch", wide=True) is None


def test_the_joules_of_two_rows_have_the_ratio_that_is_judged():
    """The machine drew half as much again in the rounds that both members have."""

    def torch(launch):
        drawing(90.0 if launch.round < 4 else 135.0)(launch)

    comparison = both(torch, drawing(120.0, rounds=range(4, 8)))
    baseline, member = row(comparison, "torch"), row(comparison, "jax")
    ratio = member.value("energy_per_sample_j") / baseline.value("energy_per_sample_j")
    assert ratio == pytest.approx(member.energy_versus.ratio) == pytest.approx(120 / 135)


def test_a_meter_that_gave_nothing_leaves_no_joules_of_another_sensor():
    def change(launch):
        drawing(90.0)(launch)
        launch.energy += b.energy(None, sensor="meter.wall", tier="external_meter", reason=reason("x"))

    torch = row(compared(b.member("torch", 4.0, change=change)), "torch")
    assert (torch.value("energy_power_w"), torch.value("energy_refusal")) == (None, "x")


def test_net_is_gross_less_idle_with_what_both_may_be_off():
    energy = row(compared(b.member("torch", 4.0, change=drawing(90.0))), "torch").value
    assert (energy("energy_power_w"), energy("energy_idle_w")) == (pytest.approx(90), pytest.approx(21))
    assert energy("energy_net_per_sample_j") == pytest.approx((90 - 21) * 10 / 10_000)
    # Half the difference of the idles, 5 % of their mean, 1 % of the power.
    assert energy("energy_net_error_j") == pytest.approx((1 + 0.05 * 21 + 0.9) * 10 / 10_000)
    assert energy("energy_per_step_j") == pytest.approx(128 * energy("energy_raw_per_sample_j"))
    assert energy("energy_delay_product_js") == pytest.approx(energy("energy_per_step_j") * 128 * 10 / 10_000)
    bare = drawing(90.0, idle_before_w=None, idle_reason=reason("too_few_updates", updates=1, needed=10))
    assert row(compared(b.member("torch", 4.0, change=bare)), "torch").value("energy_net_per_sample_j") is None


def sampled(rng, busy_w, idle_w, update_s):
    """A launch of 12 s as a sampler with jitter sees it, on a machine whose idle power drifts: by up to a twentieth."""
    drift_w, phase_s = rng.uniform(-0.05, 0.05) * idle_w, rng.uniform(0, update_s)
    begin_s, end_s = 4 + rng.uniform(0, 0.2), 16 + rng.uniform(0, 0.2)

    def joules(t):
        return idle_w * t + drift_w * t**2 / 40 + busy_w * np.clip(t - begin_s, 0, end_s - begin_s)

    at_s = np.arange(0, 20, 0.1) + rng.exponential(0.004, 200)
    counter = joules(np.floor((at_s - phase_s) / update_s) * update_s + phase_s)
    about = {"name": "rapl.package-0", "quantity": "energy", "unit": "J", "scope": "", "source": "", "counter": True}
    of_package = SensorReport(**about, status="measured", update_period_ns=round(update_s * S))
    samples = Sampled([SensorSeries(of_package, (at_s * S).astype(int).tolist(), counter.tolist())])
    (entry,) = samples.energy("steady", [(round(begin_s * S), round(end_s * S))], 10_000, 100)
    idle = Idle((round(0.3 * S), round(3.3 * S)), (round(16.5 * S), round(19.5 * S)))
    launch = Launch(cell_key="", group="g", round=0, process="", started="", energy=[_with_idle(entry, samples, idle)])
    return launch_energy(LaunchRow(b.cell(), launch, launch.blocks, energy=launch.energy))


def test_net_with_its_uncertainty_holds_the_truth_in_95_of_100_trials_at_least():
    rng, held = np.random.default_rng(3), 0
    for _ in range(200):
        busy_w = rng.uniform(5, 300)
        drawn = sampled(rng, busy_w, rng.uniform(5, 80), rng.choice([0.001, 0.02, 0.1]))
        held += abs(drawn.power_w - drawn.idle_w - busy_w) <= drawn.net_error_w
    assert held >= 190


def test_the_interval_of_a_ratio_of_joules_holds_the_truth_in_95_of_100_trials():
    rng, held, trials = np.random.default_rng(12), 0, 300
    for _ in range(trials):
        truth = float(np.exp(rng.uniform(-0.7, 0.7)))
        power_w, sd = rng.uniform(20, 300), rng.uniform(0.002, 0.05)

        def members(truth=truth, power_w=power_w, sd=sd):
            level = {number: rng.normal(0, 0.1) for number in range(8)}  # the machine's, in both members
            for name, factor in (("torch", 1.0), ("jax", truth)):

                def change(launch, factor=factor):
                    aligned = rng.uniform(-0.01, 0.01)
                    drawn_w = factor * power_w * np.exp(level[launch.round] + rng.normal(0, sd)) * (1 + aligned)
                    launch.energy = b.energy(float(10 * drawn_w), **BLOCK)

                yield b.member(name, 4.0, change=change)

        versus = row(compared(*members(), cycles=1), "jax").energy_versus
        held += versus.low <= truth <= versus.high
    assert held >= 0.95 * trials - 2 * np.sqrt(trials * 0.05 * 0.95)
