"""github-action-benchmark's `customSmallerIsBetter`: https://github.com/benchmark-action/github-action-benchmark

Its reader takes null for 0 and a missing unit for "undefined": what has no number is left out here.
"""

from __future__ import annotations

from kit.report.exports import FIGURES, Exported, json_bytes, named_rows
from kit.report.verdict_words import answer

SMALLER_IS_BETTER = ("latency", "energy", "memory")


def write(exported: Exported) -> dict[str, bytes]:
    """Return one JSON file: a benchmark for each figure of each row, with half of its 95 % interval as the range."""
    benchmarks = []
    for group, name, row in named_rows(exported):
        for measure, metric, ends, unit in FIGURES:
            if measure not in SMALLER_IS_BETTER or (value := row.value(metric)) is None:
                continue
            title = f"{group} {name}" if measure == "latency" else f"{group} {name} {measure}"
            low, high = (row.value(end) for end in ends) if ends else (None, None)
            # Its charts show plain numbers.
            shown, divisor = ("ms", 1e6) if unit == "ns" else (unit, 1)
            benchmark = {"name": title, "unit": shown, "value": value / divisor}
            if measure == "latency":  # the verdict is on the step
                benchmark["extra"] = answer(row)
            if low is not None and high is not None:
                benchmark["range"] = f"± {(high - low) / 2 / divisor:.4g}"
            benchmarks.append(benchmark)
    return {"": json_bytes(benchmarks)}
