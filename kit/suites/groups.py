"""Groups of cells that take turns, and bundles of groups that share workers.

group   cells that are alike but for the compared axes: at most four, which take turns in a round
bundle  groups whose cells share workers, measured together
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kit.backends.backend_catalog import CATALOG
from kit.profile.cell import Cell
from kit.profile.schema import PART, Group
from kit.suites.suite import check_choice
from kit.workloads.device_operations import is_operation

# Pairs that lie further apart in a cycle pair worse: 0.75, 3 and 6 s apart, an SD of 1.1 % became 1.7, 2.9 and 3.9 %.
GROUP_CELLS_MAX = 4
# Three frameworks on a GPU, two of them with and without a compiler.
GROUP_FRAMEWORKS_MAX = 5
# Ends the name of a worker whose cells are in an earlier group, too.
AGAIN = " again"


class WorkerPlan(NamedTuple):
    """The cells of one worker."""

    name: str
    cells: list[Cell]


class Bundle(NamedTuple):
    """Groups that are measured by the same workers."""

    groups: list[Group]
    workers: list[WorkerPlan]


def plan_groups(
    cells: Sequence[Cell], compare: Sequence[str], baseline: str | None = None, also: Sequence[str] = ()
) -> list[Group]:
    """Return groups of cells that differ in the axes `compare`, in the order of their first cells.

    Behind them are the groups that differ in the axes `also` and have several cells. A cell may be in one of each kind.

    A group of more than GROUP_CELLS_MAX (GROUP_FRAMEWORKS_MAX between backends) is split, each part with the baseline:
    the cell that has the value `baseline` on a compared axis, or the first.

    Raises:
        SuiteError: no cell has that value.
    """
    values = {str(cell.value(axis)) for cell in cells for axis in compare}
    if baseline is not None:
        check_choice("baseline", baseline, sorted(values))
    alike_by_key: dict[str, list[Cell]] = {}
    for cell in cells:
        entry = CATALOG[cell.backend]
        is_default = cell.compile_mode in (entry.default_mode(cell.device), entry.compile_modes[0])
        # Operations are compared between backends, whatever networks are compared over.
        over = ["backend"] if is_operation(cell) else compare
        # Between backends a default compile mode is like any other's.
        differing = [*over, "compile_mode"] if "backend" in over and is_default else over
        alike_by_key.setdefault(cell.key_without(differing), []).append(cell)
    groups = []
    for key, alike in alike_by_key.items():
        first = next((cell for cell in alike if baseline in {str(cell.value(axis)) for axis in compare}), alike[0])
        others = [cell for cell in alike if cell is not first]
        step = (GROUP_FRAMEWORKS_MAX if "backend" in compare else GROUP_CELLS_MAX) - 1
        for part, start in enumerate(range(0, max(1, len(others)), step)):
            taken = [first, *others[start : start + step]]
            part_key = key if part == 0 else f"{key}{PART}{part + 1}"
            in_order = [cell.key for cell in alike if cell in taken]
            groups.append(Group(key=part_key, cells=in_order, baseline=first.key))
    if also:
        networks = [cell for cell in cells if not is_operation(cell)]
        groups += [group for group in plan_groups(networks, also) if len(group.cells) > 1]
    return groups


def plan_bundles(cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str]) -> list[Bundle]:
    """Return the groups with their workers; those that share a worker are together, in the groups' order.

    Parts of a group, and groups whose cells are in an earlier group, have workers of their own, so that no more are
    alive than take turns; unless a worker holds several cells of the group, as the points of a sweep: then it holds
    those of all parts.
    """
    by_key = {cell.key: cell for cell in cells}
    # What the cells of one worker have in common: operations share theirs.
    names = {
        key: f"operations {cell.key_without(('workload',))}" if is_operation(cell) else cell.key_without(share)
        for key, cell in by_key.items()
    }
    whole: dict[str, set[str]] = {}
    first: dict[str, str] = {}  # key of a cell -> of the first group that has it
    for group in groups:
        whole_key = group.key.partition(PART)[0]
        whole.setdefault(whole_key, set()).update(group.cells)
        for key in group.cells:
            first.setdefault(key, whole_key)
    bundles: list[Bundle] = []
    for group in groups:
        whole_key, separator, number = group.key.partition(PART)
        is_swept = len({names[key] for key in whole[whole_key]}) < len(whole[whole_key])
        again = AGAIN if any(first[key] != whole_key for key in group.cells) else ""
        held = {key: names[key] + again + ("" if is_swept else separator + number) for key in group.cells}
        sharing = (each for each in bundles if any(worker.name in held.values() for worker in each.workers))
        if (bundle := next(sharing, None)) is None:
            bundles.append(bundle := Bundle([], []))
        bundle.groups.append(group)
        workers = {worker.name: worker for worker in bundle.workers}
        for key, name in held.items():
            if name not in workers:
                bundle.workers.append(workers.setdefault(name, WorkerPlan(name, [])))
            if by_key[key] not in workers[name].cells:
                workers[name].cells.append(by_key[key])
    return bundles
