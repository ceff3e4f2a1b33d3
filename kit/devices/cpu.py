"""The CPU, which every machine has and every process can use."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kit.devices.device import Device


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
