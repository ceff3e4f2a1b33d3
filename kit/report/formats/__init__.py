"""One file a format; its name is what `--format` takes."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from typing import IO

from kit.report.report_table import Report

FORMATS = tuple(module.name for module in pkgutil.iter_modules(__path__))
USUAL = "text"


def write(report: Report, format_name: str = USUAL, stream: IO[str] | None = None) -> str:
    """Return the report in one of FORMATS, laid out for `stream`; null: standard output."""
    written: str = import_module(f"{__name__}.{format_name}").write(report, stream or sys.stdout)
    return written
