"""The gate: which cells may stand beside each other, and why others may not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from kit.compare.cell_differences import CellDifference, cell_differences
from kit.errors import KitError
from kit.profile.brief import AnyCell, AnyProfile, launches_of
from kit.profile.cell import Cell
from kit.profile.hardware import same_hardware

LabelledProfile = tuple[str, AnyProfile]
# (label, cell key) -> in what that cell differs from the baseline's: of every cell that both have.
Pairs = dict[tuple[str, str], list[CellDifference]]

# What would let a blocked pair through.
REMEDIES = {
    "data": "give both runs the same --data and --seed",
    "arithmetic": "measure both with the same kit and suite",
    "threads": "let both runs use as many CPUs",
    "planted slow-down": "leave the self-test's launches out",
}
# Cells looked through for one that is nearly the same.
LOOKED_THROUGH_MAX = 200


class NotComparableError(KitError):
    """Profiles that have nothing to compare; one line that says why."""

    exit_code = 4


def work_of(cell: Cell) -> tuple[str | int, ...]:
    """What a cell does, whoever does it: all its coordinates but backend and compile mode."""
    return (cell.workload, cell.task, cell.device, cell.batch, cell.precision, cell.feed, cell.devices)


def data_of(result: AnyCell) -> str | None:
    """Name of the data that its launches ran on; both names where launches differ; null where none recorded it."""
    return " and ".join(launches_of(result).data_names) or None


def pairs_of(profiles: Sequence[LabelledProfile], baseline: LabelledProfile) -> Pairs:
    """Every cell of the others that the baseline profile has, too."""
    own = {result.key: launches_of(result) for result in baseline[1].cells}
    pairs: Pairs = {}
    for label, profile in profiles:
        if label == baseline[0]:
            continue
        like = same_hardware(profile.identity, baseline[1].identity)
        for result in profile.cells:
            theirs = own.get(result.key)
            if theirs is not None:
                pairs[label, result.key] = cell_differences(launches_of(result), theirs, like_hardware=like)
    return pairs


def refusal(differences: Sequence[CellDifference]) -> str | None:
    """Why two cells' numbers may not be compared, of what they differ in; null: they may."""
    return "; ".join(difference.in_words for difference in differences if difference.grade == "blocks") or None


def check_comparable(
    profiles: Sequence[LabelledProfile], baseline: LabelledProfile, pairs: Pairs, *, force: bool = False
) -> None:
    """Refuse profiles without a single pair of comparable cells.

    Raises:
        NotComparableError: no cell in common, whatever `force`; or a difference that blocks in every common cell.
    """
    if not pairs:
        raise NotComparableError(
            f"no cell of {baseline[0]} is in another profile{_nearest(profiles, baseline)}; compare runs of the same "
            f"suite ({baseline[0]} has {_examples(baseline[1])})"
        )
    if force:
        return
    refusals = {key: words for key, found in pairs.items() if (words := refusal(found)) is not None}
    if len(refusals) == len(pairs):
        first = next(iter(refusals))
        kinds = dict.fromkeys(found.kind for found in pairs[first] if found.grade == "blocks")
        others = len(set(refusals.values())) - 1
        rest = f" (and {others} more in other cells)" if others else ""
        raise NotComparableError(
            f"no common cell can be compared: {refusals[first]}{rest}; "
            f"{' and '.join(REMEDIES[kind] for kind in kinds)}, or compare all the same with --force"
        )


def _nearest(profiles: Sequence[LabelledProfile], baseline: LabelledProfile) -> str:
    """``: nearest, in b, batch 256 against 128``; empty where no cell is near."""
    own_cells: Sequence[AnyCell] = baseline[1].cells
    others = ((label, result.cell) for label, profile in profiles if label != baseline[0] for result in profile.cells)
    apart = [
        (len(names), label, cell, own.cell, names)
        for label, cell in islice(others, LOOKED_THROUGH_MAX)
        for own in islice(own_cells, LOOKED_THROUGH_MAX)
        if (names := [name for name in Cell.__struct_fields__ if getattr(cell, name) != getattr(own.cell, name)])
    ]
    if not apart:
        return ""
    _, label, cell, own, names = min(apart, key=lambda candidate: candidate[0])
    words = ", ".join(f"{name.replace('_', ' ')} {getattr(cell, name)} against {getattr(own, name)}" for name in names)
    return f": nearest, in {label}, {words}"


def _examples(profile: AnyProfile) -> str:
    keys = [result.key for result in profile.cells]
    if not keys:
        return "no cells"
    return keys[0] if len(keys) == 1 else f"{keys[0]} and {len(keys) - 1} more"
