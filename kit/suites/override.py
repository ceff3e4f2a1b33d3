"""A suite as the command line narrows or changes it: an option given replaces that axis."""

from __future__ import annotations

from typing import Any

import msgspec

from kit.suites.plan import check_choice
from kit.suites.suite import QUICK_SUITE, Suite, load_suite

CHOICES: dict[str, tuple[str, ...]] = {
    "devices": ("cpu", "gpu", "tpu"),
    "tasks": ("train", "infer"),
    "feeds": ("device", "host"),
}


def override(suite: Suite, axes: dict[str, list[Any]], *, launches: int | None = None, quick: bool = False) -> Suite:
    """`suite` with each non-empty axis replaced, its launches set, or measured as the quick suite is.

    Raises:
        PlanError: a value that is not among an axis's choices.
    """
    given = {name: list(values) for name, values in axes.items() if values}
    for name, choices in CHOICES.items():
        for value in given.get(name, ()):
            check_choice(name.removesuffix("s"), value, choices)
    cells = msgspec.structs.replace(suite.cells, **given)
    measure = load_suite(QUICK_SUITE).measure if quick else suite.measure
    if launches is not None:
        measure = msgspec.structs.replace(measure, launches=launches)
    name = suite.name if not quick or suite.name == QUICK_SUITE else f"{suite.name}-{QUICK_SUITE}"
    return msgspec.structs.replace(suite, name=name, cells=cells, measure=measure)
