"""Prometheus' text format, also OpenMetrics, for node_exporter: a gauge for each number, labels for the words.

https://prometheus.io/docs/specs/om/open_metrics_spec/
https://prometheus.io/docs/practices/naming/: base units, written out
"""

from __future__ import annotations

import re
from typing import IO

from kit.report.report_table import Report
from kit.report.values_in_words import one_line

ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"'})
IN_HELP = str.maketrans({"\\": "\\\\"})
# Unit in a record's name -> that of the metric, and what values are divided by.
UNITS = {"ns": ("seconds", 1e9), "s": ("seconds", 1.0), "b": ("bytes", 1.0), "j": ("joules", 1.0), "w": ("watts", 1.0)}
# Endings that the format keeps for counters, histograms and summaries.
KEPT = {"count": "counted", "total": "whole", "sum": "summed", "bucket": "class", "info": "about", "created": "begin"}


def write(report: Report, _stream: IO[str]) -> str:
    """Return each number of the records as a sample; of samples alike in name and labels, the last."""
    prefix = f"steady{report.name}"
    samples: dict[str, dict[str, float]] = {}
    helps: dict[str, str] = {}
    for record in report.records:
        labels = ",".join(
            f'{_words(name)}="{one_line(value).translate(ESCAPED)}"'
            for name, value in record.items()
            if isinstance(value, str) and value and (not report.labels or name in report.labels)
        )
        for name, value in record.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                metric, divisor = _metric(_words(f"{prefix}_{name}"))
                helps.setdefault(metric, one_line(f"{name} of {report.name}"))
                samples.setdefault(metric, {})[f"{{{labels}}}" if labels else ""] = value / divisor
    lines = []
    for name, by_labels in samples.items():
        lines += [f"# HELP {name} {helps[name].translate(IN_HELP)}", f"# TYPE {name} gauge"]
        lines += [f"{name}{labels} {value!r}" for labels, value in by_labels.items()]
    return "".join(f"{line}\n" for line in [*lines, "# EOF"])


def _metric(name: str) -> tuple[str, float]:
    """Return a metric's name with base units written out, and what its values are divided by."""
    words, divisor = name.split("_"), 1.0
    for index, word in enumerate(words):
        # A unit ends a name, or stands before `per`; after it, it divides.
        if word.lower() in UNITS and (index == len(words) - 1 or words[index + 1] == "per"):
            words[index], factor = UNITS[word.lower()]
            divisor = divisor / factor if words[index - 1] == "per" else divisor * factor
    words[-1] = KEPT.get(words[-1], words[-1])
    return "_".join(words), divisor


def _words(words: str) -> str:
    """Return the words as a name of the format."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", words).strip("_")
