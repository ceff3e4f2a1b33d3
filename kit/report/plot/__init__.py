"""Which pictures there are, and which one a profile's suite asks for. Imports nothing that draws."""

from __future__ import annotations

from collections.abc import Sequence

from kit.profile.schema import Profile
from kit.workloads.operations import is_operation

# Axes whose picture has their name.
SWEPT = ("devices", "batch", "threads", "units", "layers", "width", "depth", "heads", "length")
# Each with the file beside this one that draws it.
KINDS = dict.fromkeys(SWEPT, "sweep") | {
    "platforms": "platforms", "gain": "gain", "latency": "sweep", "blocks": "groups", "rounds": "groups",
    "roofline": "roofline",
}  # fmt: skip


def usual_kind(profiles: Sequence[Profile]) -> str:
    """Return the kind of the axis on which the cells have most values.

    Where they have one value on each: `platforms`, where there are several, else `rounds`. Of operations: `roofline`.
    """
    cells = [result.cell for profile in profiles for result in profile.cells]
    if all(map(is_operation, cells)):
        return "roofline"
    values = {axis: len({cell.value(axis) for cell in cells} - {None}) for axis in SWEPT}
    most = max(SWEPT, key=lambda axis: values[axis])
    if values[most] > 1:
        return most
    hardware = {(of.identity.hardware_sha256, result.cell.device) for of in profiles for result in of.cells}
    return "platforms" if len(hardware) > 1 else "rounds"
