"""Caps and clocks of the GPUs at this moment: a forgotten power cap is blamed on software until someone looks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType

from kit.profile.identity import AcceleratorState
from kit.sensors import nvml_library

MILLIWATTS_PER_W = 1000


def accelerator_states() -> list[AcceleratorState]:
    """Of every GPU that NVML lists, in its order; none where it lists none (the identity says why)."""
    nvml, _ = nvml_library.load()
    if nvml is None:
        return []
    try:
        with contextlib.suppress(nvml.NVMLError):
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
            return [_state(nvml, f"gpu {index}", handle) for index, handle in enumerate(handles)]
        return []
    finally:
        nvml.nvmlShutdown()


def _state(nvml: ModuleType, name: str, handle: object) -> AcceleratorState:
    def ask(call: Callable[..., float], *arguments: object) -> float | None:
        with contextlib.suppress(nvml.NVMLError):
            return float(call(handle, *arguments))
        return None

    def watts(call: Callable[..., float]) -> float | None:
        milliwatts = ask(call)
        return None if milliwatts is None else milliwatts / MILLIWATTS_PER_W

    return AcceleratorState(
        name=name,
        power_cap_w=watts(nvml.nvmlDeviceGetEnforcedPowerLimit),
        power_cap_default_w=watts(nvml.nvmlDeviceGetPowerManagementDefaultLimit),
        clock_limit_mhz=ask(nvml.nvmlDeviceGetApplicationsClock, nvml.NVML_CLOCK_SM),
        clock_mhz=ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        temperature_c=ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
    )
