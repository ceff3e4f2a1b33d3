"""An engine's socket on another host, forwarded to a socket here by the system's ssh, with its keys and settings."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from kit.errors import KitError

SOCKET = "/var/run/docker.sock"
CONNECT_S = 60.0
LOOK_EVERY_S = 0.05
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
    folder = Path(tempfile.mkdtemp(prefix="steadykit-ssh-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    here, errors = folder / "engine.sock", folder / "stderr"
    command = ["ssh", "-T", *(f"-o{option}" for option in OPTIONS), "-L", f"{here}:{there.path or SOCKET}"]
    command += [*(["-p", str(there.port)] if there.port else []), "--", destination, HOLD]
    try:
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
            )
    except OSError as error:
        raise KitError(f"{url}: ssh cannot be run ({error.strerror}); install an ssh client") from None
    atexit.register(process.terminate)
    deadline = time.monotonic() + CONNECT_S
    while not here.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            last = (errors.read_text(errors="replace").strip().splitlines() or ["no answer"])[-1]
            raise KitError(f"{url}: {last}; `ssh -o BatchMode=yes {destination} true` must succeed")
        time.sleep(LOOK_EVERY_S)
    return f"unix://{here}"
