"""Which devices the cells of a run used, and which were there and idle."""

from __future__ import annotations

from collections.abc import Iterable

from kit.compare.rows import UsedDevice
from kit.profile.cell import Cell
from kit.profile.identity import Identity
from kit.profile.schema import Profile

# Every machine has it, and it is used by whatever else is.
HOST = "cpu"


def devices_used(profile: Profile) -> list[UsedDevice]:
    """Return a device for each kind that cells ran on, in their order."""
    kinds = dict.fromkeys(result.cell.device for result in profile.cells)
    return [_used(profile, kind) for kind in kinds]


def devices_idle(identity: Identity, cells: Iterable[Cell]) -> list[tuple[str, str]]:
    """Return kind and model of each accelerator that is here and that none of the cells is for, each once."""
    used = {cell.device for cell in cells}
    return list(dict.fromkeys((board.kind, board.model) for board in identity.accelerators() if board.kind not in used))


def _used(profile: Profile, kind: str) -> UsedDevice:
    if kind == HOST:
        return UsedDevice(kind=kind, model=profile.identity.cpu_model, device_ids=[], used=1, present=1)
    results = [result for result in profile.cells if result.cell.device == kind]
    device_ids = dict.fromkeys(place for result in results for launch in result.launches for place in launch.device_ids)
    boards = [board for board in profile.identity.accelerators() if board.kind == kind]
    used = max((result.cell.devices for result in results), default=1)
    here = [board for board in boards if board.device_id in device_ids] or boards[:used]
    return UsedDevice(
        kind=kind,
        model=" and ".join(dict.fromkeys(board.model for board in here)) or kind,
        device_ids=list(device_ids),
        used=used,
        present=len(boards),
    )
