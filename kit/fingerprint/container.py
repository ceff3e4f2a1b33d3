"""Whether this process runs in a container, and the container's limits, which are not the host's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kit.environment import IMAGE, IMAGE_DIGEST
from kit.profile.facts import Facts
from kit.sensors import cgroup


def container(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> Facts:
    """Return the facts ``container.…``, from files that engines leave and the limits of this control group.

    Args:
        root: where /proc, /run, /sys and /.dockerenv are.
        environment: KIT_IMAGE and KIT_IMAGE_DIGEST name the image, which no engine shows inside.
    """
    if "KUBERNETES_SERVICE_HOST" in environment:
        engine = "kubernetes"
    elif (root / "run/.containerenv").exists():
        engine = "podman"
    elif (root / ".dockerenv").exists():
        engine = "docker"
    else:  # systemd's convention, which podman, lxc and systemd-nspawn follow
        engine = environment.get("container", "")
    return Facts(
        facts={
            "container.engine": engine or None,
            "container.cpu_limit": cgroup.cpu_limit(root),
            "container.memory_limit_b": cgroup.memory_limit_b(root),
            "container.image": environment.get(IMAGE) or None,
            "container.image_digest": environment.get(IMAGE_DIGEST) or None,
        }
    )
