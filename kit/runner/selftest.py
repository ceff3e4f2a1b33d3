"""A self-test: one cell against itself and against slow-downs planted in it, in rounds like any other run."""

from __future__ import annotations

from typing import Any

import msgspec

from kit.profile.cell import Cell, Variant
from kit.profile.unfinished import RunPlan
from kit.runner.cpus import usable_cpus
from kit.runner.prepare import check_devices, ensure_data, keep_installed, prepare
from kit.suites.changed import changed
from kit.suites.plan import plan_cells
from kit.suites.suite import DEFAULT_SUITE, load_suite

SUITE_NAME = "selftest"
BASE = "base"
AGAIN = "again"
PLANTED_PCT = (1.0, 2.0, 3.0, 5.0)
VARIANTS = [
    Variant(name=BASE),
    Variant(name=AGAIN),
    *(Variant(name=f"plus-{pct:g}", slowdown_pct=pct) for pct in PLANTED_PCT),
]


def plan_selftest(*, workload: str, backend: str, task: str, batch: int, rounds: int, data: str, seed: int) -> RunPlan:
    """Return the plan of a self-test, measured as the standard suite is.

    Raises:
        KitError: a name that is not among its choices, a framework that is not installed, data that cannot be had.
    """
    axes: dict[str, list[Any]] = {"workloads": [workload], "backends": [backend], "tasks": [task], "batches": [batch]}
    suite = changed(load_suite(DEFAULT_SUITE), axes, compare=["variant"], rounds=rounds)
    measure = msgspec.structs.replace(suite.measure, energy_s=0.0)
    suite = msgspec.structs.replace(suite, name=SUITE_NAME, measure=measure)
    (cell,) = plan_cells(suite, named=[backend])
    check_devices([cell])
    keep_installed([cell], [Variant(name=cell.variant)], [backend])
    cells: list[Cell] = [msgspec.structs.replace(cell, variant=variant.name) for variant in VARIANTS]
    return prepare(
        suite,
        cells,
        VARIANTS,
        skipped=[],
        data=ensure_data(cells, data),
        seed=seed,
        cpus=usable_cpus(),
        clock="monotonic_raw",
    )
