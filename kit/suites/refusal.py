"""Why a suite file is refused: the line of its mistake, and what could stand there."""

from __future__ import annotations

import re

import msgspec
from msgspec.inspect import DictType, ListType, LiteralType, StructType, Type, UnionType, type_info

_HEADER = re.compile(r"\s*\[\[?\s*(\w+)[^\]]*\]")
_KEY = re.compile(r"\s*(\w+)\s*=")
_PATH = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_FIELD = re.compile(r"field `(\w+)`")
_TYPES = re.compile(r"Expected `([^`]+)`(?: (>=|<=) (\S+?))?(?:, got `(\w+)`)?$")
# msgspec's word for a type -> as it is called in TOML.
WORDS = {
    "str": "text in quotes", "int": "a whole number", "float": "a number", "bool": "true or false",
    "array": "a list in brackets", "object": "a table",
}  # fmt: skip


def refusal(error: msgspec.ValidationError, toml: str, shape: type) -> str:
    """Return what is wrong with the text of a `shape`, with its line and the choices where they are known."""
    found = _PATH.fullmatch(str(error))
    assert found is not None  # the pattern takes any text
    what, path = _TYPES.sub(_wanted, found["what"]), found["path"] or ""
    steps = [name or index for name, index in _STEP.findall(path)]
    field = _FIELD.search(what)
    line = _line(toml, [*steps, *field.groups()] if field else steps)
    where = ".".join(step for step in steps if step.isidentifier())
    choices = _choices(what, steps, shape)
    return (
        (f"line {line}: " if line else "")
        + (f"{where}: " if where else "")
        + what[:1].lower()
        + what[1:]
        + (f"; choose from {', '.join(choices)}" if choices else "")
    )


def _wanted(types: re.Match[str]) -> str:
    wanted = " or ".join(WORDS.get(kind, kind) for kind in types[1].split(" | ") if kind != "null")
    bound = f" {types[2]} {types[3]}" if types[2] else ""
    there = f"{WORDS.get(types[4], types[4])} stands there; " if types[4] else ""
    return f"{there}give {wanted}{bound}"


def _line(toml: str, steps: list[str]) -> int | None:
    """Return the line of a key, else of its table, else of the key that holds the table; from 1."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    tables: dict[str, int] = {}
    for number, text in enumerate(toml.splitlines(), start=1):
        if header := _HEADER.match(text):
            name = header[1]
            tables[name] = tables.get(name, -1) + 1
            table = (name, str(tables[name])) if text.lstrip().startswith("[[") else (name,)
            lines.setdefault(table, number)
        elif key := _KEY.match(text):
            lines.setdefault((*table, key[1]), number)
    while steps:
        if tuple(steps) in lines:
            return lines[tuple(steps)]
        steps = steps[:-1]
    return None


def _choices(what: str, steps: list[str], shape: type) -> list[str]:
    """Return what a value may be that is none of a Literal's, or how the fields of a table are called."""
    at: Type | None = type_info(shape)
    for step in steps:
        at = _inside(at, step)
    if what.startswith("Invalid enum value") and isinstance(at, LiteralType):
        return [str(value) for value in at.values]
    if "unknown field" in what and isinstance(at, StructType):
        return [name for field in at.fields if not (name := field.encode_name).startswith("_")]  # _: not the user's
    return []


def _inside(at: Type | None, step: str) -> Type | None:
    """Return the type of a field, or of an item, of this type; None where there is none."""
    match at:
        case UnionType(types=types):
            return next((inner for one in types if (inner := _inside(one, step)) is not None), None)
        case StructType(fields=fields):
            return next((field.type for field in fields if field.encode_name == step), None)
        case DictType(value_type=inner) | ListType(item_type=inner):
            return inner
    return None
