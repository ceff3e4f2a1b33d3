"""CSV: a row for each record, plain numbers with their units in the column names."""

from __future__ import annotations

import csv
import io
from typing import IO

from kit.report.plain import spreadsheet
from kit.report.table import Report


def write(report: Report, _stream: IO[str]) -> str:
    """Return the header and all rows; what any record has is a column."""
    names = dict.fromkeys(name for record in report.records for name in record)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(spreadsheet, names))
    for record in report.records:
        values = map(record.get, names)  # csv writes nothing for null
        writer.writerow([spreadsheet(value) if isinstance(value, str) else value for value in values])
    return written.getvalue()
