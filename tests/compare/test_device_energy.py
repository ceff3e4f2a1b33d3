"""The sensors that together are a device."""

import profile_builder as b
import pytest

from kit.compare.joules import device_entries, device_power_w
from kit.profile.instruments import Energy

SECOND = 1_000_000_000


def of(sensor, joules_j=110.0):
    return Energy(sensor=sensor, joules_j=joules_j, window_ns=11 * SECOND, samples=1, block_ns=12 * SECOND)


PACKAGE, BOARD, NEXT_BOARD = of("rapl.package-0"), of("nvml.0.energy"), of("nvml.1.energy")


@pytest.mark.parametrize(
    ("device", "devices", "sensors", "joules"),
    [
        ("cpu", 1, [PACKAGE, of("rapl.package-1", 220.0)], 360.0),
        # Parts of a package and what lies around it would count twice.
        ("cpu", 1, [PACKAGE, of("rapl.package-0.dram"), of("rapl.psys")], 120.0),
        ("cpu", 1, [of("rapl.package-0-die-1"), BOARD], 120.0),
        ("gpu", 1, [BOARD, of("nvml.0.power"), PACKAGE], 120.0),
        ("gpu", 2, [BOARD, NEXT_BOARD], 240.0),
        # No joules where they would be wrong.
        ("cpu", 1, [BOARD], None),
        ("tpu", 1, [], None),
        ("gpu", 1, [BOARD, NEXT_BOARD], None),
        # Power stands in where there is no counter, and not beside one that gave none.
        ("gpu", 1, [of("nvml.0.power")], 120.0),
        ("gpu", 1, [of("nvml.0.energy", None), of("nvml.0.power")], None),
        ("cpu", 1, [PACKAGE, of("rapl.package-1", None)], None),
        ("cpu", 1, [PACKAGE, of("rapl.package-1", 0.0)], None),
    ],
)
def test_the_sensors_that_together_are_the_device(device, devices, sensors, joules):
    power_w = device_power_w(device_entries(b.cell(device=device, devices=devices), sensors))
    assert power_w == (None if joules is None else pytest.approx(joules / 12))
