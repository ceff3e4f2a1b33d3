"""A comparison as JSON: the structure of `kit.compare.rows.Comparison`, as it is."""

from __future__ import annotations

import json

import msgspec

from kit.compare.rows import Comparison


def render(comparison: Comparison) -> str:
    """Indented, with raw numbers in the units that the field names carry.

    ASCII only: names from a profile come back exactly when read, and cannot steer a terminal when shown.
    """
    return json.dumps(json.loads(msgspec.json.encode(comparison)), indent=2, ensure_ascii=True) + "\n"
