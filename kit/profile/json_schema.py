"""The JSON Schema of the profile, made from the structures that read and write it.

python -m kit.profile.json_schema > docs/profile.schema.json
"""

from __future__ import annotations

import sys

import msgspec

from kit.profile.schema import SCHEMA, Profile


def json_schema() -> bytes:
    """JSON Schema (draft 2020-12), indented, ending in a newline."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Profile),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


if __name__ == "__main__":
    sys.stdout.write(json_schema().decode())
