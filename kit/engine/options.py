"""What a container may do and see: the least that a measurement needs, for the engine's API and as a `docker run` line.

Hardened: any user, nothing writable but what is mounted so and a /tmp in memory, no network, no capability.
"""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from docker.types import DeviceRequest, Mount

# Of /tmp and of /dev/shm; taken only as it is used. torch.compile runs what it has built there, hence exec.
TMP = "rw,exec,nosuid,nodev,size=2g,mode=1777"
SHM = "1g"


class Bind(NamedTuple):
    """A folder of the host, or a volume of the engine where `source` is a plain name."""

    source: str
    inside: PurePosixPath
    writable: bool = False


class ContainerOptions(NamedTuple):
    """One container."""

    image: str
    command: list[str]
    entrypoint: tuple[str, ...] | None = None  # null: the image's
    user: str | None = None  # uid:gid; null: the image's
    binds: tuple[Bind, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    workdir: str | None = None
    cpuset: str | None = None
    memory: str | None = None
    gpus: str | None = None  # "all", or "0,1"
    devices: tuple[str, ...] = ()
    unlimited_memlock: bool = False

    def for_engine(self) -> dict[str, Any]:
        """Return the arguments of `containers.create`."""
        from docker.types import LogConfig, Ulimit

        return {
            "image": self.image,
            "command": self.command,
            "entrypoint": list(self.entrypoint) if self.entrypoint else None,
            "user": self.user,
            "mounts": [_mount(bind) for bind in self.binds],
            "environment": dict(self.environment),
            "working_dir": self.workdir,
            "cpuset_cpus": self.cpuset,
            "mem_limit": self.memory,
            # No swap: a cell that does not fit is to fail, not to page.
            "memswap_limit": self.memory,
            # A member's answers would be written to disk beside the next one's steps.
            "log_config": LogConfig(type="none"),
            "device_requests": [_gpus(self.gpus)] if self.gpus else None,
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
        """Return the `docker run` line that does the same; `more` are further options, for the shell as they are."""
        words = [
            "docker",
            "run",
            "--rm",
            "--init",
            "--read-only",
            "--tmpfs",
            f"/tmp:{TMP}",
            "--shm-size",
            SHM,
            "--log-driver",
            "none",
        ]
        words += ["--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        for option, value in (
            ("--user", self.user), ("--cpuset-cpus", self.cpuset), ("--memory", self.memory),
            ("--memory-swap", self.memory),
            ("--gpus", self.gpus if self.gpus in (None, "all") else f'"device={self.gpus}"'),
            ("--workdir", self.workdir),
        ):  # fmt: skip
            words += [option, value] if value else []
        for bind in self.binds:
            kind = "bind" if bind.source.startswith("/") else "volume"
            mount = f"type={kind},source={bind.source},target={bind.inside}"
            words += ["--mount", mount if bind.writable else f"{mount},readonly"]
        for device in self.devices:
            words += ["--device", device]
        words += ["--ulimit", "memlock=-1"] if self.unlimited_memlock else []
        for name, value in self.environment:
            words += ["--env", f"{name}={value}"]
        return " ".join([shlex.join(words), *([more] if more else []), shlex.join([self.image, *self.command])])


def _mount(bind: Bind) -> Mount:
    from docker.types import Mount

    kind = "bind" if bind.source.startswith("/") else "volume"
    return Mount(str(bind.inside), bind.source, type=kind, read_only=not bind.writable)


def _gpus(which: str) -> DeviceRequest:
    from docker.types import DeviceRequest

    if which == "all":
        return DeviceRequest(count=-1, capabilities=[["gpu"]])
    return DeviceRequest(device_ids=which.split(","), capabilities=[["gpu"]])
