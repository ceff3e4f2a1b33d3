"""JSON lines: an object for each record, flat, with the column names of CSV."""

from __future__ import annotations

import json
from typing import IO

from kit.report.report_table import Report


def write(report: Report, _stream: IO[str]) -> str:
    """Return a line of printable ASCII for each record."""
    return "".join(json.dumps(record).replace("\x7f", "\\u007f") + "\n" for record in report.records)
