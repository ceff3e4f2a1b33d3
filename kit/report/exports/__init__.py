"""A profile for other tools: one file a format; its name is what `kit export` takes.

To add a format, write `kit/report/exports/NAME.py` with `write(exported) -> dict[str, bytes]`: the files by name, or a
single one named "".
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kit.compare.rows import Comparison, Row
from kit.errors import KitError
from kit.profile.schema import Profile

FORMATS = tuple(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))
# What formats with one number a benchmark are given: what they call it, the metric, its ends and its unit.
FIGURES = (
    ("latency", "step_ns", ("step_low_ns", "step_high_ns"), "ns"),
    ("throughput", "samples_per_s", None, "samples/s"),
    ("energy", "energy_per_sample_j", None, "J/sample"),
    ("memory", "peak_memory_b", None, "B"),
)


class Exported(NamedTuple):
    """What is exported."""

    label: str
    path: Path
    profile: Profile
    comparison: Comparison  # of its cells
    commit: str | None = None  # that was measured
    level: str = "cells"  # of rows, where the format has rows
    into: Path | None = None  # folder that has files of earlier exports


def named_rows(exported: Exported) -> Iterator[tuple[str, str, Row]]:
    """Yield each row that has a number, with the name of its group and its own.

    Raises:
        KitError: no row has one.
    """
    count = 0
    for group in exported.comparison.groups:
        for row in group.rows:
            if row.has_number:
                count += 1
                yield " ".join(group.title), row.name, row
    if not count:
        raise KitError(f"{exported.path}: no cell has a step time to export; measure it again with `kit run`")


def json_bytes(document: Any, *, has_lines: bool = True) -> bytes:  # noqa: ANN401 - any JSON value
    """Return JSON in which nothing controls a terminal: names with such a character are written in ASCII."""
    encoded = msgspec.json.encode(document)
    if not encoded.decode().isprintable():
        encoded = json.dumps(msgspec.json.decode(encoded)).replace("\x7f", "\\u007f").encode()
    return msgspec.json.format(encoded) + b"\n" if has_lines else encoded


def export(format_name: str, exported: Exported) -> dict[str, bytes]:
    """Return the files of one of FORMATS by their names; of a format with a single file, under "".

    Raises:
        KitError: the profile lacks what the format needs.
    """
    module = import_module(f"{__name__}.{format_name.replace('-', '_')}")
    files: dict[str, bytes] = module.write(exported)
    return files
