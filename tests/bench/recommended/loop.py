"""What a recommended loop gives the benchmark."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Loop(NamedTuple):
    step: Callable[[Any], Any]  # takes a resident batch, gives the loss or the logits
    wait: Callable[[Any], Any]  # waits for what `step` gave
