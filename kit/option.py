"""What the command line says of a request, in each field: the option that gives it, its help and its limits.

    class CompareRequest(TypedRequest):
        allowed_pct: float | None = option("--fail-if-slower", "Exit 0 if …", "PCT", least=0)

`kit.cli.options` makes the options of a command of it, in the order of the fields.
"""

# Annotations are not postponed here: a NamedTuple would compile each, a millisecond at each start.
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints


class Option(NamedTuple):
    """How a field is typed."""

    flag: str  # without dashes: an argument
    words: str = ""  # of `--help`
    metavar: str | None = None
    least: float | None = None  # of a number
    most: float | None = None
    above: float | None = None  # in place of `least`, where that is too small itself
    choices: Sequence[str] = ()  # empty: those of the field's type, where that is a Literal
    # Makes the value of the text, or of the texts where there may be several; a ValueError says what is wrong there.
    read: Callable[[Any], Any] | None = None
    is_one_text: bool = False  # its several values stand in one text, and it is not repeatable
    shows_default: bool = False
    off: str = ""  # help of `--no-FLAG`, which gives 0
    usual: Any = None  # value where nothing is typed
    # By the field's type: bool, int, float, str or Path, of each value where there are several.
    kind: type = str
    is_several: bool = False


def option(*words: str | float, **more: Any) -> Any:  # noqa: ANN401 - of the type of its field
    """Return a field with an `Option` of these arguments."""
    return Option(*words, **more)  # type: ignore[arg-type]


def flag(*words: str) -> Any:  # noqa: ANN401
    """Return a field that is true where its option is given."""
    return option(*words, usual=False)


def several(*words: str | float, **more: Any) -> Any:  # noqa: ANN401
    """Return a field of any number of values."""
    return option(*words, usual=(), **more)


class TypedRequest:
    """What a command is asked for: a field for each option. It never changes once it is made.

    It is no dataclass, as to make one would take some milliseconds at each start.
    """

    def __init__(self, **given: object) -> None:
        options = options_of(type(self))  # type: ignore[arg-type] # a class has a hash
        if unknown := given.keys() - options:
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}")
        vars(self).update({name: option.usual for name, option in options.items()} | given)


@cache
def options_of(request: type) -> dict[str, Option]:
    """Return the option of each field of a request."""
    options = {}
    for name, hint in get_type_hints(request).items():
        given: Option = getattr(request, name)
        # The first of `int | None`, and of `tuple[int, ...]`.
        kind = hint if get_origin(hint) in (None, Literal) else get_args(hint)[0]
        if get_origin(kind) is Literal:
            kind, given = str, given._replace(choices=given.choices or get_args(kind))
        options[name] = given._replace(kind=kind, is_several=get_origin(hint) in (tuple, Mapping))
    return options
