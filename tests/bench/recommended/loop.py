"""What a recommended loop gives the benchmark."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Loop(NamedTuple):
    step: Callable[[Any], Any]  # takes a resident batch, gives the loss or the network's output
    wait: Callable[[Any], Any]  # waits for what `step` gave
    parameters: int  # that are trained: as many as the workload's weights
