"""JSON: what the tables were built from, with its own field names."""

from __future__ import annotations

import json
from typing import IO

import msgspec

from kit.report.report_table import Report


def write(report: Report, _stream: IO[str]) -> str:
    """Return indented JSON in printable ASCII: names come back exactly when read, and cannot steer a terminal."""
    document = report.document() if callable(report.document) else report.document
    plain = json.loads(msgspec.json.encode(document))
    return json.dumps(plain, indent=2).replace("\x7f", "\\u007f") + "\n"
