"""JSON in plain ASCII: names in a profile come back exactly when read, and cannot steer a terminal when shown."""

from __future__ import annotations

import re

# In JSON they stand within strings only.
NOT_PLAIN = re.compile(r"[^\x20-\x7e\n]")


def ascii_json(encoded: bytes) -> str:
    """The same JSON with every character beyond printable ASCII escaped."""
    return NOT_PLAIN.sub(_escaped, encoded.decode())


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
