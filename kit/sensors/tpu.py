"""TPUs: whether one is here, and that it offers no power reading to its user."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kit.sensors.protocol import Sensor
from kit.sensors.source import Unavailable

NO_DEVICE = "no TPU here: neither /dev/accel* (v4 and earlier) nor a /dev/vfio group (v5 and later) belongs to one"
NO_COUNTER = (
    "a TPU is here ({devices}), and libtpu gives its user no energy or power counter: "
    "joules can only come from the provider's own monitoring"
)
NO_LIBRARY = "a TPU device is here ({devices}) but libtpu is not installed: pip install 'jax[tpu]'"
# PCI vendor id of Google, by which a VFIO device is told from any other that is passed through.
GOOGLE_PCI_VENDOR = "0x1ae0"


def devices(dev: Path = Path("/dev"), pci: Path = Path("/sys/bus/pci/devices")) -> list[str]:
    """Device files and PCI addresses of the TPUs of this machine."""
    found = sorted(str(file) for file in dev.glob("accel[0-9]*"))
    for vendor in sorted(pci.glob("*/vendor")):
        try:
            if vendor.read_text().strip() == GOOGLE_PCI_VENDOR and _is_accelerator(vendor.parent):
                found.append(vendor.parent.name)
        except OSError:
            continue
    return found


def open_all(dev: Path = Path("/dev"), pci: Path = Path("/sys/bus/pci/devices")) -> list[Sensor]:
    """One energy sensor, never available, with the reason that holds here."""
    found = devices(dev, pci)
    if not found:
        reason = NO_DEVICE
    elif importlib.util.find_spec("libtpu") is None:
        reason = NO_LIBRARY.format(devices=", ".join(found))
    else:
        reason = NO_COUNTER.format(devices=", ".join(found))
    return [Unavailable("tpu.energy", "energy", "J", "TPU chips", "libtpu", reason=reason)]


def _is_accelerator(device: Path) -> bool:
    """Google's network cards carry the same vendor id: PCI class 0x12 is 'processing accelerator'."""
    return (device / "class").read_text().startswith("0x12")
