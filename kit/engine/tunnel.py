"""An engine's socket on another host, forwarded to a socket here by the system's ssh, with its keys and settings."""

from __future__ import annotations

import functools
from urllib.parse import urlsplit

from kit.engine.served import served

SOCKET = "/var/run/docker.sock"
# No question can be asked, as the output is ours; a connection that has died is noticed within a minute.
OPTIONS = ("BatchMode=yes", "ExitOnForwardFailure=yes", "ServerAliveInterval=15", "ServerAliveCountMax=4")
# What runs there; it ends when its input does, and the connection with it: also where this process is killed.
HOLD = "cat"


@functools.cache
def forwarded(url: str) -> str:
    """Return the unix:// address here of the engine at ssh://[user@]host[:port][/path/of/its.sock].

    There is one for each URL, and it ends with this process.

    Raises:
        KitError: with ssh's own last line.
    """
    there = urlsplit(url)
    destination = f"{there.username}@{there.hostname}" if there.username else str(there.hostname)
    port = ["-p", str(there.port)] if there.port else []
    options = [f"-o{option}" for option in OPTIONS]
    return served(
        lambda here: ["ssh", "-T", *options, "-L", f"{here}:{there.path or SOCKET}", *port, "--", destination, HOLD],
        url,
        install="install an ssh client",
        check=f"`ssh -o BatchMode=yes {destination} true` must succeed",
    )
