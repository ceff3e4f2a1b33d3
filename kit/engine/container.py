"""One container: what it may do and see, and its life from its creation to its end.

It may do the least that a measurement needs, said once for the SDK and for the command line. It is hardened: any user,
nothing writable but what is mounted so and a /tmp in memory, no network, no capability. A rootless engine's root is the
user whose engine it is, and no more; its CPUs are set by affinity, as it may lack the controller.

create ─ watch its events ─ attach ─ start ─► output … ─► die (exit status; oom before it) ─► removed by the engine

As a program, this file is a container's client: its input goes to the container, the container's output comes out.

runner ── pipe ──► this process ── the engine's socket ──► supervisor in the container ──► worker
       ◄─────────                ◄───────────────────────

It stands where `docker run --interactive` would, and needs no such command. When its input ends, or it dies, the
container's input ends, and the supervisor in it kills the worker.

Usage: ``python -m kit.engine.container OPTIONS``, `ContainerOptions` as JSON.
"""

from __future__ import annotations

import csv
import os
import select
import shlex
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from kit.devices import DEVICES
from kit.engine.connection import EngineError, local_engine, podman_version
from kit.profile.fields import Reason, reason
from kit.worker.supervisor import ENDED

if TYPE_CHECKING:
    import docker

# Podman's --init needs a package of its own; without it only a signal in the first second goes unheard.
RUN = {"docker": "docker run --rm --init", "podman": "podman run --rm"}
# /tmp and /dev/shm take memory only as it is used. torch.compile runs what it has built there, hence exec.
TMP = "rw,exec,nosuid,nodev,size=2g,mode=1777"
SHM = "1g"
# A GPU's name, before = and its number, by the Container Device Interface: Podman has no other.
CDI_GPU = "nvidia.com/gpu"
# Every image of ours has it.
ENTRYPOINT = "kit-entrypoint"
# What Podman itself answers, of version 4 and later: its answer to Docker's question is the host's, not this user's.
PODMAN_INFO = "/v4.0.0/libpod/info"
STDERR = 2
# A busy engine takes seconds to remove a container that has ended.
REMOVED_S = 60
# What marks a container as ours.
LABEL = "io.steadykit"
# A probe takes a second where the engine is at rest.
ASK_TIMEOUT_S = 60.0
# An older Podman would silently leave out a request for devices.
CDI_PODMAN_MIN = (5, 4)
READ_B = 1 << 16
# What an engine adds to the number of a signal that ended a container's first process.
SIGNAL_BASE = 128


class Bind(NamedTuple):
    """A folder of the host, or a volume of the engine where `source` is a plain name."""

    source: str
    inside: str
    writable: bool = False

    @property
    def kind(self) -> str:
        """The type of the mount."""
        return "bind" if self.source.startswith("/") else "volume"

    def as_words(self) -> str:
        """Return the value of `--mount`, which both engines read as a line of CSV."""
        line = StringIO()
        access = [] if self.writable else ["readonly"]
        fields = [f"type={self.kind}", f"source={self.source}", f"target={self.inside}", *access]
        csv.writer(line, lineterminator="").writerow(fields)
        return line.getvalue()


class ContainerOptions(NamedTuple):
    """One container."""

    image: str
    command: list[str]
    entrypoint: tuple[str, ...] | None = None  # null: the image's
    user: str | None = None  # uid:gid; null: the image's
    binds: tuple[Bind, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    workdir: str | None = None
    cpuset: str | None = None
    memory: str | None = None
    gpus: str | None = None  # "all", or "0,1"
    devices: tuple[str, ...] = ()
    unlimited_memlock: bool = False
    engine: str = "docker"  # or podman
    is_rootless: bool = False

    def for_engine(self) -> dict[str, Any]:
        """Return the arguments of `containers.create`."""
        entrypoint = [*self._affinity, *self.entrypoint] if self.entrypoint else None
        settings = {name: value for name, value, _ in self._settings()}
        return {"image": self.image, "command": self.command, "entrypoint": entrypoint, **settings}

    def as_line(self, more: str = "") -> str:
        """Return the command line that does the same; `more` are further options, for the shell as they are."""
        entrypoint, *pinned = [*self._affinity, ENTRYPOINT] if self._affinity else [""]
        words = [word for _, _, words in self._settings() for word in words] + _option("--entrypoint", entrypoint)
        parts = [RUN[self.engine], shlex.join(words), more, shlex.join([self.image, *pinned, *self.command])]
        return " ".join(part for part in parts if part)

    @property
    def _affinity(self) -> list[str]:
        """What starts a command on the CPUs of the cpuset, where the engine is not asked to."""
        return ["taskset", "-c", self.cpuset] if self.is_rootless and self.cpuset else []

    def _settings(self) -> list[tuple[str, Any, list[str]]]:
        """Return each setting: its name and value in the SDK, and the words of the command line."""
        from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

        user = "0:0" if self.is_rootless and self.user else self.user
        cpuset = None if self._affinity else self.cpuset
        mounts = [bind.as_words() for bind in self.binds]
        numbers = self.gpus.split(",") if self.gpus else []
        cdi_gpus = [f"{CDI_GPU}={number}" for number in numbers]
        gpus: dict[str, Any]
        if self.engine == "podman":
            gpus, gpu_words = {"driver": "cdi", "device_ids": cdi_gpus}, _option("--device", *cdi_gpus)
        elif self.gpus == "all":
            gpus, gpu_words = {"capabilities": [["gpu"]], "count": -1}, ["--gpus", "all"]
        else:
            gpus = {"capabilities": [["gpu"]], "device_ids": numbers}
            gpu_words = ["--gpus", f'"device={self.gpus}"']
        return [
            ("read_only", True, ["--read-only"]),
            ("tmpfs", {"/tmp": TMP}, ["--tmpfs", f"/tmp:{TMP}"]),
            ("shm_size", SHM, ["--shm-size", SHM]),
            # A worker's answers would be written to disk beside the next one's steps.
            ("log_config", LogConfig(type="none"), ["--log-driver", "none"]),
            ("network_mode", "none", ["--network", "none"]),
            ("cap_drop", ["ALL"], ["--cap-drop", "ALL"]),
            ("security_opt", ["no-new-privileges"], ["--security-opt", "no-new-privileges"]),
            ("user", user, _option("--user", user)),
            ("cpuset_cpus", cpuset, _option("--cpuset-cpus", cpuset)),
            # No swap: a cell that does not fit is to fail, not to page.
            ("mem_limit", self.memory, _option("--memory", self.memory)),
            ("memswap_limit", self.memory, _option("--memory-swap", self.memory)),
            ("working_dir", self.workdir, _option("--workdir", self.workdir)),
            ("device_requests", [DeviceRequest(**gpus)] if numbers else None, gpu_words if numbers else []),
            (
                "mounts",
                [Mount(bind.inside, bind.source, type=bind.kind, read_only=not bind.writable) for bind in self.binds],
                _option("--mount", *mounts),
            ),
            ("devices", [f"{device}:{device}:rwm" for device in self.devices], _option("--device", *self.devices)),
            (
                "ulimits",
                [Ulimit(name="memlock", soft=-1, hard=-1)] if self.unlimited_memlock else None,
                ["--ulimit", "memlock=-1"] if self.unlimited_memlock else [],
            ),
            (
                "environment",
                dict(self.environment),
                _option("--env", *(f"{name}={value}" for name, value in self.environment.items())),
            ),
        ]


def _option(name: str, *values: str | None) -> list[str]:
    """Return the option with each value, none for an empty one."""
    return [word for value in values if value for word in (name, value)]


def for_kind(client: docker.DockerClient, options: ContainerOptions) -> ContainerOptions:
    """Return the options as this engine is to be asked for them: Docker or Podman, root's or a user's own.

    Raises:
        EngineError: a memory limit, which the engine of an unprivileged user would silently leave out.
    """
    info, is_podman = client.info(), podman_version(client) is not None
    is_rootless = bool(info.get("Rootless")) or "name=rootless" in (info.get("SecurityOptions") or ())
    if options.memory and is_rootless:
        limits_memory = bool(info["MemoryLimit"])
        if is_podman:
            host = client.api.get(client.api.base_url + PODMAN_INFO).json()["host"]
            limits_memory = "memory" in host["cgroupControllers"]
        if not limits_memory:
            raise EngineError(
                f"--memory {options.memory}: this rootless engine has no memory controller; leave it out, or let root "
                "add Delegate=memory to the unit user@.service (control groups version 2)"
            )
    return options._replace(engine="podman" if is_podman else "docker", is_rootless=is_rootless)


class Output(NamedTuple):
    """Some bytes of a container's output."""

    is_error: bool
    data: bytes


class ContainerEnd(NamedTuple):
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

    def wait(self) -> ContainerEnd:
        """Return how it ended, once its output has.

        Raises:
            EngineError: the engine has gone.
        """
        out_of_memory = False
        try:
            for event in self._events:
                if event["Action"] == "die":
                    return ContainerEnd(int(event["Actor"]["Attributes"]["exitCode"]), out_of_memory)
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


def main(options: str) -> int:
    """Run the container for as long as there is input."""
    try:
        with Container(local_engine(), msgspec.json.decode(options, type=ContainerOptions)) as container:
            why = _relay(container)
    except EngineError as error:
        why = reason("refused", message=str(error))
    if why is not None:
        # It begins as the supervisor's own last line does, as half an answer may stand before it.
        _write(1, ENDED + b', "reason": ' + msgspec.json.encode(why) + b"}\n")
    return 0


def _relay(container: Container) -> Reason | None:
    """Pass everything on; return how the container ended where its supervisor has not said so itself."""
    while True:
        ready = select.select([0, container.fileno()], [], [])[0]
        if 0 in ready:
            if not (data := os.read(0, READ_B)):
                return None
            with suppress(OSError):  # it has ended, as its output will show
                container.send(data)
        if container.fileno() in ready:
            output = container.receive(0)
            if output is None:
                break
            _write(2 if output.is_error else 1, output.data)
    ended = container.wait()
    if ended.out_of_memory:
        return reason("out_of_memory", signal="SIGKILL")
    if ended.status > SIGNAL_BASE:
        return reason("supervisor_ended", signal=signal.Signals(ended.status - SIGNAL_BASE).name)
    return reason("exit_code", exit_code=ended.status, message="") if ended.status else None


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
