"""The engine that was chosen, Docker or Podman: where it is, and a client of it."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.distribution import need
from kit.environment import ENGINE
from kit.errors import KitError

if TYPE_CHECKING:
    import docker

# One answer may take so long; a build and a wait have no limit.
TIMEOUT_S = 30
DEFAULT_SOCKET = "unix:///var/run/docker.sock"
ENGINES = ("docker", "podman")
SSH = "ssh://"
# Podman answers Docker's API there: this user's below XDG_RUNTIME_DIR, the system's below /run.
PODMAN_SOCKET = "podman/podman.sock"
PODMAN = "Podman Engine"
# A service of ours ends by itself after so long without a connection, as where this process is killed.
SERVICE_IDLE_S = 600
SERVICE_START_S = 60.0
SERVICE_LOOK_EVERY_S = 0.05


class EngineError(KitError):
    """No engine answers, or it cannot do what is asked."""


def connect(engine: str | None = None) -> docker.DockerClient:
    """Return a client of the engine at `engine_address(engine)`.

    Where nothing was chosen and Docker does not answer it is Podman's, if that is installed.

    Raises:
        EngineError: nothing answers there, it may not be used, it is too old, or Podman's service does not start.
    """
    address = engine_address(engine)
    try:
        return _client(address)
    except EngineError:
        is_chosen = _engine(engine) or os.environ.get("DOCKER_HOST") or address["base_url"] != DEFAULT_SOCKET
        if is_chosen or not shutil.which("podman"):
            raise
    return _client({"base_url": podman_socket()})


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


def engine_address(engine: str | None = None) -> dict[str, Any]:
    """Return where the engine is: Podman's where that is chosen, else as the `docker` command has it.

    That is DOCKER_HOST, else DOCKER_CONTEXT's, else the current context's. It has `base_url`, and `tls` where the
    environment or the context has certificates.

    Raises:
        EngineError: it is no address, no engine, or the context cannot be read.
        KitError: docker, which is the client of either, is not installed.
    """
    need("docker", "containers")
    if _engine(engine) == "podman":
        return {"base_url": podman_socket()}
    from docker.context import ContextAPI
    from docker.utils import kwargs_from_env

    if named := os.environ.get("DOCKER_HOST"):
        if not named.startswith(("unix://", "tcp://", SSH)):
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


def podman_version(client: docker.DockerClient) -> tuple[int, ...] | None:
    """Return the engine's version where it is Podman; None: it is Docker."""
    version = client.version()
    if not any(part["Name"] == PODMAN for part in version.get("Components") or ()):
        return None
    return tuple(int(part) for part in version["Version"].partition("-")[0].split("."))


@functools.cache
def podman_socket() -> str:
    """Return the unix:// address of this user's Podman, the system's, or of a service that ends with this process.

    Raises:
        EngineError: there is no `podman`, or its service does not start, with its own last line.
    """
    for runtime in (os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}", "/run"):
        if _answers(path := Path(runtime, PODMAN_SOCKET)):
            return f"unix://{path}"
    folder = Path(tempfile.mkdtemp(prefix="steadykit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, errors = folder / "engine.sock", folder / "stderr"
    command = ["podman", "system", "service", f"--time={SERVICE_IDLE_S}", f"unix://{path}"]
    try:
        with errors.open("wb") as stderr:
            # It has a folder of its own, as Podman's monitors of containers leave a file there.
            service = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr,
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        remedy = "install it (Debian: podman and uidmap), or use Docker"
        raise EngineError(f"Podman: podman cannot be run ({error.strerror}); {remedy}") from None
    atexit.register(service.terminate)
    deadline = time.monotonic() + SERVICE_START_S
    while not _answers(path):
        if service.poll() is not None or time.monotonic() > deadline:
            service.terminate()
            last = (errors.read_text(errors="replace").strip().splitlines() or ["no answer"])[-1]
            raise EngineError(f"Podman: {last}; `podman info` must succeed")
        time.sleep(SERVICE_LOOK_EVERY_S)
    return f"unix://{path}"


def _answers(path: Path) -> bool:
    """Return whether something listens on a unix socket that we may use."""
    with socket.socket(socket.AF_UNIX) as connection:
        return not connection.connect_ex(str(path))


def _engine(engine: str | None) -> str | None:
    """Return the engine that was chosen by the option or the variable."""
    engine = engine or os.environ.get(ENGINE) or None
    if engine not in (None, *ENGINES):
        raise EngineError(f"{ENGINE}={engine} is not an engine; give {' or '.join(ENGINES)}")
    return engine


def _client(address: dict[str, Any]) -> docker.DockerClient:
    import docker

    url = address["base_url"]
    if url.startswith(SSH):
        raise EngineError(
            f"{url}: this engine is on another machine, which shares no folder with this one; run `kit launch` there "
            f"(`ssh {url.removeprefix(SSH).partition('/')[0]} kit launch …`), or use `kit fleet`"
        )
    try:
        return docker.DockerClient(**address, timeout=TIMEOUT_S)
    except (docker.errors.DockerException, OSError) as error:
        if "Permission denied" in str(error) and "podman" in url:
            raise EngineError(f"{url}: this user has no permission; use the socket of your own Podman") from None
        if "Permission denied" in str(error):
            raise EngineError(
                f"{url}: this user has no permission; join the group docker (`sudo usermod -aG docker $USER`, then log "
                "in again), or use a rootless engine"
            ) from None
        raise EngineError(
            f"{url}: no Docker engine answers; start it, choose another with DOCKER_HOST or DOCKER_CONTEXT, or install "
            "Podman, which needs no root"
        ) from None
