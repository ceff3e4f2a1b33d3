"""The CUDA driver, asked which boards the process sees: framework device i is CUDA device i, NVML's by its bus id."""

from __future__ import annotations

import ctypes
import functools

LIBRARY = "libcuda.so.1"
# CUDA driver API: "Domain:Bus:Device.Function" with its final zero takes at least 13 characters.
BUS_ID_B = 32


def pci_bus_ids(devices: int) -> list[str]:
    """Return the PCI bus ids, as 0000:65:00.0, of the first GPUs that this process sees; none without a driver."""
    driver = _driver()
    if driver is None:
        return []
    boards = []
    for ordinal in range(devices):
        device, text = ctypes.c_int(), ctypes.create_string_buffer(BUS_ID_B)
        if driver.cuDeviceGet(ctypes.byref(device), ordinal) or driver.cuDeviceGetPCIBusId(text, BUS_ID_B, device):
            return []
        boards.append(bus_id(text.value.decode()))
    return boards


def memory_b(ordinal: int) -> int | None:
    """Return the bytes of the GPU of that ordinal; None without a driver."""
    driver, device, size = _driver(), ctypes.c_int(), ctypes.c_size_t()
    if driver is None or driver.cuDeviceGet(ctypes.byref(device), ordinal):
        return None
    return None if driver.cuDeviceTotalMem_v2(ctypes.byref(size), device) else size.value


def bus_id(text: str) -> str:
    """Return a bus id as CUDA and NVML both have it: NVML writes eight digits of domain."""
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


@functools.cache
def _driver() -> ctypes.CDLL | None:
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    return None if driver.cuInit(0) else driver
