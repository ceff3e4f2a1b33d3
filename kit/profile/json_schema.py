"""The JSON Schema of the profile, made from the structures that read and write it.

python -m kit.profile.json_schema > docs/profile.schema.json
"""

from __future__ import annotations

import sys
from inspect import cleandoc
from typing import Any

import msgspec

from kit.profile.schema import SCHEMA, Profile


def json_schema() -> bytes:
    """JSON Schema (draft 2020-12), indented, ending in a newline."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **_dedented(msgspec.json.schema(Profile)),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def _dedented(schema: Any) -> Any:  # noqa: ANN401 - a tree of JSON
    """Return the same with docstrings as Python 3.13 keeps them: without the code's indentation."""
    if isinstance(schema, dict):
        return {
            key: cleandoc(value) if key == "description" and isinstance(value, str) else _dedented(value)
            for key, value in schema.items()
        }
    return [_dedented(part) for part in schema] if isinstance(schema, list) else schema


if __name__ == "__main__":
    sys.stdout.write(json_schema().decode())
