"""A Docker engine: this machine's, a context's, or another host's."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

from kit.engine.tunnel import forwarded
from kit.errors import KitError

if TYPE_CHECKING:
    import docker

# The first API with device requests (--gpus) and BuildKit: Docker 19.03.
API_MIN = (1, 40)
# Of one answer; a build and a wait have none.
TIMEOUT_S = 30
DEFAULT_SOCKET = "unix:///var/run/docker.sock"


class EngineError(KitError):
    """No engine answers, or it cannot do what is asked."""


def engine_url(host: str | None = None) -> str:
    """Return where the engine is: `host`, else DOCKER_HOST, else the current context's, else the default socket.

    Raises:
        EngineError: the docker package is missing, or the context cannot be read.
    """
    _need_package()
    return host or os.environ.get("DOCKER_HOST") or _context_host() or DEFAULT_SOCKET


def connect(host: str | None = None) -> docker.DockerClient:
    """Return a client of the engine at `engine_url(host)`; ssh:// through the system's own ssh.

    Raises:
        EngineError: the docker package is missing, nothing answers there, it may not be used, or it is too old.
        TunnelError: ssh does not get there.
    """
    url = engine_url(host)
    import docker

    reached = forwarded(url) if url.startswith("ssh://") else url
    try:
        client = docker.from_env(timeout=TIMEOUT_S, environment={**os.environ, "DOCKER_HOST": reached})
        version = client.version()
    except docker.errors.InvalidVersion:  # the SDK's own least
        raise _too_old(url) from None
    except (docker.errors.DockerException, OSError) as error:
        raise _unreachable(url, error) from None
    if tuple(int(part) for part in str(version["ApiVersion"]).split(".")) < API_MIN:
        raise _too_old(url)
    return client


def local_engine() -> docker.DockerClient:
    """Return a client of an engine on this machine: only its containers can take turns with processes here.

    Raises:
        EngineError: the engine is on another machine; or see `connect`.
    """
    url = engine_url()
    if not url.startswith("unix://"):
        raise EngineError(
            f"{url}: images take turns on this machine only; unset DOCKER_HOST and use this machine's own engine "
            "(`docker context use default`), or run `kit launch --host` for each image"
        )
    return connect()


def _need_package() -> None:
    if importlib.util.find_spec("docker") is None:
        raise EngineError("the docker package is missing; pip install 'steadykit[docker]'")


def _context_host() -> str | None:
    """Return where the current context's engine is; None: at the default socket."""
    from docker.context import ContextAPI

    try:
        context = ContextAPI.get_current_context()
    except Exception as error:  # the SDK raises a bare Exception for a context file that it cannot read
        raise EngineError(
            f"the current Docker context cannot be read ({error}); choose one with `docker context use`"
        ) from None
    return None if context is None else context.Host


def _too_old(url: str) -> EngineError:
    need = ".".join(map(str, API_MIN))
    return EngineError(f"{url}: the engine is too old: API {need} is needed; install Docker 19.03 or later there")


def _unreachable(url: str, error: Exception) -> EngineError:
    if "Permission denied" in str(error):
        return EngineError(
            f"{url}: no permission for this user; join the group docker (`sudo usermod -aG docker $USER`, then log in "
            "anew), or use a rootless engine"
        )
    return EngineError(f"{url}: no Docker engine answers; start it, or give another with --host or DOCKER_HOST")
