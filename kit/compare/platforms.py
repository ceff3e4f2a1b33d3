"""Platforms: a machine and the device of it on which cells ran, each a side of its own.

cpu.json   mlp/torch/cpu/…   ─┐
gpu.json   mlp/torch/gpu/…   ─┴─ mlp/torch/*/…   what was asked is the row, where it ran the column
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kit.compare.naming import label_members
from kit.compare.notes import axis_values
from kit.compare.runs import CellRun, Run
from kit.profile.cell import Cell
from kit.profile.reason import Reason, reason

DEVICE = ("device",)
# A cell that a platform lacks may be there with another of these.
TOLD_APART = ("batch", "precision", "compile_mode", "feed", "devices", "threads", "variant")


def are_platforms(runs: Iterable[Run]) -> bool:
    """Whether the runs' cells ran on more than one machine and device."""
    return len({(run.hardware, cell_run.cell.device) for run in runs for cell_run in run.cells.values()}) > 1


def on_platforms(runs: Iterable[Run]) -> list[Run]:
    """Return each run once for every device of its cells; a cell's key, and its group's, is what was asked."""
    platforms = []
    for run in runs:
        for device in dict.fromkeys(cell_run.cell.device for cell_run in run.cells.values()):
            here = {key: cell_run for key, cell_run in run.cells.items() if cell_run.cell.device == device}
            devices = [used for used in run.headline.devices if used.kind == device]
            axes = axis_values(cell_run.cell for cell_run in here.values())
            platforms.append(
                run._replace(
                    identity=run.identity + device.encode(),
                    hardware=f"{run.hardware} {device}",
                    cells=_by_question(here, device, [axis for axis in run.compared if axis not in DEVICE]),
                    headline=msgspec.structs.replace(run.headline, devices=devices, axes=axes),
                    fastest={
                        _without(device, group): [here[key].cell.key_without(DEVICE) for key in keys if key in here]
                        for group, keys in run.fastest.items()
                    },
                )
            )
    return platforms


def _by_question(cell_runs: Mapping[str, CellRun], device: str, compared: Sequence[str]) -> dict[str, CellRun]:
    groups: dict[str, dict[str, CellRun]] = {}
    for cell_run in cell_runs.values():
        of_group = groups.setdefault(_without(device, cell_run.group), {})
        of_group[cell_run.cell.key_without(DEVICE)] = cell_run
    by_question: dict[str, CellRun] = {}
    for group, members in groups.items():
        names = label_members({key: member.cell for key, member in members.items()}, compared)
        by_question |= {key: member._replace(group=group, name=names[key]) for key, member in members.items()}
    return by_question


def _without(device: str, group: str) -> str:
    return group.replace(f"/{device}/", "/*/", 1)


def fastest_of(runs: Sequence[Run], group: str) -> list[str]:
    """Return the keys of the cells that are shown to be the fastest, or tied with it, in any of a platform's runs.

    None where its runs have no such cell in common.
    """
    of_runs = [run.fastest[group] for run in runs if group in run.fastest]
    in_all = [key for key in of_runs[0] if all(key in keys for keys in of_runs)] if of_runs else []
    return list(dict.fromkeys(key for keys in of_runs for key in keys)) if in_all else []


def why_missing(runs: Sequence[Run], cell: Cell) -> Reason:
    """Return why a platform has no such cell: its backend was skipped, it was measured otherwise, or not at all."""
    for run in runs:
        for note in run.notes:
            if note.what.code == "skipped" and note.what.values.get("backend") == cell.backend:
                return note.because or note.what
        for axis in TOLD_APART:
            wanted = cell.key_without((*DEVICE, axis))
            for other in (cell_run.cell for cell_run in run.cells.values()):
                if other.key_without((*DEVICE, axis)) == wanted:
                    return reason("measured_otherwise", axis=axis, value=str(other.value(axis)))
    return reason("not_measured")
