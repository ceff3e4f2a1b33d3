"""Step times in memory: eight bytes a step, where a list of Python's integers takes five times as much.

A run keeps the steps of all its launches until their profile is written. `Launch.step_ns` is a list as it comes from a
worker, an array of the standard library's once its journal has it (two of them compare as lists do), and NumPy's as it
comes from a sidecar. Whoever computes with it takes ``numpy.asarray``, which copies neither array.
"""

from __future__ import annotations

from array import array

import numpy as np

from kit.profile.launch import Launch


def compact(launch: Launch) -> None:
    """Keep its steps, if it has any, in an array of int64."""
    if launch.step_ns is not None:
        launch.step_ns = array("q", launch.step_ns)  # type: ignore[assignment]


def spread(launch: Launch) -> None:
    """Keep its steps, if it has any, in a list: `msgspec.to_builtins` knows no arrays."""
    if launch.step_ns is not None:
        launch.step_ns = np.asarray(launch.step_ns, np.int64).tolist()
