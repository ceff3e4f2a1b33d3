"""The arrays that a user's step holds: those in the variables that its functions name, and in what these hold.

    step ─ closure, globals that its code names ─┬─ function, partial, method ─► what they hold
                                                 ├─ dict, list, tuple, object of the user's ─► what is in it
                                                 ├─ module, optimizer, tree of a framework ─► what it lists
                                                 └─ array

No function of the user's is called for it, and no framework is imported. Batches may be among the arrays.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import FunctionType, MethodType, ModuleType
from typing import Any

# A step holds a few objects. Of what holds more the rest is left out: that many are looked at in some 10 ms.
OBJECTS_MOST = 10_000
ARRAYS = {"torch": ("Tensor",), "jax": ("Array",), "tensorflow": ("Tensor", "Variable"), "numpy": ("ndarray",)}


def arrays_held_by(step: Any, libraries: tuple[str, ...]) -> Iterator[Any]:  # noqa: ANN401 - whatever can be called
    """Yield each array once.

    Args:
        step: of the user.
        libraries: folders of code that is not the user's: its variables are not looked into.
    """
    queue, seen = [step], dict[int, object]()  # an id is an object's for as long as it is kept
    while queue and len(seen) < OBJECTS_MOST:
        held = queue.pop()
        if id(held) in seen or isinstance(held, ModuleType | type | str | bytes | int | float):
            continue
        seen[id(held)] = held
        if _is(held, ARRAYS):
            yield held
        else:
            with suppress(Exception):  # of an object of the user's, which then stays closed
                queue += islice(_parts(held, libraries), OBJECTS_MOST)


def _parts(held: Any, libraries: tuple[str, ...]) -> Iterable[Any]:  # noqa: ANN401, PLR0911 - one a kind of object
    if isinstance(held, FunctionType):
        # `functools.wraps` names what it wraps, and so do torch.compile and jax.jit.
        wrapped: list[Any] = [held.__dict__.get("__wrapped__")]
        return wrapped if held.__code__.co_filename.startswith(libraries) else [*wrapped, *_variables(held)]
    if isinstance(held, MethodType):
        return [held.__self__, held.__func__]
    if isinstance(held, functools.partial):
        return [held.func, held.args, held.keywords]
    if isinstance(held, Mapping):
        return held.values()
    if isinstance(held, list | tuple):
        return held
    if _is(held, {"torch": ("nn.Module",)}):
        return [*held.parameters(), *held.buffers()]
    if _is(held, {"torch": ("optim.Optimizer",)}):
        return [held.param_groups, held.state]
    if _is(held, {"tensorflow": ("Module",), "keras": ("Model", "Layer", "optimizers.Optimizer")}):
        return list(held.variables)
    if _is(held, {"keras": ("Variable",)}):
        return [held.value]
    jax = sys.modules.get("jax")
    leaves = [held] if jax is None else jax.tree.leaves(held)
    if all(leaf is not held for leaf in leaves):
        return leaves
    compiled = getattr(held, "__wrapped__", getattr(held, "python_function", None))
    if isinstance(compiled, FunctionType):
        return [compiled]
    module = sys.modules.get(type(held).__module__)
    is_users = not (getattr(module, "__file__", None) or libraries[0]).startswith(libraries)
    return list(getattr(held, "__dict__", {}).values()) if is_users else ()


def _variables(function: FunctionType) -> Iterator[Any]:
    """Yield what the code of a function reads from around it; not what is only assigned later."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
    yield from (function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__)


def _is(held: object, kinds: Mapping[str, Iterable[str]]) -> bool:
    """Return whether an object is of one of these types, of modules that are imported."""
    for name, types in kinds.items():
        for path in types if name in sys.modules else ():
            kind: Any = sys.modules[name]
            for part in path.split("."):
                kind = getattr(kind, part, None)
            if isinstance(kind, type) and isinstance(held, kind):
                return True
    return False
