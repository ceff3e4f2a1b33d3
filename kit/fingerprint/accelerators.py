"""GPUs and TPUs of the machine."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from types import ModuleType

from kit.profile.cell import Device
from kit.profile.identity import Accelerator
from kit.sensors import nvml_library, tpu

# What drivers leave in /dev. GPU: NVIDIA (nvhost*, nvmap: Tegra), AMD (kfd), WSL (dxg). TPU: accel* up to v4, VFIO
# groups from v5 on; /dev/vfio/vfio itself is on machines without any device, too.
DEVICE_FILES: dict[Device, tuple[str, ...]] = {
    "gpu": ("nvidia*", "nvhost*", "nvmap", "kfd", "dxg"),
    "tpu": ("accel*", "vfio/[0-9]*", "vfio/devices/*"),
}


def accelerators(reasons: dict[str, str]) -> list[Accelerator]:
    """List them; why there is no GPU to list is noted in `reasons`."""
    return _gpus(reasons) + [
        Accelerator(kind="tpu", model=f"TPU at {device}", memory_b=None, driver=None, uuid_sha256=None)
        for device in tpu.devices()
    ]


def absence(device: Device, dev: Path = Path("/dev")) -> str | None:
    """Why there is certainly no such device here; null: there is one, or there may be one that we cannot list."""
    if device == "cpu" or any(next(dev.glob(pattern), None) for pattern in DEVICE_FILES[device]):
        return None
    reasons = {"accelerators.tpu": tpu.NO_DEVICE}
    if any(found.kind == device for found in accelerators(reasons)):
        return None
    return reasons[f"accelerators.{device}"]


def _gpus(reasons: dict[str, str]) -> list[Accelerator]:
    nvml, obstacle = nvml_library.load()
    if nvml is None:
        reasons["accelerators.gpu"] = obstacle or nvml_library.LIBRARY_NOT_FOUND
        return []
    try:
        found = [_gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        reasons["accelerators.gpu"] = f"NVML does not list the GPUs: {error}"
        return []
    finally:
        nvml.nvmlShutdown()
    if not found:
        reasons["accelerators.gpu"] = nvml_library.NO_GPU
    return found


def _gpu(nvml: ModuleType, handle: object) -> Accelerator:
    """What a board does not answer stays null.

    Raises:
        NVMLError: it does not even give its name.
    """
    model = str(nvml.nvmlDeviceGetName(handle))
    memory_b = driver = uuid = None
    with contextlib.suppress(nvml.NVMLError):
        memory_b = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    with contextlib.suppress(nvml.NVMLError):
        driver = str(nvml.nvmlSystemGetDriverVersion())
    with contextlib.suppress(nvml.NVMLError):
        uuid = str(nvml.nvmlDeviceGetUUID(handle))
    return Accelerator(
        kind="gpu",
        model=model,
        memory_b=memory_b,
        driver=driver,
        uuid_sha256=None if uuid is None else hashlib.sha256(uuid.encode()).hexdigest(),
    )
