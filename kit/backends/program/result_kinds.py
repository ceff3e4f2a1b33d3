"""What a step may return besides dense arrays: results in several parts, and results whose work has not run.

    sparse, ragged, nested, indexed, masked ─► the dense arrays that hold their numbers: `dense_parts`
    generator, coroutine, future, function  ─► no result: how to run it in the step: `how_to_run`

No framework is imported: what a value is, is asked of those that the program has imported.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

# Of TensorFlow's results in several parts, those that an operation or a gradient returns.
TENSORFLOW_COMPOSITES = ("RaggedTensor", "SparseTensor", "IndexedSlices")


def dense_parts(leaf: Any) -> list[Any] | None:  # noqa: ANN401 - whatever a user's step returns
    """Return the dense arrays that hold the numbers of a result in several parts; None where it is no such result.

    Numbers below a mask are left out.
    """
    for parts_of in (_of_numpy, _of_torch, _of_tensorflow, _of_scipy):
        with suppress(Exception):  # a layout that its framework cannot take apart: it stays whole, and is not checked
            if (parts := parts_of(leaf)) is not None:
                return parts
    return None


def _of_numpy(leaf: Any) -> list[Any] | None:  # noqa: ANN401
    return [leaf.compressed()] if isinstance(leaf, np.ma.MaskedArray) else None


def _of_torch(leaf: Any) -> list[Any] | None:  # noqa: ANN401
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(leaf, torch.Tensor):
        return None
    parts: list[Any] | None = None
    if torch.masked.is_masked_tensor(leaf):
        parts = [leaf.get_data()[leaf.get_mask()]]
    elif leaf.is_nested:
        parts = list(leaf.unbind())
    elif leaf.is_quantized:
        parts = [leaf.dequantize()]
    elif leaf.layout is torch.sparse_coo:
        parts = [leaf.detach().coalesce().values()]
    elif leaf.layout is not torch.strided:
        parts = [leaf.to_dense() if leaf.is_mkldnn else leaf.values()]
    return parts


def _of_tensorflow(leaf: Any) -> list[Any] | None:  # noqa: ANN401
    tensorflow = sys.modules.get("tensorflow")
    kinds = tuple(getattr(tensorflow, kind) for kind in TENSORFLOW_COMPOSITES) if tensorflow is not None else ()
    if tensorflow is None or not isinstance(leaf, kinds):
        return None
    return list(tensorflow.nest.flatten(leaf, expand_composites=True))


def _of_scipy(leaf: Any) -> list[Any] | None:  # noqa: ANN401
    scipy = sys.modules.get("scipy.sparse")
    return [leaf.tocoo().data] if scipy is not None and scipy.issparse(leaf) else None


def shape_of(leaf: Any) -> tuple[int | None, ...]:  # noqa: ANN401
    """Return the shape of a leaf: () for a number, None for a size that differs within it or is not known."""
    shape: list[Any] = []
    with suppress(Exception):  # a nested tensor has no shape
        shape = list(getattr(leaf, "shape", ()))
        return tuple(None if size is None else int(size) for size in shape)
    with suppress(Exception):
        return (int(leaf.size(0)), *[None] * (leaf.dim() - 1))
    return tuple(size if isinstance(size, int) else None for size in shape)


def how_to_run(leaf: Any) -> str | None:  # noqa: ANN401
    """Return what to do in the step for a result whose work has not run; None for a result.

    A user's own `synchronize` may have run a generator, a coroutine or a future.
    """
    return next((remedy for is_lazy, remedy in _LAZY if is_lazy(leaf)), None)


def _has_not_run(leaf: Any, *names: str) -> bool:  # noqa: ANN401
    """Return whether a leaf has these methods, the first of which says that its work is not done."""
    methods = [getattr(leaf, name, None) for name in names]
    with suppress(Exception):  # of whatever class it is
        return all(map(callable, methods)) and not methods[0]()  # type: ignore[misc]
    return False


def _is_new(leaf: Any) -> bool:  # noqa: ANN401
    """Return whether a generator or a coroutine has not begun."""
    if inspect.isgenerator(leaf):
        return inspect.getgeneratorstate(leaf) == inspect.GEN_CREATED
    return inspect.iscoroutine(leaf) and inspect.getcoroutinestate(leaf) == inspect.CORO_CREATED


def _is_iterator(leaf: Any) -> bool:  # noqa: ANN401
    return _is_new(leaf) if inspect.isgenerator(leaf) else isinstance(leaf, Iterator)


def _is_awaited(leaf: Any) -> bool:  # noqa: ANN401
    if inspect.iscoroutine(leaf):
        return _is_new(leaf)
    return inspect.isasyncgen(leaf) or (inspect.isawaitable(leaf) and _has_not_run(leaf, "done"))


# Which results are lazy, and how a step runs them, in the order in which they are asked.
_LAZY: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (_is_iterator, "run it in the step, as list(…) does"),
    (_is_awaited, "run it in the step, as asyncio.run(…) does"),
    (lambda leaf: _has_not_run(leaf, "done", "result"), "return its result()"),
    (lambda leaf: _has_not_run(leaf, "ready", "get"), "return its get()"),
    (lambda leaf: hasattr(leaf, "__dask_graph__"), "return its compute()"),
    (lambda leaf: type(leaf).__name__ == "LazyFrame", "return its collect()"),
    (lambda leaf: callable(leaf) and not hasattr(leaf, "shape"), "call it in the step"),
)
