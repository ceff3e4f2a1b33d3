"""A unix socket that a command serves until this process ends."""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kit.errors import KitError

START_S = 60.0
LOOK_EVERY_S = 0.05


def served(command: Callable[[Path], list[str]], name: str, *, install: str, check: str) -> str:
    """Return the unix:// address of a socket, once the command that serves it has begun to.

    Args:
        command: of the socket's path.
        name: what is served; begins each message.
        install: the remedy where the command is not there.
        check: what must hold for it to serve.

    Raises:
        KitError: with the command's own last line.
    """
    folder = Path(tempfile.mkdtemp(prefix="steadykit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    here, errors = folder / "engine.sock", folder / "stderr"
    words = command(here)
    try:
        with errors.open("wb") as stderr:
            # In a folder of its own: Podman's monitors of containers leave a file there.
            process = subprocess.Popen(
                words,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
    except OSError as error:
        raise KitError(f"{name}: {words[0]} cannot be run ({error.strerror}); {install}") from None
    atexit.register(process.terminate)
    deadline = time.monotonic() + START_S
    while not answers(here):
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            last = (errors.read_text(errors="replace").strip().splitlines() or ["no answer"])[-1]
            raise KitError(f"{name}: {last}; {check}")
        time.sleep(LOOK_EVERY_S)
    return f"unix://{here}"


def answers(path: Path) -> bool:
    """Return whether something listens on a unix socket that we may use."""
    with socket.socket(socket.AF_UNIX) as connection:
        return not connection.connect_ex(str(path))
