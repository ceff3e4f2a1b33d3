"""An engine's socket on another host, forwarded to a socket here by the system's ssh, with its keys and settings."""

from __future__ import annotations

import functools
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from weakref import finalize

from kit.errors import KitError

SOCKET = "/var/run/docker.sock"
# Enough to type a passphrase.
CONNECT_S = 60.0
LOOK_EVERY_S = 0.05


class TunnelError(KitError):
    """The host was not reached."""


@functools.cache
def forwarded(url: str) -> str:
    """Return the unix:// address here of the engine at ssh://[user@]host[:port][/path/of/its.sock].

    The forwarding ends with this process.

    Raises:
        TunnelError: with ssh's own last line.
    """
    there = urlsplit(url)
    folder = tempfile.TemporaryDirectory(prefix="steadykit-ssh-")
    here, said = Path(folder.name, "engine.sock"), Path(folder.name, "stderr")
    destination = f"{there.username}@{there.hostname}" if there.username else str(there.hostname)
    command = ["ssh", "-NT", "-o", "ExitOnForwardFailure=yes", "-L", f"{here}:{there.path or SOCKET}"]
    command += ["-p", str(there.port)] if there.port else []
    try:
        with said.open("wb") as errors:
            process = subprocess.Popen(
                [*command, "--", destination], stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )
    except OSError as error:
        raise TunnelError(f"{url}: ssh cannot be run ({error.strerror}); install an ssh client") from None
    finalize(folder, _end, process)
    deadline = time.monotonic() + CONNECT_S
    while not here.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            last = (said.read_text(errors="replace").strip().splitlines() or ["no answer"])[-1]
            raise TunnelError(f"{url}: {last}; `ssh {destination}` must reach it without a question")
        time.sleep(LOOK_EVERY_S)
    _kept.append(folder)
    return f"unix://{here}"


# Their sockets are used until this process ends.
_kept: list[tempfile.TemporaryDirectory[str]] = []


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(1.0)
