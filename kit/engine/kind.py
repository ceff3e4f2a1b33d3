"""Which engine a client has: Docker or Podman, root's or a user's own; what it cannot give is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kit.engine.connection import EngineError

if TYPE_CHECKING:
    import docker

    from kit.engine.container_options import ContainerOptions

PODMAN = "Podman Engine"
# The API of Podman's own, of version 4 and later.
PODMAN_INFO = "/v4.0.0/libpod/info"


def podman_version(client: docker.DockerClient) -> tuple[int, ...] | None:
    """Return the engine's version where it is Podman; None: it is Docker."""
    version = client.version()
    if not any(part["Name"] == PODMAN for part in version.get("Components") or ()):
        return None
    return tuple(int(part) for part in version["Version"].partition("-")[0].split("."))


def for_kind(client: docker.DockerClient, options: ContainerOptions) -> ContainerOptions:
    """Return the options as this engine is to be asked for them.

    Raises:
        EngineError: a memory limit, which the engine of an unprivileged user would silently leave out.
    """
    info, is_podman = client.info(), podman_version(client) is not None
    is_rootless = bool(info.get("Rootless")) or "name=rootless" in (info.get("SecurityOptions") or ())
    if options.memory and is_rootless and not _limits_memory(client, info, is_podman):
        raise EngineError(
            f"--memory {options.memory}: this rootless engine has no memory controller; leave it out, or let root "
            "add Delegate=memory to the unit user@.service (control groups version 2)"
        )
    return options._replace(engine="podman" if is_podman else "docker", is_rootless=is_rootless)


def _limits_memory(client: docker.DockerClient, info: dict[str, Any], is_podman: bool) -> bool:
    """Podman's answer to Docker's question is the host's, not this user's."""
    if not is_podman:
        return bool(info["MemoryLimit"])
    host = client.api.get(client.api.base_url + PODMAN_INFO).json()["host"]
    return "memory" in host["cgroupControllers"]
