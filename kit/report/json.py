"""A comparison, or the reasons behind one, as JSON: the structure (`Comparison`, `Why`), as it is."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kit.compare.rows import Comparison
from kit.report.ascii_json import ascii_json

INDENT = 2
# Rows encoded at a time: a few megabytes, whatever the number of profiles.
ROWS_AT_A_TIME = 1000
# As an empty list of rows is laid out; in a name the line break would be escaped.
_NO_ROWS = b'\n  "rows": []'


def render(structure: msgspec.Struct) -> str:
    """Indented, with raw numbers in the units that the field names carry.

    ASCII only: names from a profile come back exactly when read, and cannot steer a terminal when shown.
    """
    return "".join(pieces(structure))


def pieces(structure: msgspec.Struct) -> Iterator[str]:
    """`render` in pieces: tens of thousands of rows are never in memory as text all at once."""
    if not isinstance(structure, Comparison) or not structure.rows:
        yield ascii_json(_indented(structure) + b"\n")
        return
    before, after = _indented(msgspec.structs.replace(structure, rows=[])).split(_NO_ROWS)
    yield ascii_json(before + b'\n  "rows": [')
    for start in range(0, len(structure.rows), ROWS_AT_A_TIME):
        rows = _indented(structure.rows[start : start + ROWS_AT_A_TIME])[1:-2]  # without the list's own brackets
        yield ascii_json((b"," if start else b"") + rows.replace(b"\n", b"\n" + b" " * INDENT))
    yield ascii_json(b"\n  ]" + after + b"\n")


def _indented(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=INDENT)
