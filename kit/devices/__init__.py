"""Every kind of device that has a file in this folder, by its name and in the order of tables."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from kit.devices.device import Device

_modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
_devices: list[Device] = [module.DEVICE for module in _modules if hasattr(module, "DEVICE")]
DEVICES: dict[str, Device] = {device.kind: device for device in sorted(_devices, key=lambda device: device.rank)}


def worker_environment(kind: str, count: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that show a worker the first `count` devices of a kind, and no device of another kind.

    A framework makes a context on every GPU that it sees, whichever it is asked to use.
    """
    others = [device for device in DEVICES.values() if device.kind != kind]
    hidden = {name: value for device in others for name, value in device.hidden_by.items()}
    return {**hidden, **DEVICES[kind].shown_by(count, environment)}
