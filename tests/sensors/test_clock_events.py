import pynvml
import pytest

from kit.sensors.clock_events import ASKED_FOR, SLOWING, slowing_reasons

PREFIXES = ("nvmlClocksEventReason", "nvmlClocksThrottleReason")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SwPowerCap", ["software power cap"]),
        ("HwSlowdown", ["hardware slowdown"]),
        ("SyncBoost", ["sync boost"]),
        ("SwThermalSlowdown", ["software thermal slowdown"]),
        ("HwThermalSlowdown", ["hardware thermal slowdown"]),
        ("HwPowerBrakeSlowdown", ["hardware power brake"]),
        ("BoardLimit", ["board limit"]),
        ("Reliability", ["reliability limit"]),
        ("GpuIdle", []),
        ("ApplicationsClocksSetting", []),
        ("DisplayClockSetting", []),
        ("None", []),
    ],
)
def test_bits_are_those_of_nvml(name, words):
    mask = next(getattr(pynvml, prefix + name) for prefix in PREFIXES if hasattr(pynvml, prefix + name))
    assert slowing_reasons(mask) == words


def test_every_bit_that_nvml_names_is_known():
    named = pynvml.nvmlClocksEventReasonAll | pynvml.nvmlClocksThrottleReasonAll
    assert named & ~(sum(SLOWING) | ASKED_FOR) == 0


def test_several_bits_and_one_without_a_name():
    assert slowing_reasons(0x1 | 0x8 | 0x40 | 0x8000) == [
        "hardware slowdown",
        "hardware thermal slowdown",
        "unnamed reason 0x8000",
    ]
