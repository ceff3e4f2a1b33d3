"""CSV: a row for each record, plain numbers with their units in the column names."""

from __future__ import annotations

import csv
import io
from typing import IO

from kit.report.report_table import Report
from kit.report.values_in_words import one_line

# A spreadsheet takes a cell that begins like this for a formula (OWASP, CSV injection).
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "|")


def write(report: Report, _stream: IO[str]) -> str:
    """Return the header and all rows; what any record has is a column."""
    names = dict.fromkeys(name for record in report.records for name in record)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(no_formula, names))
    for record in report.records:
        values = map(record.get, names)  # csv writes nothing for null
        writer.writerow([no_formula(value) if isinstance(value, str) else value for value in values])
    return written.getvalue()


def no_formula(text: str) -> str:
    """Return `text` so that no spreadsheet takes it for a formula."""
    shown = one_line(text)
    return f"'{shown}" if shown.startswith(FORMULA_BEGINNINGS) else shown
