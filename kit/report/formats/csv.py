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
    writer.writerows([_field(record.get(name)) for name in names] for record in report.records)
    return written.getvalue()


def _field(value: object) -> object:
    """Return a number as it is, nothing for null, and text that is no formula."""
    return spreadsheet(value) if isinstance(value, str) else "" if value is None else value
