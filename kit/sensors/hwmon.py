"""Power and energy by the kernel's hardware monitors, as a rule without root.

    /sys/class/hwmon/hwmon3         name: power_meter (ACPI: Grace, and server platforms)
        power1_average              microwatts, over power1_average_interval milliseconds
        power1_oem_info             "Grace Power Socket 0"
    /sys/class/hwmon/hwmon5         name: amd_energy
        energy65_input              microjoules since the driver was loaded
        energy65_label              "Esocket0"

Attributes of older drivers, the ACPI meter's too, lie in the folder `device` beside `name`. The kernel says of no
counter at which value it wraps: one that falls was reset.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from kit.environment import HWMON_ROOT
from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import FAILURES, Sensor, file_obstacle
from kit.sensors.rapl import SCHOENE

MICRO = 1e-6
MS = 1_000_000
# (chip).(label) -> what is included. Of an ACPI meter without Grace's labels the firmware alone knows; as a rule it is
# the power supply.
SCOPES = {
    r"power_meter\.grace_power_socket_\d+": "Grace processor, its memory and regulators; all processes",
    r"power_meter\.cpu_power_socket_\d+": "cores of the Grace processor, a part of its socket; all processes",
    r"power_meter\.sysio_power_socket_\d+": "I/O of the Grace processor, a part of its socket; all processes",
    r"power_meter\.module_power_socket_\d+": "whole module: Grace, its memory, its GPU if it has one; all processes",
    r"power_meter\..*": "as the firmware has it, the whole platform as a rule; all processes",
    r"amd_energy\.esocket\d+": "processor package; all processes",
    r"fam15h_power\..*": "processor package; all processes",
    r"(amdgpu|i915|xe|nouveau)\..*": "GPU, its board where the driver counts that; all processes",
}
# Parts of a socket that has a counter of its own, one for each core.
LEFT_OUT = re.compile(r"amd_energy\.ecore\d+")
# The registers that RAPL reads there.
OF_A_MODEL = "amd_energy"
# Their joules are a board's: no CPU's, and another board's neither.
GPU_CHIPS = ("amdgpu", "i915", "xe", "nouveau")
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class Channel(NamedTuple):
    """One value of one monitor."""

    chip: str
    device: str  # the kernel's name of the device that it monitors, ``ACPI000D:00``
    label: str
    file: Path


def open_sampled() -> list[Sensor]:
    """Open one sensor for each channel of power or energy, or one that says which obstacle there is.

    KIT_HWMON_ROOT is the folder of monitors where it is elsewhere than the kernel has it.
    """
    root = Path(os.environ.get(HWMON_ROOT, "/sys/class/hwmon"))
    channels = [channel for monitor in sorted(root.glob("hwmon*")) for channel in _channels(monitor)]
    alike = Counter((channel.chip, channel.label) for channel in channels)
    if channels:
        return [_open(channel, is_alone=alike[channel.chip, channel.label] == 1) for channel in channels]
    why = reason("no_hwmon_power" if root.is_dir() else "no_hwmon", root=str(root))
    report = _report("hwmon.power", "power", "set by the monitor's driver", root)
    return [Sensor(report, why)]


def _channels(monitor: Path) -> Iterator[Channel]:
    """Yield a monitor's channels: of a power that is told twice the average, which leaves nothing out."""
    chip = _word(_text(monitor / "name") or _text(monitor / "device/name") or monitor.name)
    device = (monitor / "device").resolve().name
    files: dict[str, Path] = {}
    for pattern in ("energy[0-9]*_input", "power[0-9]*_average", "power[0-9]*_input"):
        for file in sorted([*monitor.glob(pattern), *monitor.glob(f"device/{pattern}")]):
            files.setdefault(file.name.partition("_")[0], file)
    for channel, file in files.items():
        text = _text(file.with_name(f"{channel}_label")) or _text(file.with_name(f"{channel}_oem_info"))
        label = _word(text) or channel
        if not LEFT_OUT.fullmatch(f"{chip}.{label}"):
            yield Channel(chip, device, label, file)


def _open(channel: Channel, *, is_alone: bool) -> Sensor:
    chip, device, label, file = channel
    kind = f"{chip}.{label}"
    scope = next((scope for pattern, scope in SCOPES.items() if re.fullmatch(pattern, kind)), f"as {chip} has it")
    is_counter = file.name.startswith("energy")
    name = f"hwmon.{kind}" if is_alone else f"hwmon.{chip}.{device}.{label}"
    report = _report(name, "energy" if is_counter else "power", scope, file)
    if chip in GPU_CHIPS and PCI_ADDRESS.fullmatch(device):
        report = replace(report, device_id=device)
    if not is_counter:
        report = _with_period(report, file)
    if chip == OF_A_MODEL:
        why = reason("energy_is_modelled", processor="AMD", source=SCHOENE)
        report = replace(report, status="modelled", reason=why)
    return Sensor(report, _reader(file))


def _with_period(report: SensorReport, file: Path) -> SensorReport:
    """Return the report with the time that an average is over; of a value of its moment, how often it is fresh."""
    if file.name.endswith("_average"):
        interval_ns = _milliseconds(file.with_name(f"{file.name}_interval"))
        return replace(report, update_period_ns=interval_ns, mean_over_ns=interval_ns)
    return replace(report, update_period_ns=_milliseconds(file.with_name("update_interval")))


def _reader(file: Path) -> Callable[[], float] | Reason:
    def value() -> float:
        return int(file.read_text()) * MICRO

    try:
        value()
    except PermissionError as error:
        # The counters, not the slower gauges, were closed to users against side channels.
        is_counter = file.name.startswith("energy")
        return reason("root_only", file=str(file)) if is_counter else file_obstacle(file, error)
    except FAILURES as error:
        return file_obstacle(file, error)
    return value


def _report(name: str, quantity: str, scope: str, source: Path) -> SensorReport:
    is_counter = quantity == "energy"
    unit = "J" if is_counter else "W"
    return SensorReport(
        name=name, quantity=quantity, unit=unit, scope=scope, source=str(source), status="measured", counter=is_counter
    )


def _milliseconds(file: Path) -> int | None:
    with suppress(*FAILURES):
        return int(file.read_text()) * MS or None
    return None


def _text(file: Path) -> str:
    with suppress(*FAILURES):
        return file.read_text().strip()
    return ""


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_").lower()
