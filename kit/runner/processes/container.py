"""A member as a container of its variant's image; the container's first process stops and continues it."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kit.backends.catalog import ENVIRONMENT_PREFIXES
from kit.clock import now_ns
from kit.engine.connection import local_engine
from kit.engine.container import Container, with_devices
from kit.engine.container_options import Bind, ContainerOptions, for_kind
from kit.engine.image import need_image
from kit.engine.launch import data_bind
from kit.fingerprint.software import relevant_environment
from kit.profile.reason import Reason, reason
from kit.runner.processes.process import (
    MEMBER_ENVIRONMENT,
    SIGNAL_LIMIT_S,
    STDERR_TAIL_LINES,
    MemberRequest,
    devices_shown,
    exited_with,
    killed_by,
    thread_variables,
)
from kit.worker.supervisor import PAUSE, RESUME, STOPPED

if TYPE_CHECKING:
    import docker

# What the supervisor adds to the number of a signal that ended its command.
SIGNALLED = 128
# Libraries of this host, which the image has not.
OF_THE_HOST = ("LD_PRELOAD", "LD_LIBRARY_PATH")


class ContainerProcess:
    """See `kit.runner.processes.process.Process`.

    Raises:
        EngineError: no engine answers on this machine, or it refuses.
    """

    def __init__(self, request: MemberRequest) -> None:
        client = local_engine()
        device = request.prepare.programs[0].cell.device
        self._container = Container(client, with_devices(client, device, for_kind(client, _options(client, request))))
        self._unread = b""
        self._errors: deque[bytes] = deque(maxlen=STDERR_TAIL_LINES)
        self._error_line = b""
        self._ended = False

    def send(self, line: bytes) -> None:
        """Write a line to it."""
        self._container.send(line)

    def receive(self, wait_s: float) -> bytes | None:
        """Return what it has written."""
        if not self._unread:
            self._take(wait_s)
        data, self._unread = self._unread, b""
        return data or (b"" if self._ended else None)

    def pause(self) -> bool:
        """Ask the supervisor to stop it."""
        with suppress(OSError):  # it has ended, as its output will tell
            self._container.send(PAUSE)
        deadline_ns = now_ns() + int(SIGNAL_LIMIT_S * 1e9)
        while not self._unread.endswith(STOPPED):
            if self._ended:
                return False
            if now_ns() > deadline_ns:
                raise TimeoutError
            self._take(SIGNAL_LIMIT_S)
        self._unread = self._unread.removesuffix(STOPPED)
        return True

    def resume(self) -> None:
        """Ask the supervisor to continue it."""
        with suppress(OSError):  # it has ended, as the next command will find
            self._container.send(RESUME)

    def wait(self, limit_s: float) -> None:
        """Read on until its output has ended."""
        deadline_ns = now_ns() + int(limit_s * 1e9)
        while not self._ended and (left_ns := deadline_ns - now_ns()) > 0:
            self._take(left_ns / 1e9)

    def how_it_ended(self) -> Reason:
        """Return its exit status, or that the kernel killed it for want of memory."""
        if not self._ended:
            return reason("closed_its_pipes")
        ended = self._container.wait()
        if ended.out_of_memory:
            return reason("out_of_memory", signal="SIGKILL")
        if ended.status > SIGNALLED:
            return killed_by(ended.status - SIGNALLED)
        return exited_with(ended.status, self.stderr_tail())

    def stderr_tail(self) -> str:
        """Return the last lines of its standard error."""
        return b"\n".join((*self._errors, self._error_line)).decode(errors="replace").strip()

    def kill(self) -> None:
        """Remove the container."""
        self._container.close()

    def _take(self, wait_s: float) -> None:
        outputs = self._container.receive(wait_s)
        self._ended = outputs is None
        for output in outputs or ():
            if output.is_error:
                *whole, self._error_line = (self._error_line + output.data).split(b"\n")
                self._errors += whole
            else:
                self._unread += output.data


def _options(client: docker.DockerClient, request: MemberRequest) -> ContainerOptions:
    prepare, digest = request.prepare, request.variant.image_digest
    assert digest is not None
    cpus = ",".join(map(str, prepare.cpus))
    python = need_image(client, digest).python(request.backend)
    folders = {str(Path(source.path).parent) for source in prepare.sources.values()}
    data, data_variables = data_bind()
    # As a process beside it would have them: what decides a number is the same, but for the image.
    here = relevant_environment(os.environ, ENVIRONMENT_PREFIXES)
    here = {name: value for name, value in here.items() if name not in OF_THE_HOST}
    threads = thread_variables(prepare)
    shown = devices_shown(prepare, os.environ | request.variant.env)
    return ContainerOptions(
        image=digest,
        user=f"{os.getuid()}:{os.getgid()}",
        entrypoint=(python, "-m", "kit.worker.supervisor"),
        command=[python, "-m", "kit.worker", "--runner", "1", "--cpus", cpus],
        binds=(*data, *(Bind(folder, folder) for folder in sorted(folders))),
        environment=MEMBER_ENVIRONMENT | here | threads | shown | data_variables | request.variant.env,
        cpuset=cpus,
    )
