"""What a step returned: its arrays, where they are, and how to wait for them.

This file imports no framework. An array can only belong to one that the program has imported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Wait = Callable[[Any], None]  # takes what the step returned

# The device of NumPy arrays and numbers: they are complete.
HOST = "host"
CUDA = "gpu"
_KINDS = {"cuda": CUDA, "rocm": CUDA}
# TensorFlow writes "/job:localhost/replica:0/task:0/device:GPU:0".
_TF_DEVICE = re.compile(r"device:([A-Za-z]+)")
# The types of each framework's arrays, and the call that waits until a device has made what a step returned.
_ARRAYS = {"jax": ("Array",), "torch": ("Tensor",), "tensorflow": ("Tensor", "Variable")}
_WAITS: dict[str, Wait] = {
    "jax": lambda result: sys.modules["jax"].block_until_ready(result),  # noqa: PLW0108 - it may not be imported
    "torch": lambda _: sys.modules["torch"].cuda.synchronize(),
    "tensorflow": lambda _: sys.modules["tensorflow"].test.experimental.sync_devices(),
}


def leaves(result: Any) -> list[Any]:  # noqa: ANN401 - whatever a user's step returns
    """Return what a tree of dicts, lists and tuples holds; if JAX is imported, of every tree that JAX knows."""
    jax = sys.modules.get("jax")
    return list(jax.tree.leaves(result) if jax is not None else _leaves(result))


def _leaves(result: Any) -> Iterator[Any]:  # noqa: ANN401
    if isinstance(result, Mapping | list | tuple):
        for part in result.values() if isinstance(result, Mapping) else result:
            yield from _leaves(part)
    elif result is not None:
        yield result


def shapes(result: Any) -> list[Shape]:  # noqa: ANN401
    """Return the shape of each leaf; a leaf that has none counts as a number, ()."""
    return [tuple(int(size) for size in getattr(leaf, "shape", ())) for leaf in leaves(result)]


def device_of(leaf: Any) -> str | None:  # noqa: ANN401
    """Return "cpu", "gpu", "tpu" or another device's own name; HOST for NumPy and numbers; None for no array."""
    if isinstance(leaf, np.ndarray | np.generic | int | float):
        return HOST
    match _framework(leaf):
        case "jax":
            kind = next(iter(leaf.devices())).platform
        case "torch":
            kind = leaf.device.type
        case "tensorflow":
            named = _TF_DEVICE.search(leaf.device)
            kind = named[1].lower() if named else "cpu"
        case _:
            return None
    return _KINDS.get(kind, str(kind))


def kind_of(value: object) -> str:
    """Return the name of a value's type."""
    return "None" if value is None else type(value).__name__


def waits_for(result: Any) -> set[Wait]:  # noqa: ANN401
    """Return the calls that wait until devices have made the result; none if it is already complete.

    Raises:
        TypeError: Steadykit cannot wait for what the message names.
    """
    result_leaves, waits = leaves(result), set()
    if not result_leaves:
        raise TypeError(kind_of(result))
    for leaf in result_leaves:
        device, framework = device_of(leaf), _framework(leaf)
        if device == HOST or (device == "cpu" and framework != "jax"):
            continue  # on a CPU an operation of PyTorch and TensorFlow returns when it is done; one of JAX does not
        if framework is None or (framework == "torch" and device != CUDA):
            raise TypeError(f"{kind_of(leaf)} on {device}" if device else kind_of(leaf))
        waits.add(_WAITS[framework])
    return waits


def floats(result: Any) -> NDArray[np.float32]:  # noqa: ANN401
    """Copy all floating-point leaves to the host; shape (elements,)."""
    arrays = [np.empty(0, np.float32)]
    for leaf in leaves(result):
        is_array = device_of(leaf) is not None and "float" in str(getattr(leaf, "dtype", ""))
        if is_array or isinstance(leaf, float):
            on_host = leaf.detach().float().cpu() if _framework(leaf) == "torch" else leaf
            arrays.append(np.ravel(np.asarray(on_host, np.float32)))
    return np.concatenate(arrays)


def _framework(leaf: Any) -> str | None:  # noqa: ANN401
    for name, types in _ARRAYS.items():
        if (module := sys.modules.get(name)) and isinstance(leaf, tuple(getattr(module, kind) for kind in types)):
            return name
    return None
