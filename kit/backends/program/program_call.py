"""Whether a function can be called as a user program: asked where it is sent, and where it is run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any


def refused_call(name: str, function: Callable[..., Any], arguments: Collection[str]) -> str | None:
    """Return why a function cannot be called with these arguments by name, in one line; None where it can be.

    A class that takes whatever it is given, as a model without an `__init__` of its own, takes none of them.
    """
    wanted = ", ".join(arguments)
    remedy = f"write def {name}({wanted}), which returns a step"
    if inspect.isclass(function):
        kind = "a class"
    elif not inspect.isroutine(function) and hasattr(function, "forward"):
        kind = f"a model ({type(function).__name__})"
    else:
        kind = ""
    try:
        signature = inspect.signature(function)
        signature.bind(**dict.fromkeys(arguments))
    except (TypeError, ValueError) as error:  # ValueError: a function in C does not say what it takes
        if kind:
            return f"{name} is {kind}, and a program is a function; {remedy}"
        parameters = "" if isinstance(error, ValueError) else inspect.signature(function)
        return f"{name}{parameters} does not accept {wanted}; {remedy}"
    if kind and not set(arguments) <= set(signature.parameters):
        return f"{name} is {kind}, and a program is a function; {remedy}"
    return None
