"""Arguments of the Python interface, checked by the types that its functions say: a wrong one is one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature, unwrap
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from kit.errors import KitError
from kit.printable import printable_line

P = ParamSpec("P")
R = TypeVar("R")
# What to give, by type: one of it, and several.
WORDS: dict[object, tuple[str, str]] = {
    str: ("a text", "texts"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "True or False"),
    os.PathLike: ("a path", "paths"),
    Mapping: ("a dictionary", "dictionaries"),
}
# No more of a value is shown.
SHOWN_MAX = 60


def checks_types(*unchecked: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions that raise KitError where an argument is of another type than they say.

    Args:
        unchecked: arguments that the function checks itself, with an example of what is right.
    """

    def with_checks(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            # What a function returns may be of a library that is not imported yet.
            named = {
                name: hint for name, hint in function.__annotations__.items() if name not in (*unchecked, "return")
            }
            hints = get_type_hints(SimpleNamespace(__annotations__=named), unwrap(function).__globals__)
            for name, value in signature(function).bind(*args, **kwargs).arguments.items():
                if name in hints and not _is_of(value, hints[name]):
                    raise KitError(f"{name} is {_shown(value)}; give {_words(hints[name])}")
                if name in hints:
                    check_zeros(name, value)
            return function(*args, **kwargs)

        return checked

    return with_checks


def check_zeros(name: str, value: object) -> None:
    """Raise KitError where a text or a path holds a zero character, which no file's name has."""
    if isinstance(value, (str, os.PathLike)) and "\0" in str(value):
        raise KitError(f"{name} is {_shown(value)}; leave out the zero character")


def _shown(value: object) -> str:
    kind = type(value)
    behind = "" if kind.__module__ == "builtins" else f" ({kind.__module__}.{kind.__qualname__})"
    return printable_line(repr(value))[:SHOWN_MAX] + behind


def _is_of(value: object, hint: Any) -> bool:  # noqa: ANN401 - a type, or what typing has for one
    """Whether a value is of a type; a whole number is a number, 0 and 1 are truth values, and True is no number."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is_of(value, member) for member in args)
    if origin is Literal:
        return isinstance(value, str)  # the function names the choices
    if origin is Sequence:
        return (
            isinstance(value, Sequence) and not isinstance(value, str) and all(_is_of(each, args[0]) for each in value)
        )
    if origin is Mapping:
        return isinstance(value, Mapping)
    if isinstance(value, bool) or hint is bool:
        return hint is bool and value in (False, True)
    return isinstance(value, (int, float) if hint is float else origin or hint)


def _words(hint: Any) -> str:  # noqa: ANN401 - as above
    """Return what to give: ``a text or a list of texts``."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_words(member) for member in args if member is not NoneType)
    if origin is Literal:
        return " or ".join(map(repr, args))
    if origin is Sequence:
        return f"a list of {WORDS[args[0]][1]}"
    return WORDS[origin or hint][0]
