"""Podman's socket, on which it answers Docker's API: the one that is there, else one served for us."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from kit.engine.served import answers, served

SOCKET = "podman/podman.sock"
# Without a connection for so long it ends by itself: where this process is killed. Containers do not end with it.
IDLE_S = 600


@functools.cache
def podman_socket() -> str:
    """Return the unix:// address of this user's Podman, the system's, or a service's that ends with this process.

    Raises:
        KitError: there is no `podman`, or its service does not start.
    """
    for folder in (os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}", "/run"):
        if answers(path := Path(folder, SOCKET)):
            return f"unix://{path}"
    return served(
        lambda here: ["podman", "system", "service", f"--time={IDLE_S}", f"unix://{here}"],
        "Podman",
        install="install it (Debian: podman and uidmap), or use Docker",
        check="`podman info` must succeed",
    )
