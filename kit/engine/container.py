"""One container from its creation to its end, its output passed on as it comes; the engine removes it when it ends.

create ─ watch its events ─ attach ─ start ─► output … ─► die (exit status; oom before it) ─► removed
"""

from __future__ import annotations

import select
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kit.engine.connection import EngineError
from kit.engine.container_options import CDI_GPU, ContainerOptions

if TYPE_CHECKING:
    import docker

READ_B = 1 << 16
# Docker Engine API, "Attach to a container": the stream, three zeros, the length of what follows.
HEADER = struct.Struct(">BxxxL")
STDERR = 2
LOOK_EVERY_S = 0.1
# A busy engine takes seconds to remove a container that has ended.
REMOVED_S = 60
# What marks a container as ours.
LABEL = "io.steadykit"


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
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        """Write to the container's input. OSError where it has gone."""
        self._raw.sendall(data)

    def receive(self, wait_s: float) -> list[Output] | None:
        """Return what has come within `wait_s`, maybe nothing; None: its output has ended."""
        if not select.select([self._raw], [], [], wait_s)[0]:
            return []
        if not (data := self._raw.recv(READ_B)):
            return None
        self._unread += data
        outputs = []
        while len(self._unread) >= HEADER.size:
            stream, length = HEADER.unpack_from(self._unread)
            end = HEADER.size + length
            if len(self._unread) < end:
                break
            outputs.append(Output(stream == STDERR, self._unread[HEADER.size : end]))
            self._unread = self._unread[end:]
        return outputs

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


def run_streamed(client: docker.DockerClient, options: ContainerOptions, is_stopping: Callable[[], bool]) -> Ended:
    """Run a container, its output to ours and an interrupt to it; return how it ended.

    Raises:
        EngineError: the engine refuses, or goes away.
    """
    with Container(client, options) as container:
        while (outputs := container.receive(LOOK_EVERY_S)) is not None:
            for output in outputs:
                stream = sys.stderr if output.is_error else sys.stdout
                stream.buffer.write(output.data)
                stream.flush()
            if is_stopping():
                container.end_input()
        return container.wait()


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
