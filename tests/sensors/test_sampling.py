"""The sampler as a process of its own, and what its handle makes of its file."""

import contextlib
import os
import signal
import time

import pytest
from planted_powercap import PowerCurve, plant_zone
from profile_builder import sensor

from kit.profile.instruments import SensorSummary
from kit.sensors import nvml, rapl
from kit.sensors.sampler import Sampled, Sampling, SensorSeries, read_series
from kit.sensors.sources import now_ns
from kit.stats import window_energy

SECOND = 1_000_000_000


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A planted package zone that the sampler finds; energy rules that fit into a test."""
    monkeypatch.setenv("KIT_POWERCAP_ROOT", str(tmp_path / "powercap"))
    monkeypatch.setattr(window_energy, "WINDOW_MIN_NS", SECOND)
    monkeypatch.setattr(window_energy, "UPDATES_MIN", 5)
    monkeypatch.setattr(window_energy, "COVERAGE_MIN", 0.7)
    monkeypatch.setattr(window_energy, "ERROR_SHARE_MAX", 0.2)
    return plant_zone(tmp_path / "powercap", "intel-rapl:0", "package-0")


@contextlib.contextmanager
def sampling():
    running = Sampling.start([each.report for each in rapl.open_sampled()])
    deadline = time.monotonic() + 20
    while not os.fstat(running._out.fileno()).st_size:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        yield running
    finally:
        running._process.kill()


def square_wave_j(t):
    """40 W in even halves of a second, 120 W in odd ones."""
    whole, rest = divmod(t, 1.0)
    return 80 * whole + 40 * min(rest, 0.5) + 120 * max(0.0, rest - 0.5)


def test_members_that_take_turns_get_each_their_own_power(package):
    with PowerCurve(package, square_wave_j) as curve, sampling() as running:
        first = (now_ns() - curve.begin_ns) // SECOND + 1
        time.sleep(max(0, curve.begin_ns / 1e9 + first + 2.0 - now_ns() / 1e9))
        samples = running.stop()
    for offset, power_w in ((0.0, 40), (0.5, 120)):
        begins = [curve.begin_ns + int((first + cycle + offset) * SECOND) for cycle in range(2)]
        windows = [(begin, begin + SECOND // 2) for begin in begins]
        power = samples.summaries(windows)["rapl.package-0.power"]
        assert (power.mean, power.unit) == (pytest.approx(power_w, rel=0.1), "W")
        assert power.samples >= 6
    begin = curve.begin_ns + first * SECOND
    (entry,) = samples.energy("steady", [(begin, begin + 2 * SECOND)], samples=640, steps=5)
    assert entry.reason is None
    assert entry.joules_j / (entry.window_ns / 1e9) == pytest.approx(80, rel=0.1)
    assert (entry.sensor, entry.samples, entry.block_ns) == ("rapl.package-0", 640, 2 * SECOND)


def test_a_sampler_that_dies_costs_its_numbers_with_a_reason_and_no_more(package):
    with PowerCurve(package, lambda t: 50 * t), sampling() as running:
        time.sleep(0.4)
        begin = now_ns()
        running._process.kill()
        time.sleep(0.2)
        samples = running.stop()
    assert samples.failure.code == "sampler_failed"
    assert samples.summaries([(begin, begin + SECOND)]) == {}
    (entry,) = samples.energy("steady", [(begin, begin + SECOND)], 1, 1)
    assert (entry.joules_j, entry.reason) == (None, samples.failure)
    assert samples.summaries([(0, begin)])["rapl.package-0.power"].mean == pytest.approx(50, rel=0.2)


def test_no_process_where_there_is_nothing_to_sample(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_POWERCAP_ROOT", str(tmp_path))
    unavailable = [each.report for each in rapl.open_sampled()]
    edge = sensor("process.cpu_ns")
    assert Sampling.start([*unavailable, edge]) is None


def test_it_leaves_interrupts_to_the_runner(package):
    with sampling() as running:
        os.kill(running._process.pid, signal.SIGINT)
        assert running.stop().failure is None


def series(name, at_ns, values, quantity="utilization", unit="%", **about):
    return SensorSeries(sensor(name, quantity, unit, **about), list(at_ns), list(values))


def test_gauges_within_the_windows_alone_and_not_what_ran_before():
    samples = Sampled([series("a", range(10), map(float, range(10)))])
    assert samples.summaries([(2, 3), (7, 8)]) == {"a": SensorSummary(mean=5.0, max=8.0, unit="%", samples=4)}
    assert samples.summaries([(20, 30)]) == {}
    late = Sampled([series("a", range(10), map(float, range(10)), update_period_ns=2)])
    assert late.summaries([(4, 8)])["a"] == SensorSummary(mean=7.0, max=8.0, unit="%", samples=3)


@pytest.mark.parametrize(("readings", "each"), [(100, 1), (450, 3)])
def test_power_and_clock_of_devices_are_kept_over_time_in_bounded_number(readings, each):
    """The board throttles at half of the window; what the host and other gauges read is not kept."""
    ticks = range(0, readings * 100, 100)
    clock = [1980.0 if tick < readings * 50 else 1410.0 for tick in ticks]
    about = {"device_id": "0000:65:00.0"}
    samples = Sampled([
        series("nvml.0.frequency", ticks, clock, "frequency", "MHz", **about),
        series("nvml.0.power", ticks, clock, "power", "W", **about),
        series("nvml.0.temperature", ticks, clock, "temperature", "C", **about),
        series("cpu.frequency", ticks, clock, "frequency", "MHz"),
        series("nvml.1.frequency", [], [], "frequency", "MHz", **about),
    ])  # fmt: skip
    kept = samples.over_time((1000, 100 * readings))
    board, power = kept
    assert (board.sensor, board.unit, power.sensor, power.unit) == ("nvml.0.frequency", "MHz", "nvml.0.power", "W")
    assert board.readings_per_value == each and len(board.values) == len(board.at_ns) == -(-(readings - 10) // each)
    assert board.at_ns[0] == 100 * (each - 1) / 2 and board.at_ns == sorted(board.at_ns)
    assert (board.values[0], board.values[-1]) == (1980.0, 1410.0)
    fallen_ns = next(at for at, mhz in zip(board.at_ns, board.values, strict=True) if mhz < 1700)
    assert fallen_ns == pytest.approx(50 * readings - 1000, abs=100 * each)


def test_share_of_time_in_which_a_gpu_was_slowed_and_by_what():
    masks = [0x1, 0x4, 0x4 | 0x40, 0x0]
    shares = Sampled([series("nvml.0.throttled", range(4), masks, unit=nvml.MASK)]).summaries([(0, 3)])
    assert {name: (share.mean, share.max, share.unit) for name, share in shares.items()} == {
        "nvml.0.throttled": (50.0, 100.0, "%"),
        "nvml.0.throttled.software_power_cap": (50.0, 100.0, "%"),
        "nvml.0.throttled.hardware_thermal_slowdown": (25.0, 100.0, "%"),
    }


def test_a_counter_that_stands_still_is_no_zero_power():
    standing = series("rapl.psys", range(9), [5.0] * 9, "energy", "J", counter=True, update_period_ns=1)
    assert Sampled([standing]).summaries([(0, 9)]) == {}


def test_idle_begins_when_a_late_sensor_no_longer_shows_the_load():
    at = range(0, 12 * SECOND, SECOND // 10)
    watts = [600.0 + place % 2 if at_ns < 2 * SECOND else 70.0 + place % 2 for place, at_ns in enumerate(at)]
    idle = Sampled([series("nvml.0.power", at, watts, "power", "W", lag_max_ns=2 * SECOND)]).idle_w((0, 11 * SECOND))[
        "nvml.0.power"
    ]
    assert idle.joules_j / idle.window_ns * SECOND == pytest.approx(70.5, rel=0.01)


def test_power_is_integrated_and_a_refusal_has_its_code():
    at = range(0, 12 * SECOND + 1, SECOND // 10)
    power = series("nvml.0.power", at, [190.0 + place % 2 for place in range(len(at))], "power", "W")
    silent = series("nvml.1.power", at, [0.0] * len(at), "power", "W")
    joules, zero = Sampled([power, silent]).energy("steady", [(0, 12 * SECOND)], 1, 1)
    assert joules.joules_j == pytest.approx(190.5 * 12, rel=1e-3)
    assert (joules.tier, joules.method, joules.updates) == ("integrated_power", "power_trapezoids", 120)
    assert (zero.joules_j, zero.reason.code) == (None, "zero_power")


HEADER = b'[{"name":"a","quantity":"q","unit":"1","scope":"","source":"","status":"measured"}]\n'


def test_a_file_cut_off_in_a_line_loses_that_line_and_failed_reads_are_left_out():
    (kept,) = read_series(HEADER + b"[[100,1.5]]\n[null]\n[[200,null]]\n[[300,2]]\n[[400,")
    assert (kept.at_ns, kept.values) == ([100, 300], [1.5, 2.0])
    assert read_series(b"") == []


def test_a_gauge_slower_than_half_a_window_says_nothing_and_why():
    # A mean over 1 s, while members of 200 and 600 W take turns of 0.25 s: 400 W of both.
    slow = series("nvml.0.power", range(0, 20 * SECOND, SECOND // 10), [400.0] * 200, mean_over_ns=SECOND)
    quick = series("nvml.0.frequency", range(0, 20 * SECOND, SECOND // 10), [1755.0] * 200)
    samples = Sampled([slow, quick])
    blocks = [(begin * SECOND, begin * SECOND + SECOND // 4) for begin in (2, 4)]
    assert samples.summaries(blocks).keys() == {"nvml.0.frequency"}
    (why,) = samples.gauges_needing_longer_windows(blocks).values()
    assert (why.code, why.values) == ("gauge_window_too_short", {"window_ns": SECOND // 4, "needed_ns": 2 * SECOND})
    long_block = [(6 * SECOND, 18 * SECOND)]
    assert samples.summaries(long_block).keys() == {"nvml.0.power", "nvml.0.frequency"}
    assert samples.gauges_needing_longer_windows(long_block) == {}


def test_the_slope_of_a_boards_own_temperature_stands_beside_its_joules():
    at_ns, boards = range(0, 20 * SECOND, SECOND // 10), ("0000:01:00.0", "0000:02:00.0")
    seen = []
    for board, slope in zip(boards, (0.25, 0.0), strict=True):
        degrees = [float(int(40 + slope * at / SECOND)) for at in at_ns]
        joules = [300.0 * at / SECOND for at in at_ns]
        seen.append(series("nvml.temperature", at_ns, degrees, "temperature", "C", device_id=board))
        seen.append(series("nvml.energy", at_ns, joules, "energy", "J", device_id=board, counter=True))
    seen.append(series("rapl.package-0", at_ns, joules, "energy", "J", counter=True))
    entries = Sampled(seen).energy("steady", [(2 * SECOND, 18 * SECOND)], 1, 1)
    slopes = {entry.device_id: entry.warming_c_per_s for entry in entries}
    assert slopes == {boards[0]: pytest.approx(0.25, rel=0.1), boards[1]: 0.0, None: None}
