"""Utilization and energy from samples of known content."""

import math

import pytest

from kit.profile.sensor import SensorReport
from kit.sensors import names
from kit.worker.samples import Samples, Tick, read_samples
from kit.worker.steady_energy import energies, without_dips
from kit.worker.steady_utilization import utilization

SECOND = 1_000_000_000
PERIOD = 100_000_000


def report(name, quantity, status="measured", reason=None, update_period_ns=None):
    return SensorReport(
        name=name,
        quantity=quantity,
        unit="",
        scope="",
        source="",
        status=status,
        reason=reason,
        update_period_ns=update_period_ns,
    )


def samples(columns, seconds, covered_to_ns=None):
    """`columns`: (report, function of seconds)."""
    ticks = [
        Tick(at, 1_000_000 * i, [(at, value(at / SECOND)) for _, value in columns])
        for i, at in enumerate(range(0, int(seconds * SECOND) + 1, PERIOD))
    ]
    covered = ticks[-1].at_ns if covered_to_ns is None else covered_to_ns
    return Samples([one for one, _ in columns], ticks, "the sampler ended: told to end", covered, PERIOD)


def energy_of(value, seconds=14, begin=1.0, end=13.0, **about):
    (entry,) = energies(
        samples([(report("rapl.package-0", "energy", **about), value)], seconds), int(begin * SECOND), int(end * SECOND)
    )
    return entry


def stepped(power_w, update_s):
    """A counter that is fresh every `update_s`."""
    return lambda t: power_w * math.floor(t / update_s + 1e-9) * update_s


def test_joules_over_the_window():
    entry = energy_of(lambda t: 65.0 * t, update_period_ns=1_000_000)
    assert entry.reason is None
    assert entry.joules_j / (entry.window_ns / SECOND) == pytest.approx(65.0)
    assert entry.window_ns == pytest.approx(12 * SECOND, abs=2 * PERIOD)


def test_window_is_aligned_to_updates_of_the_counter():
    """1 s updates: ends that cut an update in the middle cost nothing."""
    entry = energy_of(stepped(300.0, 1.0), seconds=140, begin=10.4, end=130.6)
    assert entry.window_ns == 119 * SECOND
    assert entry.joules_j == pytest.approx(119 * 300.0)


def test_changing_power_is_summed():
    entry = energy_of(lambda t: 100 * t + (50 * (t - 6) if t > 6 else 0), update_period_ns=1_000_000)
    begin = 13 - entry.window_ns / SECOND
    assert entry.joules_j == pytest.approx(100 * (13 - begin) + 50 * 7, rel=1e-6)


def test_a_short_window_is_refused_with_what_is_needed():
    entry = energy_of(lambda t: 65.0 * t, begin=1.0, end=10.9, update_period_ns=1_000_000)
    assert entry.joules_j is None
    assert "10 s are needed" in entry.reason


def test_fewer_than_a_hundred_updates_are_refused():
    entry = energy_of(stepped(300.0, 1.0), seconds=100, begin=1, end=90)
    assert entry.joules_j is None
    assert "updates every 1e+03 ms" in entry.reason
    assert "100 s are needed" in entry.reason


def test_an_unaligned_period_longer_than_the_sensor_claims_is_believed():
    entry = energy_of(stepped(300.0, 0.5), seconds=40, begin=1, end=39, update_period_ns=1_000_000)
    assert "50 s are needed" in entry.reason


def test_zero_joules_are_refused():
    (entry,) = energies(
        samples(
            [
                (report("nvml.0.energy", "energy"), lambda t: 12345.0),
                (report(names.MACHINE_TIME, "utilization"), lambda t: 1.5 * t),
            ],
            14,
        ),
        SECOND,
        13 * SECOND,
    )
    assert entry.joules_j is None
    assert "did not move" in entry.reason
    assert "150 % busy" in entry.reason


def test_single_failed_and_zero_reads_are_tolerated():
    def value(t):
        tick = round(t * 10)
        return None if tick == 50 else 0.0 if tick == 70 else 65.0 * t + 1000

    entry = energy_of(value, update_period_ns=1_000_000)
    assert entry.joules_j / (entry.window_ns / SECOND) == pytest.approx(65.0)


def test_a_counter_that_starts_again_is_refused():
    entry = energy_of(lambda t: 65.0 * (t if t < 7 else t - 7), update_period_ns=1_000_000)
    assert entry.joules_j is None
    assert "was reset" in entry.reason


def test_a_sensor_that_fell_silent_is_refused():
    entry = energy_of(lambda t: 65.0 * t if t < 7 else None, update_period_ns=1_000_000)
    assert entry.joules_j is None
    assert "% of the steady phase" in entry.reason


def test_power_is_integrated_beside_the_counter_and_zero_power_refused():
    found = energies(
        samples(
            [
                (report("nvml.0.energy", "energy"), lambda t: 200.0 * t),
                (report("nvml.0.power", "power"), lambda t: 190.0),
                (report("nvml.1.power", "power"), lambda t: 0.0),
                (report("nvml.2.power", "power", "unavailable", "none"), lambda t: None),
                (report("tpu.energy", "energy", "unavailable", "no TPU here"), lambda t: None),
            ],
            14,
        ),
        SECOND,
        13 * SECOND,
    )
    by_name = {entry.sensor: entry for entry in found}
    assert list(by_name) == ["nvml.0.energy", "nvml.0.power", "nvml.1.power", "tpu.energy"]
    assert by_name["nvml.0.power"].joules_j == pytest.approx(190.0 * 12)
    assert by_name["nvml.1.power"].joules_j is None
    assert by_name["tpu.energy"].reason == "no TPU here"


def test_without_dips_keeps_everything_else():
    from kit.sensors.protocol import Reading

    series = [Reading(i, value) for i, value in enumerate([1.0, 2.0, 0.0, 3.0, 3.0, 4.0])]
    assert [reading.value for reading in without_dips(series)] == [1.0, 2.0, 3.0, 3.0, 4.0]
    assert without_dips([]) == []
    assert without_dips(series[:1]) == series[:1]


def cpu_columns(process, machine=lambda t: 1.5 * t):
    return [
        (report(names.PROCESS_TIME, "utilization"), process),
        (report(names.MACHINE_TIME, "utilization"), machine),
        (report(names.RESIDENT_MEMORY, "memory"), lambda t: 1000.0 + (500 if 1.4 < t < 1.6 else 0)),
        (report(names.FREQUENCY, "frequency", "unavailable", "a virtual machine"), lambda t: None),
        (report(names.THROTTLED_TIME, "throttling"), lambda t: 2e6 * t),
    ]


def test_utilization_of_the_window_alone():
    found = utilization(samples(cpu_columns(lambda t: 1.2 * t if t < 2 else 2.4), 4), SECOND, 2 * SECOND)
    assert found.process_cpu_pct == pytest.approx(120)
    assert found.machine_cpu_pct == pytest.approx(150)
    assert found.rss_peak_b == 1500
    assert found.throttled_ns == pytest.approx(2_000_000, abs=1)
    assert found.sampler_cpu_pct == pytest.approx(1.0)
    assert found.missed_samples == 0
    assert found.samples == 11
    assert found.frequency_mhz is None
    assert found.reasons == {"frequency_mhz": "a virtual machine", "gpu_throttled_by": "no GPU sensor answers"}


def test_deadlines_that_the_sampler_missed_are_counted_within_the_window():
    whole = samples(cpu_columns(lambda t: t), 4)
    late = Samples(whole.reports, [t for i, t in enumerate(whole.ticks) if i not in (2, 13, 14)], "", 2**62, PERIOD)
    assert utilization(late, SECOND, 2 * SECOND).missed_samples == 2


@pytest.mark.parametrize(("begin", "end", "count"), [(1.01, 1.05, 0), (0.95, 1.05, 1)])
def test_fewer_than_two_samples_give_null_with_the_reason(begin, end, count):
    found = utilization(samples(cpu_columns(lambda t: t), 4), int(begin * SECOND), int(end * SECOND))
    assert found.process_cpu_pct is None
    assert found.rss_peak_b is None
    assert found.samples == count
    assert found.reasons["process_cpu_pct"].startswith(f"{count} samples lie")


def test_one_failed_read_is_tolerated_and_all_failed_are_null():
    found = utilization(samples(cpu_columns(lambda t: None if t == 1.0 else t), 4), SECOND, 3 * SECOND)
    assert found.process_cpu_pct == pytest.approx(100)
    found = utilization(samples(cpu_columns(lambda t: None), 4), SECOND, 3 * SECOND)
    assert found.process_cpu_pct is None
    assert "every one failed" in found.reasons["process_cpu_pct"]


def test_a_process_that_left_the_tree_uncounted_is_no_negative_utilization():
    found = utilization(samples(cpu_columns(lambda t: t if t < 2 else t - 1), 4), SECOND, 3 * SECOND)
    assert found.process_cpu_pct is None
    assert "fell" in found.reasons["process_cpu_pct"]


def test_a_sampler_that_ended_early_is_null():
    found = utilization(samples(cpu_columns(lambda t: t), 2), SECOND, 3 * SECOND)
    assert found.process_cpu_pct is None
    assert found.reasons["machine_cpu_pct"] == "the sampler ended: told to end"


def test_a_file_cut_off_in_a_line_loses_that_line(tmp_path):
    header = b'{"pid":1,"period_ns":100,"reports":[],"kind":"header"}\n'
    (tmp_path / "out").write_bytes(header + b"[100,5,[]]\n[200,6,[]]\n[300,")
    found = read_samples(tmp_path / "out")
    assert [tick.at_ns for tick in found.ticks] == [100, 200]
    assert (found.ended, found.covered_to_ns) == ("the sampler was killed", 200)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b"", "before it was ready"),
        (b"{", "before it was ready"),
        (b"[1]\n", "damaged after 0 ticks"),
        (b'{"pid":1,"period_ns":100,"reports":[],"kind":"header"}\n[1,2,[]]\nrubbish\n', "damaged after 1 ticks"),
    ],
)
def test_damaged_files_give_a_reason(tmp_path, content, said):
    if content is not None:
        (tmp_path / "out").write_bytes(content)
    found = read_samples(tmp_path / "out")
    assert said in found.ended
    assert found.covered_to_ns == 0
