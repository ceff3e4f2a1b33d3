"""From a suite to its cells, the groups they are compared in, and the processes that hold them.

cells   the product of the axes and the variants
group   cells that are alike but for the compared axes: members of one round, at most four
bundle  groups whose members share processes, measured together
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from kit.backends.catalog import CATALOG
from kit.errors import KitError
from kit.profile.cell import DEFAULT_VARIANT, Cell
from kit.profile.schema import Group
from kit.suites.suite import Suite, check_choice
from kit.workloads.catalog import DATASETS, WORKLOADS

DEFAULT_COMPILE_MODE = "default"
# Pairs that lie further apart in a cycle pair worse: 0.75, 3 and 6 s apart, an SD of 1.1 % became 1.7, 2.9 and 3.9 %.
MEMBERS_MAX = 4


class PlanError(KitError):
    """Axes that give no cell."""


class Process(NamedTuple):
    """What one member of a round holds."""

    name: str
    cells: list[Cell]


class Bundle(NamedTuple):
    """Groups that are measured by the same processes."""

    groups: list[Group]
    processes: list[Process]


def plan_cells(suite: Suite, named: Sequence[str] = ()) -> list[Cell]:
    """Return all cells of the suite, in its order, each once.

    A compile mode that a backend does not have gives no cell for that backend; one that no backend has is an error.

    Args:
        suite: what to take the product of.
        named: backends that the user asked for by name: none of them may go without a cell.

    Raises:
        KitError: a name that is not among its choices, a batch that no data set can fill, or no cell.
    """
    _check(suite)
    axes = suite.cells
    cells: dict[str, Cell] = {}
    for workload, device, batch, precision, feed, task, backend, mode, variant in product(
        axes.workloads,
        axes.devices,
        axes.batches,
        axes.precisions,
        axes.feeds,
        axes.tasks,
        axes.backends,
        axes.compile_modes,
        suite.all_variants(),
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
            variant=variant.name,
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


def plan_groups(cells: Sequence[Cell], compare: Sequence[str], baseline: str | None = None) -> list[Group]:
    """Return the groups, in the order of their first cells; a larger one is split, each part with the baseline.

    Args:
        cells: of the suite.
        compare: the axes over which cells of one group differ.
        baseline: the value of a compared axis that the baseline has; null: the first cell.

    Raises:
        PlanError: no cell has that value.
    """
    values = {str(getattr(cell, axis)) for cell in cells for axis in compare}
    if baseline is not None and baseline not in values:
        raise PlanError(f"no cell has the baseline {baseline!r}; choose from {', '.join(sorted(values))}")
    members: dict[str, list[Cell]] = {}
    for cell in cells:
        members.setdefault(_key_without(cell, compare), []).append(cell)
    groups = []
    for key, own in members.items():
        first = next((cell for cell in own if baseline in {str(getattr(cell, axis)) for axis in compare}), own[0])
        others = [cell for cell in own if cell is not first]
        step = MEMBERS_MAX - 1
        for part, start in enumerate(range(0, max(1, len(others)), step)):
            taken = {first.key, *(cell.key for cell in others[start : start + step])}
            groups.append(
                Group(
                    key=key if part == 0 else f"{key}#{part + 1}",
                    cells=[cell.key for cell in own if cell.key in taken],
                    baseline=first.key,
                )
            )
    return groups


def plan_bundles(cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str]) -> list[Bundle]:
    """Return the groups with their processes; groups that share a process are in one bundle, in the groups' order."""
    by_key = {cell.key: cell for cell in cells}
    bundles: list[Bundle] = []
    for group in groups:
        part = group.key.rpartition("#")[2] if "#" in group.key else ""
        own: dict[str, list[Cell]] = {}
        for key in group.cells:
            name = _key_without(by_key[key], share, keep_mode="compile_mode" not in share)
            own.setdefault(f"{name}#{part}" if part else name, []).append(by_key[key])
        if any(len(held) > 1 for held in own.values()):
            # Members of one group take turns: each needs a process of its own.
            own = {cell.key: [cell] for held in own.values() for cell in held}
        bundle = next((one for one in bundles if any(process.name in own for process in one.processes)), None)
        if bundle is None:
            bundles.append(Bundle([group], [Process(name, held) for name, held in own.items()]))
            continue
        bundle.groups.append(group)
        for name, held in own.items():
            process = next((one for one in bundle.processes if one.name == name), None)
            if process is None:
                bundle.processes.append(Process(name, held))
            else:
                process.cells.extend(cell for cell in held if cell not in process.cells)
    return bundles


def _key_without(cell: Cell, axes: Sequence[str], *, keep_mode: bool = False) -> str:
    """Return the cell's key with `*` for these axes; between backends a default compile mode is like any other's."""
    left_out = set(axes)
    if "backend" in left_out and cell.compile_mode == CATALOG[cell.backend].compile_modes[0] and not keep_mode:
        left_out.add("compile_mode")
    fields = {
        "workload": cell.workload,
        "backend": cell.backend,
        "device": cell.device,
        "task": cell.task,
        "batch": f"b{cell.batch}",
        "precision": cell.precision,
        "compile_mode": cell.compile_mode,
        "feed": cell.feed,
        "devices": f"x{cell.devices}",
    }
    if cell.variant != DEFAULT_VARIANT or "variant" in left_out:
        fields["variant"] = cell.variant
    return "/".join("*" if name in left_out else value for name, value in fields.items())


def _check(suite: Suite) -> None:
    axes = suite.cells
    for workload in axes.workloads:
        check_choice("workload", workload, list(WORKLOADS))
    for backend in axes.backends:
        check_choice("backend", backend, list(CATALOG))
    for precision, backend in product(axes.precisions, axes.backends):
        check_choice(f"precision of {backend}", precision, CATALOG[backend].precisions)
    every_mode = dict.fromkeys(mode for entry in CATALOG.values() for mode in entry.compile_modes)
    for mode in axes.compile_modes:
        check_choice("compile mode", mode, [DEFAULT_COMPILE_MODE, *every_mode])
    for workload, task, batch in product(axes.workloads, axes.tasks, axes.batches):
        samples = DATASETS[WORKLOADS[workload].data].samples("train" if task == "train" else "test")
        if batch > samples:
            raise PlanError(f"batch {batch} is more than the {samples} samples there are to {task} on; give fewer")
