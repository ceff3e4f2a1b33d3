"""What a container may do and see: the least that a measurement needs, for the engine's API and for its command line.

Hardened: any user, nothing writable but what is mounted so and a /tmp in memory, no network, no capability. A rootless
engine's root is the user whose engine it is, and no more; its CPUs are set by affinity, as it may lack the controller.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

# Podman's --init needs a package of its own; without it only a signal in the first second goes unheard.
RUN = {"docker": "docker run --rm --init", "podman": "podman run --rm"}
# Of /tmp and of /dev/shm; taken only as it is used. torch.compile runs what it has built there, hence exec.
TMP = "rw,exec,nosuid,nodev,size=2g,mode=1777"
SHM = "1g"
HARDENED_LINE = (
    f"--read-only --tmpfs /tmp:{TMP} --shm-size {SHM} --log-driver none --network none "
    "--cap-drop ALL --security-opt no-new-privileges"
)


# A GPU's name, before = and its number, by the Container Device Interface: Podman has no other.
CDI_GPU = "nvidia.com/gpu"
# Of every image of ours.
ENTRYPOINT = "kit-entrypoint"


class Bind(NamedTuple):
    """A folder of the host, or a volume of the engine where `source` is a plain name."""

    source: str
    inside: str
    writable: bool = False

    @property
    def kind(self) -> str:
        """The type of the mount."""
        return "bind" if self.source.startswith("/") else "volume"


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

    @property
    def affinity(self) -> list[str]:
        """What starts a command on the CPUs of the cpuset, where the engine is not asked to."""
        return ["taskset", "-c", self.cpuset] if self.is_rootless and self.cpuset else []

    @property
    def inside_user(self) -> str | None:
        """The user inside who is `user` outside."""
        return "0:0" if self.is_rootless and self.user else self.user

    @property
    def cdi_gpus(self) -> list[str]:
        """The GPUs, as Podman has them."""
        return [f"{CDI_GPU}={gpu}" for gpu in (self.gpus or "").split(",") if gpu]

    def for_engine(self) -> dict[str, Any]:
        """Return the arguments of `containers.create`."""
        from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

        gpus: dict[str, Any] = {"capabilities": [["gpu"]], "device_ids": (self.gpus or "").split(",")}
        if self.gpus == "all":
            gpus = {"capabilities": [["gpu"]], "count": -1}
        if self.engine == "podman":
            gpus = {"driver": "cdi", "device_ids": self.cdi_gpus}
        return {
            "image": self.image,
            "command": self.command,
            "entrypoint": [*self.affinity, *self.entrypoint] if self.entrypoint else None,
            "user": self.inside_user,
            "mounts": [
                Mount(bind.inside, bind.source, type=bind.kind, read_only=not bind.writable) for bind in self.binds
            ],
            "environment": dict(self.environment),
            "working_dir": self.workdir,
            "cpuset_cpus": None if self.affinity else self.cpuset,
            "mem_limit": self.memory,
            # No swap: a cell that does not fit is to fail, not to page.
            "memswap_limit": self.memory,
            # A member's answers would be written to disk beside the next one's steps.
            "log_config": LogConfig(type="none"),
            "device_requests": [DeviceRequest(**gpus)] if self.gpus else None,
            "devices": [f"{device}:{device}:rwm" for device in self.devices],
            "ulimits": [Ulimit(name="memlock", soft=-1, hard=-1)] if self.unlimited_memlock else None,
            "read_only": True,
            "tmpfs": {"/tmp": TMP},
            "shm_size": SHM,
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
        }

    def as_line(self, more: str = "") -> str:
        """Return the command line that does the same; `more` are further options, for the shell as they are."""
        entrypoint, *pinned = [*self.affinity, ENTRYPOINT] if self.affinity else [None]
        options = [
            ("--entrypoint", entrypoint),
            ("--user", self.inside_user),
            ("--cpuset-cpus", None if self.affinity else self.cpuset),
            ("--memory", self.memory),
            ("--memory-swap", self.memory),
            ("--workdir", self.workdir),
        ]
        if self.engine == "podman":
            options += [("--device", gpu) for gpu in self.cdi_gpus]
        else:
            options.append(("--gpus", self.gpus if self.gpus in (None, "all") else f'"device={self.gpus}"'))
        for bind in self.binds:
            mount = f"type={bind.kind},source={bind.source},target={bind.inside}"
            options.append(("--mount", mount if bind.writable else f"{mount},readonly"))
        options += [("--device", device) for device in self.devices]
        options += [("--ulimit", "memlock=-1")] if self.unlimited_memlock else []
        options += [("--env", f"{name}={value}") for name, value in self.environment.items()]
        words = [word for option, value in options if value for word in (option, value)]
        program = shlex.join([self.image, *pinned, *self.command])
        parts = (RUN[self.engine], HARDENED_LINE, shlex.join(words), more, program)
        return " ".join(part for part in parts if part)
