"""GPUs and TPUs of the machine, and how each GPU is at this moment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from kit.profile.cell import Device
from kit.profile.identity import Accelerator, AcceleratorState
from kit.profile.reason import Reason, reason
from kit.sensors import nvml, tpu

# What drivers leave in /dev. GPU: NVIDIA (nvhost*, nvmap: Tegra), AMD (kfd), WSL (dxg). TPU: accel* up to v4, VFIO
# groups from v5 on; /dev/vfio/vfio itself is on machines without any device, too.
DEVICE_FILES: dict[Device, tuple[str, ...]] = {
    "gpu": ("nvidia*", "nvhost*", "nvmap", "kfd", "dxg"),
    "tpu": ("accel*", "vfio/[0-9]*", "vfio/devices/*"),
}


def accelerators(reasons: dict[str, Reason]) -> list[Accelerator]:
    """List them; why there is no GPU to list is noted in `reasons`."""
    devices: list[Accelerator] = []
    boards = nvml.open_boards()
    if isinstance(boards, Reason):
        reasons["accelerators.gpu"] = boards
    else:
        driver = _asking(boards.nvml)("nvmlSystemGetDriverVersion")
        for ask in (_asking(boards.nvml, handle) for handle in boards.handles):
            memory, uuid = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetUUID")
            devices.append(
                Accelerator(
                    kind="gpu",
                    model=ask("nvmlDeviceGetName") or "unnamed",
                    memory_b=memory and int(memory.total),
                    driver=driver,
                    uuid_sha256=uuid and hashlib.sha256(uuid.encode()).hexdigest(),
                )
            )
    return devices + [
        Accelerator(kind="tpu", model=f"TPU at {device}", memory_b=None, driver=None, uuid_sha256=None)
        for device in tpu.devices()
    ]


def accelerator_states() -> list[AcceleratorState]:
    """Return caps and clocks of every GPU that NVML lists, in its order: a forgotten power cap explains a slow run."""
    boards = nvml.open_boards()
    if isinstance(boards, Reason):
        return []
    clock, die = boards.nvml.NVML_CLOCK_SM, boards.nvml.NVML_TEMPERATURE_GPU

    def state(index: int, ask: Callable[..., Any]) -> AcceleratorState:
        def number(call: str, *arguments: object, per_unit: int = 1) -> float | None:
            answer = ask(call, *arguments)
            return None if answer is None else answer / per_unit

        return AcceleratorState(
            name=f"gpu {index}",
            power_cap_w=number("nvmlDeviceGetEnforcedPowerLimit", per_unit=1000),
            power_cap_default_w=number("nvmlDeviceGetPowerManagementDefaultLimit", per_unit=1000),
            clock_limit_mhz=number("nvmlDeviceGetApplicationsClock", clock),
            clock_mhz=number("nvmlDeviceGetClockInfo", clock),
            temperature_c=number("nvmlDeviceGetTemperature", die),
        )

    return [state(index, _asking(boards.nvml, handle)) for index, handle in enumerate(boards.handles)]


def why_missing(device: Device, dev: Path = Path("/dev")) -> Reason | None:
    """Return why there is certainly no such device here; None: there is one, or may be one that cannot be listed."""
    if device == "cpu" or any(next(dev.glob(pattern), None) for pattern in DEVICE_FILES[device]):
        return None
    reasons = {"accelerators.tpu": reason("no_tpu")}
    if any(board.kind == device for board in accelerators(reasons)):
        return None
    return reasons[f"accelerators.{device}"]


def _asking(library: ModuleType, *about: object) -> Callable[..., Any]:
    """Return a function that makes a call of the library about one board; None for what that does not answer."""

    def ask(call: str, *arguments: object) -> object:
        try:
            return getattr(library, call)(*about, *arguments)
        except library.NVMLError:
            return None

    return ask
