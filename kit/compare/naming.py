"""What a row and a group are called: the coordinates that tell them apart, and those that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.profile.cell import AXES, Cell

# In a title only where groups differ in them, or where a row is named by something else; workload and task always.
TITLED = ("backend", "batch", "device", "precision", "compile_mode", "feed", "devices", "variant")
# Said with their axis: a bare number says nothing.
PREFIX = {"batch": "batch ", "devices": "x"}


def label_members(by_key: Mapping[str, Cell], compared: Sequence[str]) -> dict[str, str]:
    """Return a name for each cell key: its values on the compared axes, and on others where these do not tell apart."""
    cells = list(by_key.values())
    axes = [axis for axis in compared if axis in AXES] or ["backend"]
    for axis in AXES:
        if len({_name(cell, axes) for cell in cells}) == len(cells):
            break
        if axis not in axes and len({getattr(cell, axis) for cell in cells}) > 1:
            axes.append(axis)
    return {key: _name(cell, axes) for key, cell in by_key.items()}


def titles(groups: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """Return the title of each group in parts: workload and task, then what its cells share and others' do not."""
    cells = [cell for own in groups for cell in own]
    varying = {axis for axis in TITLED if len({getattr(cell, axis) for cell in cells}) > 1}
    if len({(cell.backend, cell.compile_mode) for cell in cells}) == len({cell.backend for cell in cells}):
        varying.discard("compile_mode")  # each backend has its own
    found = []
    for own in groups:
        shared = [axis for axis in AXES if len({getattr(cell, axis) for cell in own}) == 1]
        head = " ".join(getattr(own[0], axis) for axis in ("workload", "task") if axis in shared)
        told = [axis for axis in TITLED if axis in shared and (axis in varying or axis == "backend")]
        found.append([head, *(_name(own[0], [axis]) for axis in told)])
    return found


def _name(cell: Cell, axes: Sequence[str]) -> str:
    return " ".join(f"{PREFIX.get(axis, '')}{getattr(cell, axis)}" for axis in axes)
