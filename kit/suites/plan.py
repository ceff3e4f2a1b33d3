"""From a suite to its cells: check every name against what there is, and take the product of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from kit.backends.catalog import CATALOG
from kit.errors import KitError
from kit.profile.cell import Cell, Task
from kit.suites.suite import Axes
from kit.workloads.catalog import WORKLOADS
from kit.workloads.data.split import SAMPLES, Split

PRECISIONS = ("float32",)
DEFAULT_COMPILE_MODE = "default"
# Which split a task's batches are cut from.
SPLIT_OF: dict[Task, Split] = {"train": "train", "infer": "test"}


class PlanError(KitError):
    """A name that is not among the choices, or axes that give no cell."""


def check_choice(kind: str, name: str, choices: list[str] | tuple[str, ...]) -> None:
    """Raise PlanError with the choices if `name` is none of them."""
    if name not in choices:
        raise PlanError(f"no {kind} {name!r}; choose from {', '.join(choices)}")


def plan_cells(axes: Axes, named: Sequence[str] = ()) -> list[Cell]:
    """All cells of the axes, in the suite's order, each once.

    A compile mode that a backend does not have gives no cell for that backend; one that no backend has is an error.

    Args:
        axes: what to take the product of.
        named: backends that the user asked for by name: none of them may go without a cell.

    Raises:
        PlanError: a name that is not among its choices, a batch that no split can fill, or no cell.
    """
    _check(axes)
    cells: dict[str, Cell] = {}
    for workload, device, batch, precision, feed, task, backend, mode in product(
        axes.workloads,
        axes.devices,
        axes.batches,
        axes.precisions,
        axes.feeds,
        axes.tasks,
        axes.backends,
        axes.compile_modes,
    ):
        modes = CATALOG[backend].compile_modes
        if mode not in (*modes, DEFAULT_COMPILE_MODE):
            continue
        cell = Cell(
            workload=workload,
            backend=backend,
            device=device,
            task=task,
            batch=batch,
            precision=precision,
            compile_mode=modes[0] if mode == DEFAULT_COMPILE_MODE else mode,
            feed=feed,
        )
        cells.setdefault(cell.key, cell)
    if not cells:
        raise PlanError("these choices leave no cell to measure; widen --backend or --compile-mode")
    for name in named:
        if name not in {cell.backend for cell in cells.values()}:
            own = ", ".join(CATALOG[name].compile_modes)
            raise PlanError(
                f"{name} has no compile mode {' or '.join(axes.compile_modes)}; add one of its own ({own}), "
                f"or leave out --backend {name}"
            )
    return list(cells.values())


def _check(axes: Axes) -> None:
    for workload in axes.workloads:
        check_choice("workload", workload, list(WORKLOADS))
    for backend in axes.backends:
        check_choice("backend", backend, list(CATALOG))
    for precision in axes.precisions:
        check_choice("precision", precision, PRECISIONS)
    every_mode = dict.fromkeys(mode for entry in CATALOG.values() for mode in entry.compile_modes)
    for mode in axes.compile_modes:
        check_choice("compile mode", mode, [DEFAULT_COMPILE_MODE, *every_mode])
    for batch in axes.batches:
        if batch < 1:
            raise PlanError(f"batch {batch} is not a number of samples; give 1 or more")
        for task in axes.tasks:
            samples = SAMPLES[SPLIT_OF[task]]
            if batch > samples:
                raise PlanError(f"batch {batch} is more than the {samples} samples there are to {task} on; give fewer")
