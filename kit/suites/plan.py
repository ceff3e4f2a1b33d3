"""From a suite to its cells, the groups they are compared in, and the processes that hold them.

cells   the product of the axes and the variants
group   cells that are alike but for the compared axes: members of one round, at most four
shared  groups whose members share processes, measured together
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec.structs import replace

from kit.backends.catalog import CATALOG
from kit.profile.cell import Cell
from kit.profile.schema import PART, Group
from kit.suites.program import sources_of
from kit.suites.suite import Axes, Suite, SuiteError, check_choice
from kit.workloads.catalog import DATASETS, WORKLOADS, parameters_of
from kit.workloads.catalog import workload as workload_of
from kit.workloads.workload import Workload

DEFAULT_COMPILE_MODE = "default"
# Pairs that lie further apart in a cycle pair worse: 0.75, 3 and 6 s apart, an SD of 1.1 % became 1.7, 2.9 and 3.9 %.
MEMBERS_MAX = 4


class MemberPlan(NamedTuple):
    """What one member of a round holds."""

    name: str
    cells: list[Cell]


class SharedGroups(NamedTuple):
    """Groups that are measured by the same processes."""

    groups: list[Group]
    members: list[MemberPlan]


def plan_cells(suite: Suite, named: Sequence[str] = ()) -> list[Cell]:
    """Return all cells of the suite, in its order, each once.

    A compile mode that a backend does not have gives no cell for that backend; one that no backend has is an error.

    Args:
        suite: what to take the product of.
        named: backends that the user asked for by name: none of them may go without a cell.

    Raises:
        KitError: a name that is not among its choices, a batch that no data set can fill, a program that is not
            there, or no cell.
    """
    _check(suite)
    sources = sources_of(suite)
    cells: dict[str, Cell] = {}
    for axes in suite.axes:
        for cell in _product(suite, axes):
            takes_task = cell.workload not in sources or sources[cell.workload].takes_task
            if takes_task or cell.task == axes.tasks[0]:
                cells.setdefault(cell.key, cell)
    asked = " or ".join(suite.axes[0].compile_modes)
    if not cells:
        modes = "; ".join(f"{name} has {', '.join(CATALOG[name].compile_modes)}" for name in suite.axes[0].backends)
        why = f"no backend has the compile mode {asked}: {modes}"
        raise SuiteError(f'suite "{suite.name}" has no cells: {why}')
    for name in named:
        if name not in {cell.backend for cell in cells.values()}:
            modes = ", ".join(CATALOG[name].compile_modes)
            line = f"{name} has no compile mode {asked}; add one of its own ({modes}), or leave out --backend {name}"
            raise SuiteError(line)
    return list(cells.values())


def plan_groups(cells: Sequence[Cell], compare: Sequence[str], baseline: str | None = None) -> list[Group]:
    """Return the groups, in the order of their first cells; a larger one is split, each part with the baseline.

    Args:
        cells: of the suite.
        compare: the axes over which cells of one group differ.
        baseline: the value of a compared axis that the baseline has; null: the first cell.

    Raises:
        SuiteError: no cell has that value.
    """
    values = {str(cell.value(axis)) for cell in cells for axis in compare}
    if baseline is not None and baseline not in values:
        raise SuiteError(f"no cell has the baseline {baseline!r}; choose from {', '.join(sorted(values))}")
    members: dict[str, list[Cell]] = {}
    for cell in cells:
        members.setdefault(_key_without(cell, compare), []).append(cell)
    groups = []
    for key, alike in members.items():
        first = next((cell for cell in alike if baseline in {str(cell.value(axis)) for axis in compare}), alike[0])
        others = [cell for cell in alike if cell is not first]
        step = MEMBERS_MAX - 1
        for part, start in enumerate(range(0, max(1, len(others)), step)):
            taken = {first.key, *(cell.key for cell in others[start : start + step])}
            groups.append(
                Group(
                    key=key if part == 0 else f"{key}{PART}{part + 1}",
                    cells=[cell.key for cell in alike if cell.key in taken],
                    baseline=first.key,
                )
            )
    return groups


def plan_shared_groups(cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str]) -> list[SharedGroups]:
    """Return the groups with their processes; those that share one are together, in the groups' order.

    Parts of a group have processes of their own, so that no more are alive than take turns; unless a process holds
    several cells of the group, as the points of a sweep: then it holds those of all parts.
    """
    by_key = {cell.key: cell for cell in cells}
    names = {key: _key_without(cell, share, keep_mode="compile_mode" not in share) for key, cell in by_key.items()}
    of_whole: dict[str, set[str]] = {}
    for group in groups:
        of_whole.setdefault(_whole(group), set()).update(group.cells)
    together: list[SharedGroups] = []
    for group in groups:
        whole = of_whole[_whole(group)]
        is_swept = len({names[key] for key in whole}) < len(whole)
        part = "" if is_swept else group.key.removeprefix(_whole(group))
        held = {key: names[key] + part for key in group.cells}
        shared = next(
            (shared for shared in together if any(plan.name in held.values() for plan in shared.members)), None
        )
        if shared is None:
            shared = SharedGroups([], [])
            together.append(shared)
        shared.groups.append(group)
        members = {plan.name: plan for plan in shared.members}
        for key, name in held.items():
            if name not in members:
                members[name] = MemberPlan(name, [])
                shared.members.append(members[name])
            if by_key[key] not in members[name].cells:
                members[name].cells.append(by_key[key])
    return together


def _whole(group: Group) -> str:
    return group.key.partition(PART)[0]


def _key_without(cell: Cell, axes: Sequence[str], *, keep_mode: bool = False) -> str:
    """Return the cell's key with `*` for these axes; between backends a default compile mode is like any other's."""
    left_out: Collection[str] = axes
    if "backend" in axes and cell.compile_mode == CATALOG[cell.backend].compile_modes[0] and not keep_mode:
        left_out = {*axes, "compile_mode"}
    return cell.key_without(left_out)


def _product(suite: Suite, axes: Axes) -> Iterator[Cell]:
    values: dict[str, Sequence[Any]] = {
        "device": axes.devices,
        "batch": axes.batches,
        "precision": axes.precisions,
        "feed": axes.feeds,
        "threads": axes.threads or [None],
        "task": axes.tasks,
        "backend": axes.backends,
        "compile_mode": axes.compile_modes,
        "variant": [variant.name for variant in suite.all_variants()],
    }
    for (workload, parameters), *combination in product(_workloads(suite, axes), *values.values()):
        cell = Cell(workload=workload, parameters=parameters, **dict(zip(values, combination, strict=True)))
        modes = CATALOG[cell.backend].compile_modes
        if cell.compile_mode == DEFAULT_COMPILE_MODE:
            yield replace(cell, compile_mode=modes[0])
        elif cell.compile_mode in modes:
            yield cell


def _workloads(suite: Suite, axes: Axes) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each workload with each combination of its own parameters: what a suite does not give has its default."""
    for name in axes.workloads:
        known = {} if suite.programs else parameters_of(name)
        values = {parameter: axes.parameters.get(parameter, [default]) for parameter, default in known.items()}
        for combination in product(*values.values()):
            yield name, dict(zip(values, combination, strict=True))


def _check(suite: Suite) -> None:
    """Raise SuiteError where a name is none of its choices, an axis is empty, or no data set can fill a batch."""
    entries = {name: entry for name, entry in CATALOG.items() if entry.builds_workloads != bool(suite.programs)}
    modes = [DEFAULT_COMPILE_MODE, *dict.fromkeys(mode for entry in entries.values() for mode in entry.compile_modes)]
    for axes in suite.axes:
        for name in ("workloads", "backends", "devices", "tasks", "batches", "precisions", "compile_modes", "feeds"):
            if not getattr(axes, name):
                raise SuiteError(f'suite "{suite.name}" has no cells: {name} is empty')
        if "fit" in axes.tasks and any(variant.slowdown_pct for variant in suite.all_variants()):
            raise SuiteError("slowdown_pct is injected into steps of train and infer; leave out the task fit")
        for workload in axes.workloads:
            check_choice("workload", workload, list(suite.programs or WORKLOADS))
        _check_parameters(suite, axes)
        for backend in axes.backends:
            check_choice("backend", backend, list(entries))
            for precision in axes.precisions:
                check_choice(f"precision of {backend}", precision, entries[backend].precisions)
            for feed in axes.feeds:
                check_choice(f"feed of {backend}", feed, entries[backend].feeds)
        if "tf32" in axes.precisions and set(axes.devices) != {"gpu"}:
            raise SuiteError("precision tf32 is a GPU's; leave it out, or measure on --device gpu alone")
        for mode in axes.compile_modes:
            check_choice("compile mode", mode, modes)
        for task in axes.tasks if suite.programs else ():
            check_choice("task of a program", task, ("train", "infer"))
        if not suite.programs:
            _check_batches(suite, axes)


def _check_parameters(suite: Suite, axes: Axes) -> None:
    workloads = [] if suite.programs else axes.workloads
    known = dict.fromkeys(parameter for workload in workloads for parameter in parameters_of(workload))
    for parameter in axes.parameters:
        if parameter not in known:
            names, choices = ", ".join(axes.workloads), ", ".join(known) or "nothing: leave it out"
            raise SuiteError(f"no parameter {parameter!r} of {names}; choose from {choices}")


def _check_network(network: Workload) -> None:
    """Raise SuiteError where its data set is not there, or its last layer does not give what its loss takes."""
    if network.data not in DATASETS:
        raise SuiteError(
            f"workload {network.name} is defined on the data set {network.data!r}, which is not there; "
            f"choose from {', '.join(DATASETS)}, or add it (docs/extending.md)"
        )
    *_, last = network.placed_layers()
    gives = last.layer.output_shape(last.input_shape)
    takes = network.input_shape if network.loss == "reconstruction" else (network.classes,)
    if gives != takes:
        what = "its input" if network.loss == "reconstruction" else f"classes={network.classes}"
        raise SuiteError(f"workload {network.name}: its last layer gives {gives}, and {what} takes {takes}; change one")


def _check_batches(suite: Suite, axes: Axes) -> None:
    for (workload, parameters), task, batch in product(_workloads(suite, axes), axes.tasks, axes.batches):
        network = workload_of(workload, parameters)
        _check_network(network)
        data = DATASETS[network.data]
        samples = data.samples("test" if task == "infer" else "train")
        if batch > samples:
            raise SuiteError(f"batch {batch} is more than the {samples} samples there are to {task} on; give fewer")
