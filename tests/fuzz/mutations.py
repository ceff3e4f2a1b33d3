"""Profiles gone wrong in shape and value: what a random flip of bytes would hardly ever reach."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import msgspec

from kit.profile.canonical import profile_digest

# Each is somebody's syntax: a terminal's, a spreadsheet's, Markdown's, XML's, a file system's, a format string's.
HOSTILE_TEXTS = (
    "",
    " ",
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    "a\0b",
    "x" * 5000,
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m",
    "\x7f",
    "line\nbreak\r\nand\u2028more\x0b",
    "\u202egnp.exe\u2066",
    "zero\u200bwidth\ufeff\u00ad\u3164",
    "z\u0335\u0321\u0322\u0327\u0328\u0334\u0335\u0336\u0337\u0338" * 20,
    "\ud7ff\ue000\uffff\U0010ffff",
    "=HYPERLINK(1)",
    "\t=1",
    "\r@x",
    " +1",
    "\uff1d1",
    "a;=1",
    '"=1","',
    "-1|2",
    "a|b",
    "| --- |",
    "`code`",
    "<script>alert(1)</script>",
    "![x](http://e.example/i.png)",
    "[x](javascript:0)",
    "https://e.example/?a=1",
    "www.e.example",
    "someone@e.example",
    "@someone",
    "# title",
    "1. one",
    "---",
    "$x^2$",
    "&lt;b&gt;",
    "]]>",
    "<!-- x",
    "{0}{name}%s%n",
    "\U0001f469\u200d\U0001f4bb",
    "\u0645\u0631\u062d\u0628\u0627",
)
HOSTILE_NUMBERS = (
    0, 1, -1, 2, 255, -(2**31), 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 10**300, 10**400, 10**4000,
    0.0, -0.0, 0.5, -0.5, 1.5, 5e-324, -5e-324, 2.2e-308, 1e-300, 1e-9, 1e15, 1e16, 1e300, -1e300, 1.7e308,
)  # fmt: skip
HOSTILE_VALUES = (None, True, False, [], {}, [[]], [None], {"": None})

Place = tuple[Any, Any]  # a list or an object, and an index or a name in it


def sealed(plain: dict[str, Any]) -> bytes:
    """The file of a profile whose digest holds, whatever it says."""
    plain["digest"] = profile_digest(plain)
    return msgspec.json.encode(plain, order="sorted") + b"\n"


def mutated(plain: dict[str, Any], generator: random.Random, changes: int = 1) -> dict[str, Any]:
    """A copy of `plain` with so many changes at random places."""
    plain = deepcopy(plain)
    for _ in range(changes):
        places = [*every_place(plain)]
        if places:
            generator.choice(CHANGES)(generator.choice(places), generator)
    return plain


def every_place(value: Any) -> Iterator[Place]:
    """Of a JSON value, the outermost first."""
    names = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for name in names:
        yield value, name
        yield from every_place(value[name])


def _replace_by_text(place: Place, generator: random.Random) -> None:
    place[0][place[1]] = generator.choice(HOSTILE_TEXTS)


def _replace_by_number(place: Place, generator: random.Random) -> None:
    place[0][place[1]] = generator.choice(HOSTILE_NUMBERS)


def _replace_by_value(place: Place, generator: random.Random) -> None:
    place[0][place[1]] = deepcopy(generator.choice(HOSTILE_VALUES))


def _replace_alike(place: Place, generator: random.Random) -> None:
    """By a value of the same type, which the decoder lets pass."""
    parent, name = place
    old = parent[name]
    if isinstance(old, str):
        _replace_by_text(place, generator)
    elif isinstance(old, bool):
        parent[name] = not old
    elif isinstance(old, int):
        parent[name] = generator.choice([number for number in HOSTILE_NUMBERS if isinstance(number, int)])
    elif isinstance(old, float):
        _replace_by_number(place, generator)
    elif isinstance(old, list):
        parent[name] = old[: generator.randrange(len(old) + 1)]
    elif old is None:
        generator.choice((_replace_by_text, _replace_by_number))(place, generator)
    else:
        parent[name] = {}


def _scale(place: Place, generator: random.Random) -> None:
    old = place[0][place[1]]
    if isinstance(old, (int, float)) and not isinstance(old, bool) and abs(old) < 1e300:
        scaled = old * generator.choice((-1, 0, 2, 1000, 10**9, 10**200))
        place[0][place[1]] = min(scaled, 1.7e308) if isinstance(scaled, float) else scaled


def _remove(place: Place, generator: random.Random) -> None:
    del place[0][place[1]]


def _double(place: Place, generator: random.Random) -> None:
    parent, name = place
    if isinstance(parent, list):
        parent.insert(generator.randrange(len(parent) + 1), deepcopy(parent[name]))
    elif isinstance(parent[name], list):
        parent[name] = parent[name] + deepcopy(parent[name])


def _rename(place: Place, generator: random.Random) -> None:
    parent, name = place
    if isinstance(parent, dict):
        parent[generator.choice(HOSTILE_TEXTS)] = parent.pop(name)


CHANGES = (
    _replace_alike, _replace_alike, _replace_alike, _scale,
    _replace_by_text, _replace_by_number, _replace_by_value, _remove, _double, _rename,
)  # fmt: skip
