"""What a user's step returns: its arrays, where they lie, and how to wait for them.

No framework is imported here: what a step returns is of a framework that the program has imported.
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

# Where a result is that was copied to the host, or made there: it is done.
HOST = "host"
# TensorFlow: "/job:localhost/replica:0/task:0/device:GPU:0".
_TF_DEVICE = re.compile(r"device:([A-Za-z]+)")
CUDA = "gpu"
_KINDS = {"cuda": CUDA, "rocm": CUDA}
# By framework: its types of arrays, and the call that waits until a device has made what a step returned.
_ARRAYS = {"jax": ("Array",), "torch": ("Tensor",), "tensorflow": ("Tensor", "Variable")}
_WAITS: dict[str, Wait] = {
    "jax": lambda result: sys.modules["jax"].block_until_ready(result),  # noqa: PLW0108 - it may not be imported
    "torch": lambda _: sys.modules["torch"].cuda.synchronize(),
    "tensorflow": lambda _: sys.modules["tensorflow"].test.experimental.sync_devices(),
}


def leaves(result: Any) -> list[Any]:  # noqa: ANN401 - whatever a user's step returns
    """Return what a tree of dicts, lists and tuples holds; with JAX, of whatever else it knows as a tree."""
    jax = sys.modules.get("jax")
    return list(jax.tree.leaves(result) if jax is not None else _leaves(result))


def _leaves(result: Any) -> Iterator[Any]:  # noqa: ANN401
    if isinstance(result, Mapping | list | tuple):
        for part in result.values() if isinstance(result, Mapping) else result:
            yield from _leaves(part)
    elif result is not None:
        yield result


def shapes(result: Any) -> list[Shape]:  # noqa: ANN401
    """Return the shape of each leaf; () for what has none."""
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
    """Return the name of its type."""
    return "None" if value is None else type(value).__name__


def waits_for(result: Any) -> set[Wait]:  # noqa: ANN401
    """Return the calls that wait until devices have made the result; none where it was done when it was returned.

    Raises:
        TypeError: nothing here can wait for what the message names.
    """
    result_leaves = leaves(result)
    if not result_leaves:
        raise TypeError(kind_of(result))
    waits = set()
    for leaf in result_leaves:
        device, framework = device_of(leaf), _framework(leaf)
        if device == HOST or (device == "cpu" and framework != "jax"):
            continue  # on a CPU PyTorch and TensorFlow return from an operation when it is done; JAX does not
        if framework is None or (framework == "torch" and device != CUDA):
            raise TypeError(f"{kind_of(leaf)} on {device}" if device else kind_of(leaf))
        waits.add(_WAITS[framework])
    return waits


def floats(result: Any) -> NDArray[np.float32]:  # noqa: ANN401
    """Copy all floating-point leaves to the host; shape (elements,)."""
    arrays = [np.ravel(_on_host(leaf)) for leaf in leaves(result) if _is_float(leaf)]
    return np.concatenate([np.empty(0), *arrays]).astype(np.float32)


def _is_float(leaf: Any) -> bool:  # noqa: ANN401
    return isinstance(leaf, float) or (device_of(leaf) is not None and "float" in str(getattr(leaf, "dtype", "")))


def _on_host(leaf: Any) -> NDArray[np.float32]:  # noqa: ANN401
    return np.asarray(leaf.detach().float().cpu() if _framework(leaf) == "torch" else leaf, np.float32)


def _framework(leaf: Any) -> str | None:  # noqa: ANN401
    for name, types in _ARRAYS.items():
        if (module := sys.modules.get(name)) and isinstance(leaf, tuple(getattr(module, kind) for kind in types)):
            return name
    return None
