"""Loading NVML, NVIDIA's management library, or saying which obstacle there is."""

from __future__ import annotations

from types import ModuleType

NO_PACKAGE = "the Python package nvidia-ml-py is not installed: pip install nvidia-ml-py"
LIBRARY_NOT_FOUND = (
    "libnvidia-ml.so.1 not found: no NVIDIA driver is installed, or the container was started without --gpus all"
)
DRIVER_NOT_LOADED = (
    "the NVIDIA library is there but its kernel driver is not loaded: modprobe nvidia on the host, "
    "and start a container with --gpus all"
)
NO_PERMISSION = "no permission to open the NVIDIA devices: give this user read and write access to /dev/nvidia*"
VERSION_MISMATCH = "NVIDIA's library and kernel driver differ in version: reload the driver or reboot"
NO_GPU = "NVML is loaded and lists no GPU: start the container with --gpus all, and check `nvidia-smi -L` on the host"


def load() -> tuple[ModuleType | None, str | None]:
    """The initialized `pynvml` module and None, or None and why not. Call `nvmlShutdown` when done."""
    try:
        import pynvml
    except ImportError:
        return None, NO_PACKAGE
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, _obstacle(pynvml, error.value)
    return pynvml, None


def _obstacle(pynvml: ModuleType, code: int) -> str:
    known = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_NO_PERMISSION: NO_PERMISSION,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: VERSION_MISMATCH,
    }
    return known.get(code, f"NVML does not start: {pynvml.NVMLError(code)}")
