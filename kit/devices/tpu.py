"""TPUs: one process at a time holds them, and no sensor gives their joules."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

from kit.devices.device import Condition, Device, InContainer, condition
from kit.profile.facts import Accelerator
from kit.sensors import tpu_chips


class Tpu(Device):
    """See `kit.devices.device.Device`."""

    kind = "tpu"
    rank = 2
    energy_source = "tpu"
    # /dev/vfio/vfio, beside the groups of a TPU, is on machines without any device, too.
    files = (tpu_chips.ACCEL_FILES, tpu_chips.VFIO_GROUPS, "vfio/devices/*")
    in_passes = ("float32",)
    # PyTorch's own switch for torch-tpu. libtpu itself takes an empty TPU_VISIBLE_CHIPS as if none were given.
    hidden_by = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}  # noqa: RUF012
    in_container = InContainer(
        # Cloud TPU documentation, "Run a container on a TPU VM"; VFIO needs its control file and locked memory, too.
        files=(tpu_chips.ACCEL_FILES, "vfio/vfio", tpu_chips.VFIO_GROUPS),
        file_unseen="/dev/vfio",  # a TPU v5 or later has it
        why_no_files="no TPU on the engine's host: neither /dev/accel* nor /dev/vfio/*; run on a TPU VM",
        unlimited_memlock=True,
    )

    def listed(self) -> list[Accelerator]:
        """Return a TPU for each device file and PCI address."""
        return [
            Accelerator(name=f"{self.kind} {index}", model=f"TPU at {address}")
            for index, address in enumerate(tpu_chips.devices())
        ]

    def is_exclusive(self, count: int) -> bool:
        """Always: libtpu lets one process in."""
        return True

    def conditions(self, root: Path) -> Iterator[Condition]:
        """Yield whether a process can lock all the memory that it maps."""
        if tpu_chips.devices(root / "dev", root / "sys/bus/pci/devices"):
            fine = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY
            yield condition("locked memory", fine, ("memlock_unlimited", "memlock_small"))


DEVICE = Tpu()
