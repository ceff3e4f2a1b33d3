"""A container whose output is passed on as it comes, and which an interrupt here interrupts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from kit.engine.contained import Contained, Ended
from kit.engine.options import ContainerOptions

if TYPE_CHECKING:
    import docker

LOOK_EVERY_S = 0.1


class Stop(Protocol):
    """Whether an interrupt has come."""

    requested: bool


def streamed(client: docker.DockerClient, options: ContainerOptions, stop: Stop) -> Ended:
    """Run a container, its output to ours and an interrupt to it; return how it ended.

    Raises:
        EngineError: the engine refuses, or goes away.
    """
    passed_on = False
    with Contained(client, options) as contained:
        while (outputs := contained.receive(LOOK_EVERY_S)) is not None:
            for output in outputs:
                stream = (sys.stderr if output.is_error else sys.stdout).buffer
                stream.write(output.data)
                stream.flush()
            if stop.requested and not passed_on:
                contained.end_input()
                passed_on = True
        return contained.wait()
