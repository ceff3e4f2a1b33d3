"""What the command line says of a request, beside each field: the option that gives it, its help and its limits.

    allowed_pct: Annotated[float | None, Option("--fail-if-slower", "Exit 0 if …", "PCT", least=0)] = None

`kit.cli.options` makes the options of a command of it, in the order of the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints


class Option(NamedTuple):
    """How a field is typed. Its type says the rest: a flag, a number, a text, or several of these."""

    flag: str  # without dashes: an argument
    words: str = ""  # of `--help`
    metavar: str | None = None
    least: float | None = None  # of a number
    most: float | None = None
    above: float | None = None  # in place of `least`, where that is too small itself
    choices: Sequence[str] = ()  # empty: those of its type, where that is a Literal
    # Makes the value of the text, or of the texts where there may be several; a ValueError says what is wrong there.
    read: Callable[[Any], Any] | None = None
    is_one_text: bool = False  # its several values stand in one text, and it is not repeatable
    shows_default: bool = False
    off: str = ""  # help of `--no-FLAG`, which gives 0


class TypedField(NamedTuple):
    """A field of a request, as a command line gives it."""

    option: Option
    kind: type  # bool, int, float, str or Path: of each value, where there are several
    is_several: bool
    choices: Sequence[str]
    usual: Any  # value where nothing is typed


@cache
def typed_fields(request: type) -> dict[str, TypedField]:
    """Return the fields of a request that have an option, by name."""
    fields, usual = {}, request()
    for name, hint in get_type_hints(request, include_extras=True).items():
        if get_origin(hint) is Annotated:
            kind, option = get_args(hint)
            is_several = get_origin(kind) in (tuple, dict, Mapping)
            if get_origin(kind) not in (None, Literal):  # the first of `int | None`, and of `tuple[int, ...]`
                kind = get_args(kind)[0]
            choices = option.choices or (get_args(kind) if get_origin(kind) is Literal else ())
            fields[name] = TypedField(option, str if choices else kind, is_several, choices, getattr(usual, name))
    return fields
