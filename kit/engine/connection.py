"""The engine that was chosen, Docker or Podman."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

from kit.engine.podman import podman_socket
from kit.environment import ENGINE
from kit.errors import KitError

if TYPE_CHECKING:
    import docker

# The first API with device requests (--gpus) and BuildKit: Docker 19.03.
API_MIN = (1, 40)
# Of one answer; a build and a wait have none.
TIMEOUT_S = 30
DEFAULT_SOCKET = "unix:///var/run/docker.sock"
ENGINES = ("docker", "podman")
SCHEMES = ("unix://", "tcp://")
SSH = "ssh://"


class EngineError(KitError):
    """No engine answers, or it cannot do what is asked."""


def connect(engine: str | None = None) -> docker.DockerClient:
    """Return a client of the engine at `engine_address(engine)`.

    Where nothing was chosen and Docker does not answer it is Podman's, if that is installed.

    Raises:
        EngineError: nothing answers there, it may not be used, or it is too old.
        KitError: Podman's service does not start.
    """
    address = engine_address(engine)
    try:
        return _client(address)
    except EngineError:
        is_chosen = _engine(engine) or os.environ.get("DOCKER_HOST") or address["base_url"] != DEFAULT_SOCKET
        if is_chosen or not shutil.which("podman"):
            raise
    return _client({"base_url": podman_socket()})


def _client(address: dict[str, Any]) -> docker.DockerClient:
    import docker

    url = address["base_url"]
    if url.startswith(SSH):
        raise EngineError(
            f"{url}: this engine is on another machine, which shares no folder with this one; run `kit launch` there "
            f"(`ssh {url.removeprefix(SSH).partition('/')[0]} kit launch …`), or use `kit fleet`"
        )
    try:
        client = docker.DockerClient(**address, timeout=TIMEOUT_S)
        version = tuple(int(part) for part in str(client.version()["ApiVersion"]).split("."))
    except docker.errors.InvalidVersion:  # below the SDK's own least
        version = (0,)
    except (docker.errors.DockerException, OSError) as error:
        if "Permission denied" in str(error):
            raise EngineError(
                f"{url}: this user has no permission; join the group docker (`sudo usermod -aG docker $USER`, then log "
                "in again), or use a rootless engine"
            ) from None
        raise EngineError(
            f"{url}: no Docker engine answers; start it, choose another with DOCKER_HOST or DOCKER_CONTEXT, or install "
            "Podman, which needs no root"
        ) from None
    if version < API_MIN:
        need = ".".join(map(str, API_MIN))
        raise EngineError(f"{url}: the engine is too old, as API {need} is needed; install Docker 19.03 or later there")
    return client


def local_engine() -> docker.DockerClient:
    """Return a client of an engine on this machine: only its containers can take turns with processes here.

    Raises:
        EngineError: the engine is on another machine; or see `connect`.
    """
    url = engine_address()["base_url"]
    if not url.startswith("unix://"):
        raise EngineError(
            f"{url}: image variants need an engine on this machine; unset DOCKER_HOST and use this machine's engine "
            "(`docker context use default`), or run `kit run` there"
        )
    return connect()


def engine_for_line(engine: str | None) -> str:
    """Return the command of the chosen engine; without a choice, the one that is installed."""
    is_podman_alone = bool(shutil.which("podman")) and not shutil.which("docker")
    return _engine(engine) or ENGINES[is_podman_alone]


def _engine(engine: str | None) -> str | None:
    """Return the engine that was chosen by the option or the variable."""
    engine = engine or os.environ.get(ENGINE) or None
    if engine not in (None, *ENGINES):
        raise EngineError(f"{ENGINE}={engine} is not an engine; give {' or '.join(ENGINES)}")
    return engine


def engine_address(engine: str | None = None) -> dict[str, Any]:
    """Return where the engine is: Podman's where that is chosen, else as the `docker` command has it.

    That is DOCKER_HOST, else DOCKER_CONTEXT's, else the current context's. It has `base_url`, and `tls` where the
    environment or the context has certificates.

    Raises:
        EngineError: it is no address, no engine, or the context cannot be read.
    """
    if _engine(engine) == "podman":
        return {"base_url": podman_socket()}
    from docker.context import ContextAPI
    from docker.utils import kwargs_from_env

    if named := os.environ.get("DOCKER_HOST"):
        if not named.startswith((*SCHEMES, SSH)):
            raise EngineError(f"DOCKER_HOST={named} is not an engine's address; give unix:///path or tcp://node:2376")
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
        raise EngineError(f"DOCKER_CONTEXT={chosen} does not exist; `docker context ls` lists the contexts")
    return {"base_url": DEFAULT_SOCKET, **address}
