"""What is wrong in a suite's TOML, in the user's own words: ``cells.tasks[0] is "trian"``, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect as types

# The Python types that a value of a type may have, and what to write for it.
KINDS: dict[type, tuple[type | tuple[type, ...], str]] = {
    types.IntType: (int, "a whole number"),
    types.FloatType: ((int, float), "a number"),
    types.StrType: (str, "text in quotes"),
    types.LiteralType: (str, "text in quotes"),
    types.ListType: (list, "a list in [ ]"),
    types.DictType: (dict, "a table"),
    types.StructType: (dict, "a table"),
}
# A larger limit is none that a message names.
NAMED_MAX = 10**9
# Longer values are cut in a message.
SHOWN_MAX = 40

Path = tuple[str | int, ...]


def choices(name: str, known: Collection[str], unless: str = "") -> str:
    """Return ``choose from fit, infer, train; did you mean train?``, with what to do `unless` one of them fits."""
    near = "".join(f"; did you mean {match}?" for match in get_close_matches(name, known, n=1))
    return f"choose from {', '.join(known)}{unless}{near}"


def mistake(text: str, document: dict[str, Any], kind: type[msgspec.Struct]) -> str:
    """Return the first mistake of a TOML document that is no `kind`: ``, line 7: measure.rounds is "8"; give …``."""
    path, what = next(_mistakes(document, types.type_info(kind), ()), ((), "it is not complete"))
    dotted = "".join(
        f"[{key}]" if isinstance(key, int) else f".{key}" if re.fullmatch(r"[\w-]+", key, re.ASCII) else f'."{key}"'
        for key in path
    ).lstrip(".")
    # A key may be written in a table, a heading or a dotted key; where several lines have it, none is named.
    names = [name for name in path if isinstance(name, str)]
    is_last = re.compile(rf"^[^#=]*\b{re.escape(names[-1])}\b" if names else "(?!)")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if is_last.search(line)]
    line = f", line {lines[0]}" if len(lines) == 1 else ""
    separator = "" if not dotted else " " if what.startswith("is ") else ": "
    return f"{line}: {dotted}{separator}{what}"


def _mistakes(value: Any, kind: types.Type, path: Path) -> Iterator[tuple[Path, str]]:  # noqa: ANN401 - any TOML
    """Yield the path and the description of each mistake, inner ones first."""
    if isinstance(kind, types.UnionType):
        fitting = [member for member in kind.types if isinstance(value, KINDS.get(type(member), ((), ""))[0])]
        kind = (fitting or list(kind.types))[0]
    fitting_types, right = KINDS[type(kind)]
    is_fit = isinstance(value, fitting_types) and not isinstance(value, bool)
    text = "a table" if isinstance(value, dict) else msgspec.json.encode(value).decode()
    shown = text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
    if isinstance(kind, types.LiteralType) and value not in kind.values:
        yield path, f"is {shown}; {choices(str(value), list(map(str, kind.values)))}"
    elif not is_fit:
        yield path, f"is {shown}; give {right}"
    elif isinstance(kind, types.IntType | types.FloatType):
        least, most = kind.ge, kind.le
        if (least is not None and value < least) or (most is not None and value > most):
            has_most = most is not None and most < NAMED_MAX
            yield path, f"is {value}; give {least} {f'to {most:g}' if has_most else 'or more'}"
    elif isinstance(kind, types.ListType | types.DictType):
        item_kind = kind.item_type if isinstance(kind, types.ListType) else kind.value_type
        for key, item in enumerate(value) if isinstance(value, list) else value.items():
            yield from _mistakes(item, item_kind, (*path, key))
    elif isinstance(kind, types.StructType):
        yield from _mistakes_of_table(value, kind, path)


def _mistakes_of_table(table: dict[str, Any], kind: types.StructType, path: Path) -> Iterator[tuple[Path, str]]:
    # Fields that begin with _ are not the user's.
    fields = {field.encode_name: field for field in kind.fields if not field.encode_name.startswith("_")}
    for key, item in table.items():
        if key in fields:
            yield from _mistakes(item, fields[key].type, (*path, key))
        else:
            yield (*path, key), f"is no setting; {choices(key, fields)}"
    for name, field in fields.items():
        if field.required and name not in table:
            yield (*path, name), "is missing"
    try:
        msgspec.convert(table, kind.cls)
    except msgspec.ValidationError as error:
        yield path, str(error).rpartition(" - at ")[0] or str(error)
