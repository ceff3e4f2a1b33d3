"""GPUs and TPUs of the machine, and how each GPU is at this moment."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from kit.profile.cell import Device
from kit.profile.identity import Accelerator, AcceleratorState
from kit.profile.reason import Reason, reason
from kit.sensors import nvml, tpu

# What drivers leave in /dev. GPU: NVIDIA (nvhost*, nvmap: Tegra), AMD (kfd), WSL (dxg). /dev/vfio/vfio, beside the
# groups of a TPU, is on machines without any device, too.
DEVICE_FILES: dict[Device, tuple[str, ...]] = {
    "gpu": ("nvidia*", "nvhost*", "nvmap", "kfd", "dxg"),
    "tpu": (tpu.ACCEL_FILES, tpu.VFIO_GROUPS, "vfio/devices/*"),
}


def accelerators(reasons: dict[str, Reason]) -> list[Accelerator]:
    """List them; why there is no GPU to list is noted in `reasons`."""
    boards = nvml.open_boards()
    if isinstance(boards, Reason):
        reasons["accelerators.gpu"] = boards
        boards = []
    return [_gpu(board) for board in boards] + [
        Accelerator(kind="tpu", model=f"TPU at {device}", memory_b=None, driver=None, uuid_sha256=None)
        for device in tpu.devices()
    ]


def accelerator_states() -> list[AcceleratorState]:
    """Return caps and clocks of every GPU that NVML lists, in its order: a forgotten power cap explains a slow run."""
    boards = nvml.open_boards()
    return [] if isinstance(boards, Reason) else [_gpu_state(board) for board in boards]


def why_missing(device: Device, dev: Path = tpu.DEV) -> Reason | None:
    """Return why there is certainly no such device here; None: there is one, or may be one that cannot be listed."""
    if device == "cpu" or any(next(dev.glob(pattern), None) for pattern in DEVICE_FILES[device]):
        return None
    if device == "tpu":
        return None if tpu.devices() else reason("no_tpu")
    boards = nvml.open_boards()
    return boards if isinstance(boards, Reason) else None


def _gpu(board: nvml.Board) -> Accelerator:
    memory, uuid, driver = board.ask("nvmlDeviceGetMemoryInfo"), board.ask("nvmlDeviceGetUUID"), None
    with suppress(board.nvml.NVMLError):
        driver = board.nvml.nvmlSystemGetDriverVersion()
    return Accelerator(
        kind="gpu",
        model=board.ask("nvmlDeviceGetName") or "unnamed",
        memory_b=memory and int(memory.total),
        driver=driver,
        uuid_sha256=uuid and hashlib.sha256(uuid.encode()).hexdigest(),
    )


def _gpu_state(board: nvml.Board) -> AcceleratorState:
    def number(call: str, *arguments: object, per_unit: int = 1) -> float | None:
        answer = board.ask(call, *arguments)
        return None if answer is None else answer / per_unit

    clock, die = board.nvml.NVML_CLOCK_SM, board.nvml.NVML_TEMPERATURE_GPU
    return AcceleratorState(
        name=f"gpu {board.place}",
        power_cap_w=number("nvmlDeviceGetEnforcedPowerLimit", per_unit=1000),
        power_cap_default_w=number("nvmlDeviceGetPowerManagementDefaultLimit", per_unit=1000),
        clock_limit_mhz=number("nvmlDeviceGetApplicationsClock", clock),
        clock_mhz=number("nvmlDeviceGetClockInfo", clock),
        temperature_c=number("nvmlDeviceGetTemperature", die),
    )
