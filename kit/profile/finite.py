"""JSON has no NaN and no infinity: they would be written as null, and not be read back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from kit.profile.launch import Failure, Launch


def not_finite(value: Any, path: str = "$") -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Paths of the floats that are not finite, as ``$.parity.losses[3] is nan``."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield f"{path} is {value}"
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from not_finite(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if not isinstance(inner, int):
                yield from not_finite(inner, f"{path}[{index}]")


def fail_if_not_finite(launch: Launch, blank: Launch) -> None:
    """Turn a launch with a number that is not finite into a failed one that keeps everything else.

    Args:
        launch: changed in place; the fields that hold such a number become those of `blank`.
        blank: the same launch, nothing measured.
    """
    for name, value in msgspec.to_builtins(launch).items():
        found = next(not_finite(value, name), None)
        if found is None:
            continue
        setattr(launch, name, getattr(blank, name))
        if launch.failure is None:
            last = launch.phases[-1].name if launch.phases else None
            launch.failure = Failure(phase=last, reason=f"{found}: a launch is kept only with finite numbers")
