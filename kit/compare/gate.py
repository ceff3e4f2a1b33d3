"""The gate: which cells may stand beside each other, and why others may not."""

from __future__ import annotations

from collections.abc import Sequence

from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.schema import CellResult, Profile
from kit.stats.parity_verdict import same_losses

LabelledProfile = tuple[str, Profile]


class NotComparableError(KitError):
    """Profiles that have nothing to compare; one line that says why."""

    exit_code = 4


def work_of(cell: Cell) -> tuple[str | int, ...]:
    """What a cell does, whoever does it: all its coordinates but backend and compile mode."""
    return (cell.workload, cell.task, cell.device, cell.batch, cell.precision, cell.feed, cell.devices)


def data_of(result: CellResult) -> str | None:
    """Name of the data that its launches ran on; both names where launches differ; null where none recorded it."""
    names = sorted({launch.data.name for launch in result.launches if launch.data is not None})
    return " and ".join(names) or None


def refusal(result: CellResult, baseline: CellResult) -> str | None:
    """Why the two cells' numbers may not be compared; null: they may."""
    other_data = _other_data(result, baseline)
    if other_data is None and same_losses(result, baseline) is False:
        return "different arithmetic (parity): its first losses are not the baseline's"
    return other_data


def _other_data(result: CellResult, baseline: CellResult) -> str | None:
    ours, theirs = data_of(result), data_of(baseline)
    if ours is not None and theirs is not None and ours != theirs:
        return f"ran on {ours} data, the baseline on {theirs}"
    return None


def check_comparable(profiles: Sequence[LabelledProfile], baseline: LabelledProfile) -> None:
    """Refuse profiles without a single pair of comparable cells.

    Raises:
        NotComparableError: no cell in common, or other data in every common cell.
    """
    own = {result.key: result for result in baseline[1].cells}
    pairs = [
        (result, own[result.key])
        for label, profile in profiles
        if label != baseline[0]
        for result in profile.cells
        if result.key in own
    ]
    if not pairs:
        raise NotComparableError(
            f"no cell of {baseline[0]} is in another profile; compare runs of the same suite "
            f"({baseline[0]} has {_examples(baseline[1])})"
        )
    refusals = [_other_data(*pair) for pair in pairs]
    if all(refusals):
        raise NotComparableError(f"no common cell can be compared: it {refusals[0]}; give both runs the same --data")


def _examples(profile: Profile) -> str:
    keys = [result.key for result in profile.cells]
    if not keys:
        return "no cells"
    return keys[0] if len(keys) == 1 else f"{keys[0]} and {len(keys) - 1} more"
