"""The figures that a suite's document published: where they are, and for which runs they are shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from kit.profile.cell import Cell
from kit.suites.plan import plan_cells
from kit.suites.suite import Suite

# What a machine has not may be missing from a whole suite.
OF_THE_MACHINE = ("backend", "device", "compile_mode")
FOLDERS = (Path(__file__).parents[2] / "profiles" / "published", Path(sys.prefix, "share", "steadykit", "published"))


def published_file(suite: str) -> Path | None:
    """Return the published profile of a built-in suite; None where there is none."""
    return next((file for folder in FOLDERS if (file := folder / f"{suite}.json").is_file()), None)


def is_whole(suite: Suite, cells: Iterable[Cell]) -> bool:
    """Whether nothing of a suite was left out, besides frameworks and devices: its document's figures go with that."""
    planned = {cell.key_without(OF_THE_MACHINE) for cell in plan_cells(suite)}
    return planned <= {cell.key_without(OF_THE_MACHINE) for cell in cells}
