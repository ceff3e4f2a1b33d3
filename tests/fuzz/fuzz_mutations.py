"""Changes to a JSON document: of leaves by their kind, of subtrees, of a name everywhere, of whole columns of numbers.

A change depends on the document and on the random numbers alone, so its seed and number say what it was.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Path = tuple[str | int, ...]

# Planted in hostile strings: what reaches a place where it must not be is known by it.
MARK = "zqx"
# Stands for the folder that holds everything a mutation may see, when it is written.
ROOT = "{ROOT}"
# Stands for a list within a list and so on, which no encoder would write.
NEST, NEST_DEPTH = f"{MARK}-nest", 5_000

INTEGERS = (
    0, -1, 1, 2, 1000, 2**31, -(2**31), 2**53, 2**62, 2**63 - 1, -(2**63), 2**63, 10**30, -(10**30), 10**400,
)  # fmt: skip
FLOATS = (0.5, -0.0, 1.0000001, 1e16, 1e300, -1e300, 1.7976931348623157e308, 5e-324)
SCALES = (-1, 2, 1000, 10**6, 10**9, 0.001)
STRINGS = (
    "", " ", "x" * 100_000, "批" * 500, "a" * 300 + "/" + "b" * 300,
    f"\x1b[2J\x07{MARK}", f"\x9b31m{MARK}\x85", f"{MARK}\x00{MARK}", f"\u202e{MARK}\u202d\u2066", f"{MARK}\u200b\u2028",
    f"{MARK}\r\n{MARK}\n", "\ud800", "e\u0301" * 20,
    f"<script>{MARK}()</script>", f'"><img src={MARK} onerror={MARK}()>', f"</td></table><b onclick={MARK}>{MARK}",
    f"&lt;b&gt;{MARK}", f"' onmouseover={MARK} '", f"]]><{MARK}/>", f"</style><{MARK}>",
    f"[{MARK}](https://{MARK}.example)", f"![{MARK}](https://{MARK}.example/a.png)", f"`{MARK}`|{MARK}|", f"**{MARK}**",
    f"https://{MARK}.example/a", f"www.{MARK}.example", f"@{MARK} #9 {MARK}/{MARK}#9", f"# {MARK}", f"- {MARK}",
    f"../../outside/{MARK}", f"{ROOT}/outside/{MARK}", f"{ROOT}/outside/canary.txt", "..", "/", "/dev/stdin", "~",
    f"a/b/{MARK}.toml", f"{ROOT}/outside/canary.toml", f"-{MARK}", f"--out={MARK}",
    f"$(touch {MARK})", f"; touch {MARK} #", f"`touch {MARK}`", f"| touch {MARK}", f'{MARK}"{MARK}\\', f"=cmd|{MARK}",
    "%s%d{0}", "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-23:59", "spring",
    "torch", "cpu", "fit", "measured", "synthetic", "own",
)  # fmt: skip
OTHERS: tuple[Any, ...] = (None, True, False, "1", 1, 1.5, [], {}, [None], {MARK: MARK}, NEST)
REPEATED_MAX = 10_000


def shapes_of(document: Any) -> dict[Path, list[Path]]:
    """Return all paths below `document` by their shape, in which ``*`` stands for every number of an item."""
    shapes: dict[Path, list[Path]] = {}
    for path in _paths(document):
        shapes.setdefault(tuple("*" if isinstance(step, int) else step for step in path), []).append(path)
    return shapes


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    items: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, Mapping):
        items = iter(value.items())
    elif isinstance(value, list):
        items = enumerate(value)
    for step, part in items:
        yield (*path, step)
        yield from _paths(part, (*path, step))


def at(document: Any, path: Path) -> Any:
    """Return what stands at a path."""
    for step in path:
        document = document[step]
    return document


def changed(document: Any, shapes: Mapping[Path, Sequence[Path]], rng: random.Random) -> tuple[Any, list[str]]:
    """Return a changed copy of the document, and a line that says what each change was: one to three of them."""
    document, lines = json.loads(json.dumps(document)), []
    ways: list[tuple[Callable[..., str], int]] = [
        (_leaf, 50),
        (_subtree, 16),
        (_everywhere, 14),
        (_column, 12),
        (_swap, 8),
    ]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        (way,) = rng.choices([way for way, _ in ways], [weight for _, weight in ways])
        try:
            lines.append(way(document, shapes, rng))
        except (KeyError, IndexError, TypeError):
            continue  # what an earlier change took away
    return document, lines


def encoded(document: Any, root: str) -> str:
    """Return the canonical JSON of a document, with what its stand-ins stand for."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if not _is_text(text):
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return text.replace(f'"{NEST}"', "[" * NEST_DEPTH + "]" * NEST_DEPTH).replace(ROOT, root)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def other_value(value: Any, rng: random.Random) -> Any:
    """Return what is to stand in place of a leaf: mostly of its own kind."""
    if rng.random() < 0.15 or value is None or isinstance(value, bool):
        return rng.choice((*OTHERS, *INTEGERS, *STRINGS) if rng.random() < 0.5 else OTHERS)
    if isinstance(value, str):
        return rng.choice(STRINGS)
    if isinstance(value, (int, float)):
        scaled = value * rng.choice(SCALES)
        near = (scaled if isinstance(value, float) else int(scaled), value + 1, value - 1)
        far = INTEGERS if isinstance(value, int) else FLOATS
        return rng.choice(near if rng.random() < 0.4 else (*far, *far, *INTEGERS, *FLOATS))
    return rng.choice(OTHERS)


def _leaf(document: Any, shapes: Mapping[Path, Sequence[Path]], rng: random.Random) -> str:
    path = rng.choice(shapes[rng.choice(list(shapes))])
    while isinstance(at(document, path), (dict, list)) and (inner := list(_paths(at(document, path)))):
        path = (*path, *rng.choice(inner))
    return _put(document, path, other_value(at(document, path), rng))


def _put(document: Any, path: Path, value: Any) -> str:
    at(document, path[:-1])[path[-1]] = value
    return f"{_named(path)} = {_shown(value)}"


def _subtree(document: Any, shapes: Mapping[Path, Sequence[Path]], rng: random.Random) -> str:
    """Take away, empty, double, turn round or extend what holds others."""
    path = rng.choice(shapes[rng.choice(list(shapes))])
    value, parent = at(document, path), at(document, path[:-1])
    if not isinstance(value, (dict, list)) or rng.random() < 0.2:
        del parent[path[-1]]
        return f"{_named(path)} is left out"
    if isinstance(value, list):
        longer = (
            value * max(2, REPEATED_MAX // max(1, len(json.dumps(value)) // 10)) if rng.random() < 0.2 else value * 2
        )
        return _put(document, path, rng.choice(([], longer, value[::-1], value[1:], [*value, None], {})))
    names = list(value)
    name, new = rng.choice(names or [""]), rng.choice(STRINGS)
    more = {**value, new: value.get(name)}
    fewer = {known: part for known, part in value.items() if known != name}
    return _put(document, path, rng.choice(({}, more, fewer, {**fewer, new: value.get(name)}, [], None)))


def _everywhere(document: Any, shapes: Mapping[Path, Sequence[Path]], rng: random.Random) -> str:
    """Replace a word in all strings and names, so that parts which name each other still agree."""
    named = [shape for shape, paths in shapes.items() if isinstance(_or_none(document, paths[0]), str)]
    path = rng.choice(shapes[rng.choice(named)])
    old, new = at(document, path), rng.choice(STRINGS)
    if len(old) < 2:
        return _put(document, path, new)
    replaced = _replaced(document, old, new)
    document.clear()
    document.update(replaced)
    return f"{old!r} = {_shown(new)} everywhere"


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, list):
        return [_replaced(part, old, new) for part in value]
    if isinstance(value, dict):
        return {name.replace(old, new): _replaced(part, old, new) for name, part in value.items()}
    return value


def _or_none(document: Any, path: Path) -> Any:
    try:
        return at(document, path)
    except (KeyError, IndexError, TypeError):
        return None


def _column(document: Any, shapes: Mapping[Path, Sequence[Path]], rng: random.Random) -> str:
    """Give one value to all numbers of a shape, or multiply all of them; of a cell's coordinate its keys, too."""
    numbers = [shape for shape, paths in shapes.items() if type(_or_none(document, paths[0])) in (int, float)]
    shape = rng.choice(numbers)
    factor, fixed = rng.choice(SCALES), other_value(1, rng)
    is_scaled = rng.random() < 0.5
    prefix = {"batch": "b", "device_count": "x", "threads": "t"}.get(str(shape[-1]))
    for path in shapes[shape]:
        old = at(document, path)
        new = (type(old)(old * factor) if isinstance(old, (int, float)) else old) if is_scaled else fixed
        _put(document, path, new)
        if prefix is not None:
            replaced = _replaced(document, f"/{prefix}{old}", f"/{prefix}{new}")
            document.clear()
            document.update(replaced)
    return f"{_named(shape)} {f'times {factor}' if is_scaled else f'= {_shown(fixed)}'}"


def _swap(document: Any, shapes: Mapping[Path, Sequence[Path]], rng: random.Random) -> str:
    """Put a copy of another place's subtree in a place."""
    path, source = (rng.choice(shapes[rng.choice(list(shapes))]) for _ in range(2))
    _put(document, path, copy.deepcopy(at(document, source)))
    return f"{_named(path)} = what stands at {_named(source)}"


def _named(path: Path) -> str:
    return ".".join(map(str, path)) or "everything"


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text):,} characters)"
