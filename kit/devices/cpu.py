"""The CPU: always here, and any process's."""

from __future__ import annotations

import re

from kit.devices.device import Device


class Cpu(Device):
    """See `kit.devices.device.Device`."""

    kind = "cpu"
    rank = 0
    # RAPL's dram and psys domains lie beside and around a package, its core and uncore within: they would count twice.
    whole = re.compile(r"rapl\.package-\d+(-die-\d+)?")


DEVICE = Cpu()
