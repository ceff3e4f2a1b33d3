"""What a container needs to reach a target's hardware, as the engine and its host have it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kit.devices.catalog import DEVICES
from kit.engine.connection import EngineError
from kit.engine.container_options import Bind, ContainerOptions
from kit.engine.image import ask
from kit.engine.kind import podman_version

if TYPE_CHECKING:
    import docker

# Podman before it would silently leave out a request for devices.
CDI_PODMAN_MIN = (5, 4)
DEV = Bind("/dev", "/host-dev")
LIST_FILES = f"""
import sys
from pathlib import Path
folder = Path("{DEV.inside}")
print(*(Path("/dev", file.relative_to(folder)) for name in sys.argv[1:] for file in sorted(folder.glob(name))))
"""


def with_devices(client: docker.DockerClient | None, target: str, options: ContainerOptions) -> ContainerOptions:
    """Return the options with the target's devices; null for `client`: as this machine has them, unchecked.

    Raises:
        EngineError: they are not there, or the engine cannot give them.
    """
    needs = DEVICES[target].in_container
    version = podman_version(client) if client else None
    if needs.gpus and version and version < CDI_PODMAN_MIN:
        raise EngineError(
            f"Podman {'.'.join(map(str, version))} gives no GPUs through its socket; install Podman 5.4 or later, or "
            f"run the command that `kit launch {target} --engine podman --print` prints"
        )
    # Podman says nothing of its own about devices: they come by the Container Device Interface, or not.
    if client and not version and needs.why_not and (why := needs.why_not(client.info())):
        raise EngineError(why)
    files = _files(client, options.image, needs.files) if needs.files else []
    if needs.files and not files:
        if client:
            raise EngineError(needs.why_no_files)
        files = [needs.file_unseen]
    return options._replace(
        gpus=needs.gpus and (options.gpus or needs.gpus),
        devices=tuple(files),
        unlimited_memlock=needs.unlimited_memlock,
    )


def _files(client: docker.DockerClient | None, image: str, patterns: Sequence[str]) -> list[str]:
    """Return the files below /dev of the engine's host, or of this machine."""
    if client:
        return ask(client, image, ["python3", "-c", LIST_FILES, *patterns], binds=(DEV,)).decode().split()
    return [str(file) for pattern in patterns for file in sorted(Path(DEV.source).glob(pattern))]
