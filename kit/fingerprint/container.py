"""Whether we run in a container, and what it allows. The host's memory is never the container's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kit.environment import IMAGE, IMAGE_DIGEST
from kit.profile.identity import Facts
from kit.sensors import cgroup


def container(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> Facts:
    """Return the facts `container.…`: look for the files that engines leave, and for the limits of our control group.

    Args:
        root: where /proc, /run, /sys and /.dockerenv are looked for.
        environment: KIT_IMAGE and KIT_IMAGE_DIGEST name the image we run in; no engine shows it inside.
    """
    if "KUBERNETES_SERVICE_HOST" in environment:
        engine = "kubernetes"
    elif (root / "run/.containerenv").exists():
        engine = "podman"
    elif (root / ".dockerenv").exists():
        engine = "docker"
    else:  # systemd's convention, kept by podman, lxc and systemd-nspawn
        engine = environment.get("container", "")
    return Facts(
        facts={
            "container.engine": engine or None,
            "container.cpu_limit": cgroup.cpu_limit(cgroup.locate("cpu", root)),
            "container.memory_limit_b": cgroup.memory_limit_b(cgroup.locate("memory", root)),
            "container.image": environment.get(IMAGE) or None,
            "container.image_digest": environment.get(IMAGE_DIGEST) or None,
        }
    )
