"""A container's client as a process of its own: its input goes to the container, the container's output comes out.

runner ── pipe ──► this process ── the engine's socket ──► supervisor in the container ──► worker
       ◄─────────                ◄───────────────────────

It stands where `docker run --interactive` would, and needs no such command. When its input ends, or it dies, the
container's input ends, and the supervisor in it kills the worker.

Usage: ``python -m kit.engine.attached OPTIONS``, `ContainerOptions` as JSON.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress

import msgspec

from kit.engine.connection import EngineError, local_engine
from kit.engine.container import Container
from kit.engine.container_options import ContainerOptions
from kit.profile.fields import Reason, reason
from kit.worker.supervisor import ENDED

READ_B = 1 << 16
# What an engine adds to the number of a signal that ended a container's first process.
SIGNAL_BASE = 128


def main(options: str) -> int:
    """Run the container for as long as there is input."""
    try:
        with Container(local_engine(), msgspec.json.decode(options, type=ContainerOptions)) as container:
            why = _relay(container)
    except EngineError as error:
        why = reason("refused", message=str(error))
    if why is not None:
        # It begins as the supervisor's own last line does, as half an answer may stand before it.
        _write(1, ENDED + b', "reason": ' + msgspec.json.encode(why) + b"}\n")
    return 0


def _relay(container: Container) -> Reason | None:
    """Pass everything on; return how the container ended where its supervisor has not said so itself."""
    while True:
        ready = select.select([0, container.fileno()], [], [])[0]
        if 0 in ready:
            if not (data := os.read(0, READ_B)):
                return None
            with suppress(OSError):  # it has ended, as its output will show
                container.send(data)
        if container.fileno() in ready:
            output = container.receive(0)
            if output is None:
                break
            _write(2 if output.is_error else 1, output.data)
    ended = container.wait()
    if ended.out_of_memory:
        return reason("out_of_memory", signal="SIGKILL")
    if ended.status > SIGNAL_BASE:
        return reason("supervisor_ended", signal=signal.Signals(ended.status - SIGNAL_BASE).name)
    return reason("exit_code", exit_code=ended.status, message="") if ended.status else None


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
