"""Prometheus' text format, for node_exporter's textfile collector: a gauge for each number, labels for the words.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import re
from typing import IO

from kit.report.plain import one_line
from kit.report.table import Report

ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"'})


def write(report: Report, _stream: IO[str]) -> str:
    """Return each number of the records as a sample; of samples alike in name and labels, the last."""
    prefix = f"steady{report.name}"
    samples: dict[str, dict[str, float]] = {}
    for record in report.records:
        labels = ",".join(
            f'{_name(name)}="{one_line(value).translate(ESCAPED)}"'
            for name, value in record.items()
            if isinstance(value, str) and value and (not report.labels or name in report.labels)
        )
        for name, value in record.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                samples.setdefault(_name(f"{prefix}_{name}"), {})[f"{{{labels}}}" if labels else ""] = float(value)
    lines = []
    for name, by_labels in samples.items():
        lines.append(f"# TYPE {name} gauge")
        lines += [f"{name}{labels} {value!r}" for labels, value in by_labels.items()]
    return "".join(f"{line}\n" for line in lines)


def _name(words: str) -> str:
    """Return the words as a name of the format."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", words).strip("_")
