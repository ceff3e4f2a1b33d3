"""Whether we run in a container, and what it allows. The host's memory is never the container's."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from kit.profile.identity import Container
from kit.sensors import cgroup

# Names that engines leave in the path of a control group, where it is visible.
CGROUP_MARKS = {
    "kubepods": "kubernetes",
    "docker": "docker",
    "libpod": "podman",
    "containerd": "containerd",
    "lxc": "lxc",
}


def container(
    root: Path = Path("/"), environment: Mapping[str, str] = os.environ, cgroup_root: Path | None = None
) -> Container:
    """Look for the marks that engines leave, and for the limits of our control group.

    Args:
        root: where /proc, /run and /.dockerenv are looked for.
        environment: KIT_IMAGE names the image we run in; no engine tells it to those inside.
        cgroup_root: where control groups are mounted.
    """
    mounted = cgroup_root or root / "sys/fs/cgroup"
    cpu = cgroup.locate("cpu", "self", mounted, root / "proc")
    memory = cgroup.locate("memory", "self", mounted, root / "proc")
    return Container(
        engine=engine(root, environment),
        cpu_limit=None if cpu is None else cgroup.cpu_limit(cpu),
        memory_limit_b=None if memory is None else cgroup.memory_limit_b(memory),
        image=environment.get("KIT_IMAGE") or _podman_image(root),
    )


def engine(root: Path, environment: Mapping[str, str]) -> str | None:
    """Name of the container engine; None: no mark of one was seen."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    named = environment.get("container")  # systemd's convention, kept by podman, lxc and systemd-nspawn
    if named:
        return named
    text = _read(root / "proc/self/cgroup")
    return next((name for mark, name in CGROUP_MARKS.items() if re.search(rf"[/:]{mark}(?![a-z])", text)), None)


def _podman_image(root: Path) -> str | None:
    found = re.search(r'^image="(.+)"$', _read(root / "run/.containerenv"), re.MULTILINE)
    return found.group(1) if found else None


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
