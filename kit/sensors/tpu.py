"""TPUs: whether one is here, and that it offers no power reading to its user."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kit.profile.reason import reason
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import Sensor, unavailable

DEV = Path("/dev")
PCI = Path("/sys/bus/pci/devices")
# PCI vendor id of Google, by which a VFIO device is told from any other that is passed through.
GOOGLE_PCI_VENDOR = "0x1ae0"
# Google's network cards carry the same vendor id: this class is "processing accelerator".
ACCELERATOR_PCI_CLASS = "0x12"


def devices(dev: Path = DEV, pci: Path = PCI) -> list[str]:
    """Return device files and PCI addresses of the TPUs of this machine."""
    return [str(file) for file in sorted(dev.glob("accel[0-9]*"))] + [
        vendor.parent.name
        for vendor in sorted(pci.glob("*/vendor"))
        if vendor.read_text().strip() == GOOGLE_PCI_VENDOR
        and (vendor.parent / "class").read_text().startswith(ACCELERATOR_PCI_CLASS)
    ]


def open_sampled(dev: Path = DEV, pci: Path = PCI) -> list[Sensor]:
    """Return one energy sensor, never available, with the reason that holds here."""
    found = ", ".join(devices(dev, pci))
    if not found:
        why = reason("no_tpu")
    elif importlib.util.find_spec("libtpu") is None:
        why = reason("tpu_without_library", devices=found)
    else:
        why = reason("tpu_without_counter", devices=found)
    report = SensorReport(
        name="tpu.energy", quantity="energy", unit="J", scope="TPU chips", source="libtpu", status="measured"
    )
    return [Sensor(unavailable(report, why))]
