"""What cells differ in and what they share: the names of rows, the titles of groups, the axis of a sweep."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from kit.profile.cell import AXES, DEFAULT_VARIANT, FRAMEWORKS_OWN, OWN, Cell
from kit.workloads.device_operations import is_operation

# In a title only where groups differ in them, or where a row is named by something else; workload and task always.
TITLED = ("backend", "batch", "device", "precision", "compile_mode", "feed", "devices", "threads", "variant")
# Said with their axis: a bare number says nothing.
PREFIX = {"batch": "batch "}
COUNTED = {"devices": "device", "threads": "thread"}
# Every such device has these in its name: trademarks, makers, and what /proc/cpuinfo adds.
NOT_TOLD = re.compile(r"\((?:R|TM)\)|\bNVIDIA\b|\b(?:CPU|Processor)\b|\b\d+-Core\b|@.*", re.IGNORECASE)


def label_members(by_key: Mapping[str, Cell], compared: Sequence[str]) -> dict[str, str]:
    """Return a name for each cell key: its values on the compared axes, and on others where these do not tell apart."""
    return dict(zip(by_key, _member_names(tuple(by_key.values()), tuple(compared)), strict=True))


@lru_cache(maxsize=1024)  # many profiles have the same cells, here and below
def _member_names(cells: Sequence[Cell], compared: Sequence[str]) -> list[str]:
    known = axes_of(cells)
    if all(map(is_operation, cells)):
        compared = ["backend"]
    axes = [axis for axis in compared if axis in known] or ["backend"]
    if "variant" in axes and len(cells) > 1:
        # The name of a variant, or of a framework whose variant all have, says what is set: a compile mode, too.
        telling = [axis for axis in ("variant", "backend") if len({cell.value(axis) for cell in cells}) == len(cells)]
        axes = telling[:1] or axes
    for axis in known:
        if len({name_of(cell, axes) for cell in cells}) == len(cells):
            break
        if axis not in axes and _differ_in(cells, axis):
            axes.append(axis)
    names = [name_of(cell, axes) for cell in cells]
    if "precision" in axes or not _differ_in(cells, "precision"):
        return names
    # A row says in which arithmetic it is, where that is not everyone's.
    return [
        name if cell.precision in ("float32", FRAMEWORKS_OWN) else f"{name} {cell.precision}"
        for name, cell in zip(names, cells, strict=True)
    ]


def cell_names(cells: Sequence[Cell]) -> dict[str, str]:
    """Return each cell's name by its key: ``mlp (torch, train, batch 128)``, and whatever else tells it apart."""
    named = ["backend", "task", "batch"]
    others = [axis for axis in axes_of(cells) if axis not in ("workload", *named, "compile_mode")]
    if not _each_backend_has_its_mode(cells):
        others.append("compile_mode")
    named += [axis for axis in others if _differ_in(cells, axis)]
    names = {}
    for cell in cells:
        # A program's backend is no framework, and an operation has one task and batch.
        unsaid = ["backend"] if cell.precision == OWN else ["task", "batch"] if is_operation(cell) else []
        unsaid += [] if says_task(cells) else ["task"]
        unsaid += ["batch"] if cell.precision == OWN and cell.batch == 1 else []  # as of every command
        # A cell has the parameters of its own workload.
        axes = [axis for axis in named if axis not in unsaid and (axis in AXES or cell.value(axis) is not None)]
        values = ", ".join(_shown(cell, axis) for axis in axes)
        names[cell.key] = f"{cell.workload} ({values})" if values else cell.workload
    return names


def axes_of(cells: Sequence[Cell]) -> list[str]:
    """Return all axes, the parameters of these cells' workloads first."""
    return [*_parameters(cells), *AXES]


def axis_values(cells: Iterable[Cell]) -> Mapping[str, Sequence[str]]:
    """Return the values of cells on each axis, in their order."""
    return _axis_values(tuple(cells))


@lru_cache(maxsize=1024)
def _axis_values(cells: Sequence[Cell]) -> Mapping[str, Sequence[str]]:
    return {axis: list(dict.fromkeys(str(cell.value(axis)) for cell in cells)) for axis in AXES}


def swept_axis(cells: Sequence[Cell], compared: Sequence[str]) -> str | None:
    """Return the one axis with sizes that these cells differ in; None where they differ in others."""
    varying = [axis for axis in compared if _differ_in(cells, axis)]
    if len(varying) != 1 or varying[0] in ("backend", "workload", "variant", "compile_mode", "precision", "task"):
        return None
    return varying[0] if all(isinstance(cell.value(varying[0]), int) for cell in cells) else None


def titles(groups: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """Return the title of each group in parts: workload and task, then what its cells share and others' do not."""
    all_titles = []
    for group in groups:
        # A network is not told apart from an operation by its batch.
        kind = is_operation(group[0])
        cells = [cell for other in groups if is_operation(other[0]) == kind for cell in other]
        known = [*_parameters(cells), *TITLED]
        named = {axis for axis in known if _differ_in(cells, axis)}
        if _each_backend_has_its_mode(cells):
            named.discard("compile_mode")
        shared = [axis for axis in axes_of(cells) if not _differ_in(group, axis)]
        heads = ("workload", "task") if not kind and says_task(cells) else ("workload",)
        head = " ".join(getattr(group[0], axis) for axis in heads if axis in shared)
        if group[0].precision != OWN:  # the framework of a user program is not known
            named.add("backend")
        elif "workload" not in shared:
            head = f"programs {head}".rstrip()
        titled = [axis for axis in known if axis in shared and axis in named and group[0].value(axis) is not None]
        all_titles.append([head, *(name_of(group[0], [axis]) for axis in titled)])
    return all_titles


def says_task(cells: Iterable[Cell]) -> bool:
    """Return whether the task of these cells says what they do.

    A user program that takes no task is planned as one that trains, whatever it does.
    """
    return any(cell.precision != OWN or cell.task != "train" for cell in cells)


def platform_names(platforms: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return a name for each platform, given with its device, model and label: ``gpu · H100 80GB HBM3``.

    Where two would have the same, their labels tell them apart.
    """
    names = [f"{device} · {short_model(model)}" for device, model, _ in platforms]
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} ({label})" for name, (_, _, label) in zip(names, platforms, strict=True)
    ]


def short_model(model: str) -> str:
    """Return ``AMD EPYC 7763`` of ``AMD EPYC 7763 64-Core Processor``."""
    return " ".join(NOT_TOLD.sub(" ", model).split()) or model


def _each_backend_has_its_mode(cells: Sequence[Cell]) -> bool:
    return len({(cell.backend, cell.compile_mode) for cell in cells}) == len({cell.backend for cell in cells})


def _parameters(cells: Sequence[Cell]) -> list[str]:
    return sorted({name for cell in cells for name in cell.parameters})


def _differ_in(cells: Sequence[Cell], axis: str) -> bool:
    return len({cell.value(axis) for cell in cells}) > 1


def name_of(cell: Cell, axes: Sequence[str]) -> str:
    """Return the values on these axes; of the default variant nothing, where another axis says something."""
    known = [axis for axis in axes if cell.value(axis) is not None or axis == axes[0]]
    if len(known) > 1 and cell.variant == DEFAULT_VARIANT:
        known = [axis for axis in known if axis != "variant"]
    return " ".join(_shown(cell, axis) for axis in known)


def _shown(cell: Cell, axis: str) -> str:
    value = cell.value(axis)
    if axis in COUNTED:
        return f"all {COUNTED[axis]}s" if value is None else f"{value} {COUNTED[axis]}{'' if value == 1 else 's'}"
    if axis not in AXES:
        return f"{axis} {value}"
    return f"{PREFIX.get(axis, '')}{value}"
