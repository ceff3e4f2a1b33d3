"""One container from its creation to its end, its output passed on as it comes; the engine removes it when it ends.

create ─ watch its events ─ attach ─ start ─► output … ─► die (exit status; oom before it) ─► removed
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kit.devices import DEVICES
from kit.engine.connection import EngineError, podman_version
from kit.engine.container_options import CDI_GPU, Bind, ContainerOptions

if TYPE_CHECKING:
    import docker

STDERR = 2
# A busy engine takes seconds to remove a container that has ended.
REMOVED_S = 60
# What marks a container as ours.
LABEL = "io.steadykit"
# A probe takes a second where the engine is at rest.
ASK_TIMEOUT_S = 60.0
# An older Podman would silently leave out a request for devices.
CDI_PODMAN_MIN = (5, 4)
DEV = Bind("/dev", "/host-dev")
LIST_FILES = f"""
import sys
from pathlib import Path
folder = Path("{DEV.inside}")
print(*(Path("/dev", file.relative_to(folder)) for name in sys.argv[1:] for file in sorted(folder.glob(name))))
"""


class Output(NamedTuple):
    """Some bytes of a container's output."""

    is_error: bool
    data: bytes


class Ended(NamedTuple):
    """How a container ended."""

    status: int
    out_of_memory: bool  # the kernel killed a process in it


class Container:
    """A container that runs for as long as this object is open.

    Its input stays open as long, too; the supervisor in it ends it when that closes, as at this process' death.

    Raises:
        EngineError: the engine refuses, with the remedy.
    """

    def __init__(self, client: docker.DockerClient, options: ContainerOptions) -> None:
        import docker
        from docker.utils.socket import frames_iter

        try:
            self._container = client.containers.create(
                **options.for_engine(), stdin_open=True, auto_remove=True, labels={LABEL: "run"}
            )
            self._events = client.events(decode=True, filters={"container": self._container.id})
            wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._socket: Any = client.api.attach_socket(self._container.id, params=wanted)
            self._container.start()
        except (docker.errors.DockerException, OSError) as error:
            self.close()
            raise EngineError(explained(error)) from None
        self._raw = getattr(self._socket, "_sock", self._socket)
        self._frames = frames_iter(self._raw, tty=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        """Write to the container's input. OSError where it has gone."""
        self._raw.sendall(data)

    def receive(self, wait_s: float) -> Output | None:
        """Return what has come within `wait_s`, maybe no bytes; None: its output has ended."""
        if not select.select([self._raw], [], [], wait_s)[0]:
            return Output(is_error=False, data=b"")
        stream, data = next(self._frames, (0, None))
        return None if data is None else Output(stream == STDERR, data)

    def fileno(self) -> int:
        """Return what is readable when output may have come."""
        return int(self._raw.fileno())

    def end_input(self) -> None:
        """Close its input: the supervisor in it ends the command, with its grace. Nothing where it has ended."""
        with suppress(OSError):
            self._raw.shutdown(socket.SHUT_WR)

    def wait(self) -> Ended:
        """Return how it ended, once its output has.

        Raises:
            EngineError: the engine has gone.
        """
        out_of_memory = False
        try:
            for event in self._events:
                if event["Action"] == "die":
                    return Ended(int(event["Actor"]["Attributes"]["exitCode"]), out_of_memory)
                out_of_memory |= event["Action"] == "oom"
        except Exception:  # requests, urllib3 and http.client each have their own for a connection that has ended
            pass
        raise EngineError("the engine stopped, or the connection to it broke, while the container ran")

    def close(self) -> None:
        """Remove the container, running or not."""
        import docker

        for stream in (getattr(self, "_events", None), getattr(self, "_socket", None)):
            if stream is not None:
                stream.close()
        if (container := getattr(self, "_container", None)) is not None:
            with suppress(docker.errors.DockerException, OSError):  # gone already, or the engine is
                try:
                    container.remove(force=True, v=True)  # its anonymous volumes with it
                except docker.errors.APIError as error:
                    if error.status_code == HTTPStatus.CONFLICT:  # the engine removes it already, which takes a while
                        container.wait(condition="removed", timeout=REMOVED_S)


def ask(
    client: docker.DockerClient,
    image: str,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    binds: Sequence[Bind] = (),
) -> bytes:
    """Return what a command writes to standard output in a container of the image.

    Raises:
        EngineError: with its last line, where it fails; or it does not end.
    """
    options = ContainerOptions(
        image, [*command[1:]], entrypoint=(command[0],), environment=environment or {}, binds=tuple(binds)
    )
    answer, errors = bytearray(), bytearray()
    deadline = time.monotonic() + ASK_TIMEOUT_S
    with Container(client, options) as container:
        while (output := container.receive(1.0)) is not None:
            (errors if output.is_error else answer).extend(output.data)
            if time.monotonic() > deadline:
                raise EngineError(f"image {image}: {command[0]} did not end within {ASK_TIMEOUT_S:.0f} s")
        status = container.wait().status
    if status:
        last = (errors.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise EngineError(f"image {image}: {command[0]} failed: {last}")
    return bytes(answer)


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
    files: list[str] = []
    if needs.files and client:
        files = ask(client, options.image, ["python3", "-c", LIST_FILES, *needs.files], binds=(DEV,)).decode().split()
        if not files:
            raise EngineError(needs.why_no_files)
    elif needs.files:
        here = [str(file) for pattern in needs.files for file in sorted(Path(DEV.source).glob(pattern))]
        files = here or [needs.file_unseen]
    return options._replace(
        gpus=needs.gpus and (options.gpus or needs.gpus),
        devices=tuple(files),
        unlimited_memlock=needs.unlimited_memlock,
    )


def explained(error: Exception) -> str:
    """Return an engine's refusal in one line, with the remedy where that is known."""
    refusal = " ".join(str(getattr(error, "explanation", None) or error).split())
    if "could not select device driver" in refusal or "nvidia-container-cli" in refusal:
        return (
            f"the engine cannot give a GPU ({refusal}); install the NVIDIA Container Toolkit and the driver, "
            "or measure with `kit launch cpu`"
        )
    if CDI_GPU in refusal:
        return f"{refusal}; describe the GPUs to Podman by `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"
    if "powercap" in refusal:
        return "the engine's host has no energy counters (/sys/devices/virtual/powercap); leave out --rapl"
    if "CPUs are not available" in refusal:
        return f"{refusal}; give CPUs that this host has with --cpuset"
    return refusal
