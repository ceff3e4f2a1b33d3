"""The clock against known truth: the kernel's own clock read around ours, planted durations, planted trust."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kit import clock
from kit.profile.clock import Calibration

lib = clock.lib
NUMBERS = {"monotonic_raw": lib.KIT_MONOTONIC_RAW, "tsc": lib.KIT_TSC, "cntvct": lib.KIT_CNTVCT}
TRUSTED = [source for source in NUMBERS if clock.why_untrusted(source) is None]
COUNTERS = [source for source in TRUSTED if source != "monotonic_raw"]
HERE = [source for source, number in NUMBERS.items() if lib.kit_clock_has_source(number)]
ELSEWHERE = [source for source in NUMBERS if source not in HERE]


def kernel_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def a_calibration(ticks_per_s: float) -> Calibration:
    return Calibration(ticks_per_s=ticks_per_s, span_ns=100_000_000, uncertainty_ppm=0.1, brackets=10)


@pytest.fixture
def clocksource_file(tmp_path: Path) -> Path:
    path = tmp_path / "current_clocksource"
    path.write_text("arch_sys_counter\n" if lib.kit_clock_has_source(NUMBERS["cntvct"]) else "tsc\n")
    return path


@pytest.mark.parametrize("source", TRUSTED)
def test_interval_of_a_sleep_is_what_the_kernel_saw(source):
    calibration = clock.calibrate(source)
    stamps = clock.Stamps(2, source)
    outer = kernel_ns()
    stamps.stamp()
    inner = kernel_ns()
    time.sleep(0.05)
    inner = kernel_ns() - inner
    stamps.stamp()
    outer = kernel_ns() - outer
    (interval,) = stamps.intervals_ns(calibration)
    # A counter may disagree with the kernel's clock by what its calibration says, and rounding takes 1 ns.
    slack = 1 + outer * (calibration.uncertainty_ppm if calibration else 0) * 1e-6
    assert inner - slack <= interval <= outer + slack
    # Sleeps are kept on a clock that NTP may slew by 500 ppm.
    assert interval >= 50_000_000 * (1 - 500e-6)


# --- ticks


@pytest.mark.parametrize("source", HERE)
def test_ticks_become_nanoseconds_that_add_up(source):
    stamps = clock.Stamps(1001, source)
    for _ in range(1001):
        stamps.stamp()
    # The default source counts nanoseconds, whatever it is told of ticks.
    ticks, of_a_tick = stamps.view(), 1 if source == "monotonic_raw" else 3
    intervals = stamps.intervals_ns(a_calibration(3e9))
    assert np.all(np.abs(intervals - np.diff(ticks) / of_a_tick) <= 1)
    assert abs(intervals.sum() - (ticks[-1] - ticks[0]) / of_a_tick) <= 0.5
    if source != "monotonic_raw":
        with pytest.raises(clock.ClockError, match=f"{source} counts ticks"):
            stamps.intervals_ns()


@pytest.mark.parametrize("source", COUNTERS)
def test_calibration_agrees_with_one_made_by_hand(source):
    number = NUMBERS[source]
    before, ticks_before, after = kernel_ns(), lib.kit_clock_read(number), kernel_ns()
    calibration = clock.calibrate(source, span_ns=20_000_000)
    before_2, ticks_after, after_2 = kernel_ns(), lib.kit_clock_read(number), kernel_ns()
    ticks = ticks_after - ticks_before
    slack = 1 + 2 * calibration.uncertainty_ppm * 1e-6
    slowest, fastest = ticks * 1e9 / (after_2 - before), ticks * 1e9 / (before_2 - after)
    assert slowest / slack <= calibration.ticks_per_s <= fastest * slack
    assert 20_000_000 <= calibration.span_ns < before_2 - after


# --- trust


def test_raw_is_the_default_and_says_what_of_the_counter(clocksource_file):
    source, reason = clock.choose_source(clocksource_file=clocksource_file)
    assert source == "monotonic_raw"
    assert "is reliable too" in reason or "not reliable" in reason


@pytest.mark.skipif("tsc" not in HERE, reason="needs an x86-64 processor")
def test_tsc_is_trusted_exactly_where_cpuid_and_the_kernel_agree(clocksource_file):
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    assert lib.kit_clock_has_invariant_tsc() == ("nonstop_tsc" in flags)
    assert lib.kit_clock_has_rdtscp() == ("rdtscp" in flags)
    trusted = "nonstop_tsc" in flags and "rdtscp" in flags
    assert (clock.why_untrusted("tsc", clocksource_file) is None) == trusted
    assert clock.choose_source("auto", clocksource_file=clocksource_file)[0] == ("tsc" if trusted else "monotonic_raw")


@pytest.mark.skipif("tsc" not in COUNTERS, reason="needs a processor with an invariant TSC that the kernel uses")
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("kvm-clock\n", "the kernel's current clocksource is kvm-clock, not tsc"),
        ("hpet tsc\n", "the kernel's current clocksource is hpet tsc, not tsc"),
        ("", "the kernel's current clocksource is empty, not tsc"),
        (None, "the kernel's current clocksource cannot be read (No such file or directory: "),
    ],
)
def test_tsc_is_refused_where_the_kernel_does_not_use_it(tmp_path, content, why):
    path = tmp_path / "current_clocksource"
    if content is not None:
        path.write_text(content)
    with pytest.raises(clock.ClockError) as raised:
        clock.choose_source("tsc", clocksource_file=path)
    assert str(raised.value).startswith(f"the clock tsc is not reliable here: {why}")
    assert "\n" not in str(raised.value)
    source, reason = clock.choose_source("auto", clocksource_file=path)
    assert source == "monotonic_raw"
    assert why in reason
    with pytest.raises(clock.ClockError):
        clock.certify("tsc", a_calibration(3e9), clocksource_file=path)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (ELSEWHERE[0], f"the clock {ELSEWHERE[0]} is not reliable here: this processor has no {ELSEWHERE[0]}"),
        ("sundial", "choose auto, monotonic_raw, tsc, cntvct"),
    ],
)
def test_a_source_that_is_not_here_is_refused(source, line):
    with pytest.raises(clock.ClockError, match=line):
        clock.choose_source(source)


@pytest.mark.parametrize("source", COUNTERS)
def test_drift_is_what_the_two_calibrations_disagree_by(source):
    honest = clock.calibrate(source, span_ns=1_000_000)
    off = a_calibration(honest.ticks_per_s * (1 - 25e-6))
    assert clock.certify(source, honest, off, samples=1000).drift_ppm == pytest.approx(25, rel=1e-3)
    assert clock.certify(source, honest, samples=1000).drift_ppm is None


def test_without_the_extension_the_import_says_what_to_do(tmp_path):
    hide = "import sys; sys.modules['kit._stamp'] = None; import kit.clock"
    ran = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False, cwd=tmp_path)
    last = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode == 1
    assert last.startswith("ImportError: kit's native clock is not built; run `make setup` or `pip install -e .`")
