"""Bencher Metric Format: the figures of each benchmark, times in nanoseconds. https://bencher.dev/docs/reference/bmf/"""

from __future__ import annotations

from kit.report.exports import FIGURES, Exported, json_bytes, named_rows

NAME_BYTES_MAX = 1024  # of a benchmark, in Bencher's schema


def write(exported: Exported) -> dict[str, bytes]:
    """Return one JSON file: by benchmark and figure a value and, where it is known, its 95 % interval."""
    benchmarks = {}
    for group, name, row in named_rows(exported):
        figures = {}
        for measure, metric, ends, _ in FIGURES:
            value, low, high = (row.value(known) if known else None for known in (metric, *(ends or (None, None))))
            if value is not None:
                interval = {"lower_value": low, "upper_value": high}
                figures[measure] = {"value": value} | {end: at for end, at in interval.items() if at is not None}
        key = f"{group} {name}".encode()[:NAME_BYTES_MAX].decode(errors="ignore")
        benchmarks[key if key not in benchmarks else row.cell.key] = figures
    return {"": json_bytes(benchmarks)}
