"""Which pictures there are, and which one a profile's suite asks for. Imports nothing that draws."""

from __future__ import annotations

from collections.abc import Sequence

from kit.profile.schema import Profile

# Axes whose picture has their name.
SWEPT = ("batch", "threads", "units", "layers", "width", "depth", "heads", "length")
# Each with the file beside this one that draws it.
KINDS = dict.fromkeys(SWEPT, "sweep") | {"gain": "gain", "latency": "sweep", "blocks": "groups", "rounds": "groups"}
USUAL = "rounds"


def usual_kind(profiles: Sequence[Profile]) -> str:
    """Return the kind of the axis on which the cells have most values; where they have one value on each, `rounds`."""
    cells = [result.cell for profile in profiles for result in profile.cells]
    values = {axis: len({cell.value(axis) for cell in cells} - {None}) for axis in SWEPT}
    most = max(SWEPT, key=lambda axis: values[axis])
    return most if values[most] > 1 else USUAL
