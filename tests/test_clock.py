"""The clock against known truth: the kernel's own clock read around ours, planted durations, planted trust."""

import ctypes
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kit import clock
from kit.profile.instruments import Calibration

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


TRUSTED_TSC = ("tsc", {"invariant": 1, "rdtscp": 1})


class Planted:
    """What the native clock says of a processor: of another than this machine's, perhaps."""

    def __init__(self, counter, *, invariant=0, rdtscp=0, hz=0):
        self.kit_clock_has_source = lambda number: number in (NUMBERS["monotonic_raw"], NUMBERS[counter])
        self.kit_clock_has_invariant_tsc = lambda: invariant
        self.kit_clock_has_rdtscp = lambda: rdtscp
        self.kit_clock_nominal_hz = lambda: hz


@pytest.mark.parametrize(
    ("planted", "clocksource", "why"),
    [
        (TRUSTED_TSC, "tsc\n", None),
        (("tsc", {"invariant": 0, "rdtscp": 1}), "tsc\n", "CPUID does not show an invariant TSC"),
        (("tsc", {"invariant": 1, "rdtscp": 0}), "tsc\n", "CPUID does not show RDTSCP"),
        (TRUSTED_TSC, "kvm-clock\n", "the kernel's current clocksource is kvm-clock, not tsc"),
        (TRUSTED_TSC, "hpet tsc\n", "the kernel's current clocksource is hpet tsc, not tsc"),
        (TRUSTED_TSC, "", "the kernel's current clocksource is empty, not tsc"),
        (TRUSTED_TSC, None, "the kernel's current clocksource cannot be read (No such file or directory: "),
        (("cntvct", {"hz": 25_000_000}), "arch_sys_counter\n", None),
        (("cntvct", {"hz": 0}), "arch_sys_counter\n", "firmware has not set cntfrq_el0"),
        (("cntvct", {"hz": 25_000_000}), "tsc\n", "the kernel's current clocksource is tsc, not arch_sys_counter"),
    ],
)
def test_a_counter_is_trusted_where_processor_and_kernel_agree(tmp_path, monkeypatch, planted, clocksource, why):
    counter, says = planted
    path = tmp_path / "current_clocksource"
    if clocksource is not None:
        path.write_text(clocksource)
    monkeypatch.setattr(clock, "lib", Planted(counter, **says))
    chosen, reason = clock.choose_source("auto", clocksource_file=path)
    if why is None:
        assert chosen == counter and reason.startswith("reliable: ")
        assert clock.choose_source(clocksource_file=path)[1].endswith(f"{counter} is reliable too: --clock {counter}")
        return
    assert chosen == "monotonic_raw" and why in reason
    for refused in (clock.choose_source, lambda source, **file: clock.certify(source, a_calibration(3e9), **file)):
        with pytest.raises(clock.ClockError) as raised:
            refused(counter, clocksource_file=path)
        assert str(raised.value).startswith(f"the clock {counter} is not reliable here: {why}")
        assert "\n" not in str(raised.value)


@pytest.mark.skipif("tsc" not in HERE, reason="CPUID is an instruction of x86-64")
@pytest.mark.parametrize(
    ("leaves", "invariant", "rdtscp"),
    [
        ({"CPUID_80000007": "100", "CPUID_80000001": "8000000"}, 1, 1),
        ({"CPUID_80000007": "7799", "CPUID_80000001": "2fd3fbff"}, 1, 1),  # of an AMD EPYC
        ({"CPUID_80000007": "feff", "CPUID_80000001": "f7ffffff"}, 0, 0),
        ({}, 0, 0),  # a processor that has no such leaves
    ],
)
def test_trust_follows_the_planted_cpuid(cpuid_library, monkeypatch, leaves, invariant, rdtscp):
    for leaf, edx in leaves.items():
        monkeypatch.setenv(leaf, edx)
    assert (cpuid_library.kit_clock_has_invariant_tsc(), cpuid_library.kit_clock_has_rdtscp()) == (invariant, rdtscp)


@pytest.fixture(scope="module")
def cpuid_library(tmp_path_factory):
    """The native clock's answers, compiled against a CPUID that a test plants."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library, root = tmp_path_factory.mktemp("cpuid") / "clock.so", Path(__file__).parents[1]
    flags = ["-shared", "-fPIC", "-O1", "-I", root / "tests/standins/cpuid"]
    subprocess.run([compiler, *flags, "-o", library, root / "native/clock_source.c"], check=True)
    return ctypes.CDLL(library)


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
