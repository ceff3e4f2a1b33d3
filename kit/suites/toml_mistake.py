"""What is wrong in a suite's TOML, in the user's own words: ``cells.tasks[0] is "trian"``, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect as types

# What to write for a type.
WORDS: dict[type, str] = {
    types.IntType: "a whole number",
    types.FloatType: "a number",
    types.StrType: "text in quotes",
    types.ListType: "a list in [ ]",
    types.DictType: "a table",
    types.StructType: "a table",
}
PYTHON_TYPES: dict[type, type | tuple[type, ...]] = {
    types.IntType: int,
    types.FloatType: (int, float),
    types.StrType: str,
    types.LiteralType: str,
    types.ListType: list,
    types.DictType: dict,
    types.StructType: dict,
}
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
    names = [name for name in path if isinstance(name, str)]
    dotted = "".join(f"[{key}]" if isinstance(key, int) else f".{_quoted(key)}" for key in path).lstrip(".")
    # A key may be written in a table, a heading or a dotted key; where several lines have it, none is named.
    is_last = re.compile(rf"^[^#=]*\b{re.escape(names[-1])}\b" if names else "(?!)")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if is_last.search(line)]
    line = f", line {lines[0]}" if len(lines) == 1 else ""
    separator = "" if not dotted else " " if what.startswith("is ") else ": "
    return f"{line}: {dotted}{separator}{what}"


def _mistakes(value: Any, kind: types.Type, path: Path) -> Iterator[tuple[Path, str]]:  # noqa: ANN401 - any TOML
    """Yield the path and the description of each mistake, inner ones first."""
    if isinstance(kind, types.UnionType):
        fitting = [member for member in kind.types if isinstance(value, PYTHON_TYPES.get(type(member), ()))]
        kind = (fitting or list(kind.types))[0]
    if (what := _own_mistake(value, kind)) is not None:
        yield path, what
    elif isinstance(kind, types.ListType | types.DictType):
        item_kind = kind.item_type if isinstance(kind, types.ListType) else kind.value_type
        for key, item in enumerate(value) if isinstance(value, list) else value.items():
            yield from _mistakes(item, item_kind, (*path, key))
    elif isinstance(kind, types.StructType):
        # Fields that begin with _ are not the user's.
        fields = {field.encode_name: field for field in kind.fields if not field.encode_name.startswith("_")}
        for key, item in value.items():
            if key in fields:
                yield from _mistakes(item, fields[key].type, (*path, key))
            else:
                yield (*path, key), f"is no setting; {choices(key, fields)}"
        for name, field in fields.items():
            if field.required and name not in value:
                yield (*path, name), "is missing"
        try:
            msgspec.convert(value, kind.cls)
        except msgspec.ValidationError as error:
            yield path, str(error).rpartition(" - at ")[0] or str(error)


def _own_mistake(value: Any, kind: types.Type) -> str | None:  # noqa: ANN401 - any TOML
    """Return what is wrong with a value itself, whatever is in it; null where nothing is."""
    fits = isinstance(value, PYTHON_TYPES.get(type(kind), object)) and not isinstance(value, bool)
    if isinstance(kind, types.LiteralType) and (not fits or value not in kind.values):
        known = [str(choice) for choice in kind.values]
        return f"is {_shown(value)}; {choices(str(value), known)}"
    if not fits:
        return f"is {_shown(value)}; give {WORDS[type(kind)]}"
    if isinstance(kind, types.IntType | types.FloatType):
        least, most = kind.ge, kind.le
        if (least is not None and value < least) or (most is not None and value > most):
            return f"is {value}; give {least} {'or more' if most is None else f'to {most}'}"
    return None


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else f'"{key}"'


def _shown(value: object) -> str:
    """Return a value as TOML has it, a long one cut."""
    text = "a table" if isinstance(value, dict) else msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
