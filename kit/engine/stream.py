"""A container whose output is passed on as it comes, and which an interrupt here interrupts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from kit.engine.container import Container, Ended
from kit.engine.options import ContainerOptions

if TYPE_CHECKING:
    import docker

LOOK_EVERY_S = 0.1


class Stop(Protocol):
    """Whether an interrupt has come."""

    requested: bool


def run_streamed(client: docker.DockerClient, options: ContainerOptions, stop: Stop) -> Ended:
    """Run a container, its output to ours and an interrupt to it; return how it ended.

    Raises:
        EngineError: the engine refuses, or goes away.
    """
    passed_on = False
    with Container(client, options) as container:
        while (outputs := container.receive(LOOK_EVERY_S)) is not None:
            for output in outputs:
                stream = (sys.stderr if output.is_error else sys.stdout).buffer
                stream.write(output.data)
                stream.flush()
            if stop.requested and not passed_on:
                container.end_input()
                passed_on = True
        return container.wait()
