"""What a container may do and see: the least that a measurement needs, once for the SDK and for the command line.

Hardened: any user, nothing writable but what is mounted so and a /tmp in memory, no network, no capability. A rootless
engine's root is the user whose engine it is, and no more; its CPUs are set by affinity, as it may lack the controller.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Mapping
from io import StringIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kit.engine.connection import EngineError, podman_version

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
