"""Every kind of device that there is a file of, by its name and in the order of tables."""

from __future__ import annotations

import importlib
import pkgutil

import kit.devices
from kit.devices.device import Device

_names = (f"kit.devices.{module.name}" for module in pkgutil.iter_modules(kit.devices.__path__))
_modules = [importlib.import_module(name) for name in _names if name != __name__]
_devices: list[Device] = [module.DEVICE for module in _modules if hasattr(module, "DEVICE")]
DEVICES: dict[str, Device] = {device.kind: device for device in sorted(_devices, key=lambda device: device.rank)}
