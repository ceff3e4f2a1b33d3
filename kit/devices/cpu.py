"""The CPU, which every machine has and every process can use; how much of its time others may take."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kit.devices.device import Device

# Others may take this fraction of the usable CPUs' time in a clean block. On quiet machines blocks show up to 6 % (99
# of 100), which is the resolution of the kernel's ticks and the system's own work. With 5 % one quiet cycle in twenty
# would be measured again; with 20 % intervals beside neighbors were no narrower, and less often right
# (docs/explanation/method.md).
OTHERS_MOST = 0.10


class Cpu(Device):
    """See `kit.devices.device.Device`."""

    kind = "cpu"
    rank = 0
    energy_source = "rapl"
    # RAPL's core and uncore are parts of a package, and psys includes it, so their joules would count twice. So would
    # those of Grace's CPU rail, a part of its socket. RAPL's dram, an ACPI meter, a module and a Cray node measure more
    # than the CPU. Users add sensors of hwmon and Cray themselves (docs/reference/add-ons.md).
    joule_sensors = (
        re.compile(r"rapl\.package-\d+(-die-\d+)?"),
        re.compile(r"hwmon\.power_meter\.grace_power_socket_\d+"),
        re.compile(r"cray\.cpu\.energy"),
    )

    def shown_by(self, count: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Keep JAX from opening every device that it has a plugin for; no other variable keeps it from a TPU."""
        return {} if "JAX_PLATFORMS" in environment else {"JAX_PLATFORMS": "cpu"}


DEVICE = Cpu()
