"""TPUs of this machine, and the duty cycle and memory of each chip by libtpu's monitoring, which has no power reading.

libtpu's "LibTPU SDK monitoring library": `get_metric(name).data()` is a list with a text for each chip, which is empty
while no process uses them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType

from kit.profile.fields import reason
from kit.sensors.sources import Sensor, measured

DEV = Path("/dev")
PCI = Path("/sys/bus/pci/devices")
# Cloud TPU documentation, "Run a container on a TPU VM": device files up to v4, VFIO groups from v5 on.
ACCEL_FILES = "accel[0-9]*"
VFIO_GROUPS = "vfio/[0-9]*"
# PCI vendor id of Google: other devices can be passed through by VFIO, too.
GOOGLE_PCI_VENDOR = "0x1ae0"
# Google's network cards carry the same vendor id: this class is "processing accelerator".
ACCELERATOR_PCI_CLASS = "0x12"
# Quantity -> its unit and libtpu's name for it.
METRICS = {"utilization": ("%", "duty_cycle_pct"), "memory": ("B", "hbm_capacity_usage")}


def devices(dev: Path = DEV, pci: Path = PCI) -> list[str]:
    """Return device files and PCI addresses of the TPUs of this machine."""
    return [str(file) for file in sorted(dev.glob(ACCEL_FILES))] + [
        vendor.parent.name
        for vendor in sorted(pci.glob("*/vendor"))
        if vendor.read_text().strip() == GOOGLE_PCI_VENDOR
        and (vendor.parent / "class").read_text().startswith(ACCELERATOR_PCI_CLASS)
    ]


def open_sampled(dev: Path = DEV, pci: Path = PCI) -> list[Sensor]:
    """Open the sensors of each chip, and an energy sensor that is never available, with the reason."""
    chips = devices(dev, pci)
    energy = measured("tpu.energy", "energy", "J", "TPU chips", "libtpu")
    if not chips:
        return [Sensor(energy, reason("no_tpu"))]
    try:
        from libtpu.sdk import tpumonitoring
    except ImportError:
        return [Sensor(energy, reason("tpu_without_library", devices=", ".join(chips)))]
    sensors = [Sensor(energy, reason("tpu_without_counter", devices=", ".join(chips)))]
    # A chip up to v4 has a device file and is a PCI device as well.
    for chip in range(len(list(dev.glob(ACCEL_FILES))) or len(chips)):
        for quantity, (unit, metric) in METRICS.items():
            scope, source = f"TPU chip {chip}, all processes", f"libtpu.sdk.tpumonitoring: {metric}"
            report = measured(f"tpu.{chip}.{quantity}", quantity, unit, scope, source)
            sensors.append(Sensor(report, partial(_metric, tpumonitoring, metric, chip)))
    return sensors


def _metric(monitoring: ModuleType, metric: str, chip: int) -> float:
    return float(monitoring.get_metric(metric).data()[chip])
