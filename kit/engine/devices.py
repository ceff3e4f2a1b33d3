"""What a container needs to reach a target's hardware, as the engine and its host have it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.engine.connection import EngineError
from kit.engine.container_options import Bind, ContainerOptions
from kit.engine.image import ask
from kit.engine.kind import podman_version
from kit.sensors import tpu

if TYPE_CHECKING:
    import docker

# Cloud TPU documentation, "Run a container on a TPU VM"; VFIO needs its control file and unlimited locked memory, too.
TPU_FILES = (tpu.ACCEL_FILES, "vfio/vfio", tpu.VFIO_GROUPS)
# Podman before it would silently leave out a request for devices.
CDI_PODMAN_MIN = (5, 4)
# Of a v5 or later, where no TPU is here to look at.
TPU_FOLDER = "/dev/vfio"
DEV = Bind("/dev", "/host-dev")
LIST_TPU_FILES = f"""
from pathlib import Path
folder = Path("{DEV.inside}")
print(*(Path("/dev", file.relative_to(folder)) for name in {TPU_FILES} for file in sorted(folder.glob(name))))
"""


def with_devices(client: docker.DockerClient | None, target: str, options: ContainerOptions) -> ContainerOptions:
    """Return the options with the target's devices; null for `client`: as this machine has them, unchecked.

    Raises:
        EngineError: they are not there, or the engine cannot give them.
    """
    if target == "gpu":
        version = podman_version(client) if client else None
        if version and version < CDI_PODMAN_MIN:
            raise EngineError(
                f"Podman {'.'.join(map(str, version))}: gives GPUs by its socket since 5.4; install that, or run the "
                "line of `kit launch gpu --engine podman --print`"
            )
        if client and not version and not _gives_gpus(client.info()):
            raise EngineError(
                "the engine has no NVIDIA runtime; install the NVIDIA Container Toolkit on its host and run "
                "`sudo nvidia-ctk runtime configure --runtime=docker`, or measure with `kit launch cpu`"
            )
        return options._replace(gpus=options.gpus or "all")
    if target == "tpu":
        if client:
            files = ask(client, options.image, ["python3", "-c", LIST_TPU_FILES], binds=(DEV,)).decode().split()
        else:
            files = [str(file) for name in TPU_FILES for file in sorted(Path(DEV.source).glob(name))] or [TPU_FOLDER]
        if not files:
            raise EngineError(
                "no TPU on the engine's host: neither /dev/accel* nor /dev/vfio/*; run on a TPU VM, or name one with "
                "--host ssh://…"
            )
        return options._replace(devices=tuple(files), unlimited_memlock=True)
    return options


def _gives_gpus(info: Mapping[str, Any]) -> bool:
    """Since Docker 28.3 devices may come by the Container Device Interface, without a runtime of its own."""
    return "nvidia" in str([*info["Runtimes"], *(info.get("DiscoveredDevices") or ())])
