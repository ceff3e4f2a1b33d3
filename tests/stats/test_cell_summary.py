import msgspec
import pytest
from profile_builder import MS, NO_RAPL, build_cell, build_failed, build_launch, build_summary

from kit.profile.launch import Energy, Phase
from kit.profile.schema import CellSummary
from kit.stats.cell_summary import summarize_cell
from kit.stats.energy_per_sample import joules_per_sample

CELL = build_cell(batch=100)


def summarize(medians, **fields):
    launches = [build_launch(CELL, round, **fields) for round in range(len(medians))]
    return summarize_cell(CELL, launches, [build_summary(round, m) for round, m in enumerate(medians)])


def test_rates_and_times_are_of_the_step_and_the_batch():
    summary = summarize([10 * MS, 10 * MS, 10 * MS])
    assert summary.step_ns.value == pytest.approx(10 * MS)
    assert summary.sample_ns.value == pytest.approx(100_000)
    assert summary.samples_per_s.value == pytest.approx(10_000)
    assert summary.step_ns.launches == 3
    assert summary.warmup_steps == 40
    assert summary.peak_memory_b == 600 << 20
    assert summary.process_cpu_pct.value == pytest.approx(181)


def test_compile_is_trace_and_compile_and_first_step():
    phases = [Phase(name=n, begin_ns=0, duration_ns=d) for n, d in (("trace", 3), ("compile", 5), ("first_step", 7))]
    assert summarize([MS], phases=phases).compile_ns.value == pytest.approx(15)
    assert summarize([MS], phases=phases[:2]).compile_ns is None


def test_every_null_has_its_reason():
    for summary in (
        summarize([None, None], data="synthetic", phases=[], utilization=None, energy=[], peak_memory_b=None),
        build_failed(CELL).summary,
        summarize([MS]),
    ):
        plain = msgspec.to_builtins(summary)
        nulls = {name for name in CellSummary.__struct_fields__ if plain[name] is None}
        assert nulls == set(summary.reasons)
        assert all(summary.reasons.values())


def test_launches_without_steady_state_do_not_count():
    assert summarize([10 * MS, None, 10 * MS]).step_ns.launches == 2
    assert "no steady state" in summarize([None, None]).reasons["step_ns"]


def test_failed_launches_are_left_out():
    failed = build_failed(CELL).launches[0]
    summary = summarize_cell(CELL, [failed, build_launch(CELL, 1)], [build_summary(1, 10 * MS)])
    assert summary.step_ns.launches == 1


def test_synthetic_data_never_fills_the_accuracy():
    assert summarize([MS]).accuracy.value == pytest.approx(0.97)
    synthetic = summarize([MS], data="synthetic")
    assert synthetic.accuracy is None
    assert "synthetic" in synthetic.reasons["accuracy"]


def energy(sensor, joules, reason=None):
    """Over nine tenths of the steady phase, as between two updates of a counter."""
    return Energy(sensor=sensor, joules_j=joules, window_ns=810 * MS, reason=reason)


# The builder's steady phase: 900 ms, 300 steps of 100 samples.
PER_SAMPLE = 0.9 / 0.81 / 30_000


def test_packages_add_and_other_domains_do_not():
    sensors = [energy("rapl.package-0", 60.0), energy("rapl.package-1", 30.0), energy("rapl.package-0.dram", 9.0)]
    launch = build_launch(CELL, energy=[*sensors, energy("rapl.psys", 140.0), energy("nvml.0.energy", 500.0)])
    assert joules_per_sample(CELL, launch).joules_per_sample_j == pytest.approx(90 * PER_SAMPLE)


@pytest.mark.parametrize("sensor", ["rapl.package-1", "rapl.energy", "rapl.intel-rapl:1", "sampler"])
def test_energy_that_is_missing_is_null_with_its_reason(sensor):
    assert joules_per_sample(CELL, build_launch(CELL)) == (None, NO_RAPL)
    half = build_launch(CELL, energy=[energy("rapl.package-0", 5.0), energy(sensor, None, "masked")])
    assert joules_per_sample(CELL, half) == (None, "masked")
    assert "RAPL" in joules_per_sample(CELL, build_launch(CELL, energy=[])).reason


def test_energy_that_stands_still_is_null():
    still = joules_per_sample(CELL, build_launch(CELL, energy=[energy("rapl.package-0", 0.0)]))
    assert still.joules_per_sample_j is None
    assert "measured no energy" in still.reason


def test_a_gpu_cell_uses_its_own_board_and_never_guesses_which():
    gpu = build_cell(device="gpu", batch=100)
    one = build_launch(gpu, energy=[energy("nvml.0.energy", 30.0), energy("rapl.package-0", 99.0)])
    assert joules_per_sample(gpu, one).joules_per_sample_j == pytest.approx(30 * PER_SAMPLE)
    two = build_launch(gpu, energy=[energy("nvml.0.energy", 30.0), energy("nvml.1.energy", 3.0)])
    assert joules_per_sample(gpu, two).joules_per_sample_j is None
    none = build_launch(gpu, energy=[energy("nvml.energy", None, "no driver"), energy("rapl.package-0", 99.0)])
    assert joules_per_sample(gpu, none) == (None, "no driver")
