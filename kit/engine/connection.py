"""A Docker engine: this machine's, a context's, or another host's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from kit.engine.tunnel import forwarded
from kit.errors import KitError

if TYPE_CHECKING:
    import docker

# The first API with device requests (--gpus) and BuildKit: Docker 19.03.
API_MIN = (1, 40)
# Of one answer; a build and a wait have none.
TIMEOUT_S = 30
DEFAULT_SOCKET = "unix:///var/run/docker.sock"
SCHEMES = ("ssh://", "unix://", "tcp://")


class EngineError(KitError):
    """No engine answers, or it cannot do what is asked."""


def connect(host: str | None = None) -> docker.DockerClient:
    """Return a client of the engine at `engine_address(host)`; ssh:// through the system's own ssh.

    Raises:
        EngineError: nothing answers there, ssh does not get there, it may not be used, or it is too old.
    """
    address = engine_address(host)
    import docker

    url = address["base_url"]
    reached = forwarded(url) if url.startswith("ssh://") else url
    try:
        client = docker.DockerClient(**address | {"base_url": reached}, timeout=TIMEOUT_S)
        version = tuple(int(part) for part in str(client.version()["ApiVersion"]).split("."))
    except docker.errors.InvalidVersion:  # below the SDK's own least
        version = (0,)
    except (docker.errors.DockerException, OSError) as error:
        if "Permission denied" in str(error):
            raise EngineError(
                f"{url}: no permission for this user; join the group docker (`sudo usermod -aG docker $USER`, then log "
                "in anew), or use a rootless engine"
            ) from None
        raise EngineError(
            f"{url}: no Docker engine answers; start it, or choose another by DOCKER_HOST or DOCKER_CONTEXT"
        ) from None
    if version < API_MIN:
        need = ".".join(map(str, API_MIN))
        raise EngineError(f"{url}: the engine is too old: API {need} is needed; install Docker 19.03 or later there")
    return client


def local_engine() -> docker.DockerClient:
    """Return a client of an engine on this machine: only its containers can take turns with processes here.

    Raises:
        EngineError: the engine is on another machine; or see `connect`.
    """
    url = engine_address()["base_url"]
    if not url.startswith("unix://"):
        raise EngineError(
            f"{url}: images take turns on this machine only; unset DOCKER_HOST and use this machine's own engine "
            "(`docker context use default`), or run `kit launch --host` for each image"
        )
    return connect()


def engine_address(host: str | None = None) -> dict[str, Any]:
    """Return where the engine is: `host`, else DOCKER_HOST, else DOCKER_CONTEXT's, else the current context's.

    That is `base_url`, and `tls` where the environment or the context has certificates.

    Raises:
        EngineError: it is no address, or the context cannot be read.
    """
    from docker.context import ContextAPI
    from docker.utils import kwargs_from_env

    if named := host or os.environ.get("DOCKER_HOST"):
        if not named.startswith(SCHEMES):
            raise EngineError(f"{named}: not an engine's address; give ssh://me@node, unix:///path or tcp://node:2376")
        return dict(kwargs_from_env({**os.environ, "DOCKER_HOST": named}))
    chosen = os.environ.get("DOCKER_CONTEXT")
    try:
        address = ContextAPI.kwargs_from_context()
        is_unknown = bool(chosen) and ContextAPI.get_context(chosen) is None
    except Exception as error:  # the SDK raises a bare Exception for a context file that it cannot read
        raise EngineError(
            f"the current Docker context cannot be read ({error}); choose one with `docker context use`"
        ) from None
    if is_unknown:
        raise EngineError(f"DOCKER_CONTEXT: there is no context {chosen}; `docker context ls` lists them")
    return {"base_url": DEFAULT_SOCKET, **address}
