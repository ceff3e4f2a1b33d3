"""The CPU: always here, and any process's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kit.devices.device import Device


class Cpu(Device):
    """See `kit.devices.device.Device`."""

    kind = "cpu"
    rank = 0
    energy_source = "rapl"
    # RAPL's dram and psys domains lie beside and around a package, its core and uncore within: they would count twice.
    # So would Grace's CPU rail, within its socket; an ACPI meter, a module and a Cray node include much more than the
    # CPU. Sensors of hwmon and Cray are there where a user added them (docs/reference/add-ons.md).
    joule_sensors = (
        re.compile(r"rapl\.package-\d+(-die-\d+)?"),
        re.compile(r"hwmon\.power_meter\.grace_power_socket_\d+"),
        re.compile(r"cray\.cpu\.energy"),
    )

    def shown_by(self, count: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """JAX would open every device that it has a plugin for; nothing else keeps it from a TPU."""
        return {} if "JAX_PLATFORMS" in environment else {"JAX_PLATFORMS": "cpu"}


DEVICE = Cpu()
