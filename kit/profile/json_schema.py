"""The JSON Schema of a document, made from the structures that read and write it."""

from __future__ import annotations

import json
from inspect import cleandoc
from typing import Any

import msgspec

from kit.profile.schema import SCHEMA, Profile


def json_schema(document: type[msgspec.Struct] = Profile, title: str = SCHEMA) -> bytes:
    """JSON Schema (draft 2020-12), indented, ending in a newline."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **json.loads(msgspec.json.encode(msgspec.json.schema(document)), object_hook=_dedented),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def _dedented(schema: dict[str, Any]) -> dict[str, Any]:
    """Return it with its docstring as Python 3.13 keeps them: without the code's indentation."""
    if isinstance(schema.get("description"), str):
        schema["description"] = cleandoc(schema["description"])
    return schema
