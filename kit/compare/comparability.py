"""The gate: which cells of two runs may stand beside each other, and what else differs between the runs.

incompatible   the numbers answer different questions: not compared, unless by force
warns          could explain a difference between the numbers: compared, and said
noted          explains nothing by itself: compared, and listed

A cell's own coordinates are not graded: another batch or precision is another cell. Hardware and software are what
people compare, so they never block. `kit.compare.explaining_facts` has the grades.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kit.compare.explaining_facts import FACTS, CellFacts, Fact, Facts
from kit.compare.rows import Grade, Mismatch
from kit.errors import KitError
from kit.profile.reason import Value
from kit.stats.parity import max_relative_difference
from kit.workloads.parity import parity_tolerance

INCOMPATIBLE_KINDS = [kind for kind, fact in FACTS.items() if fact.grade == "incompatible"]
# Of a kind that another kit knows.
UNKNOWN = Fact("noted")


class NotComparableError(KitError):
    """Profiles that have nothing to compare; one line that says why."""

    exit_code = 4


def cell_mismatches(cells: Iterable[tuple[str, CellFacts]], precision: str, *, like_hardware: bool) -> list[Mismatch]:
    """Return in what one cell is not alike in several runs. What one of them did not record is no difference.

    Args:
        cells: label of a run, and the cell's facts in it; the baseline's first.
        precision: of the cell; it decides how far losses may differ that are called equal.
        like_hardware: all ran on the same hardware, as far as recorded.
    """
    holders: dict[str, dict[Value | None, list[str]]] = {kind: {} for kind in INCOMPATIBLE_KINDS}
    first: CellFacts | None = None
    for label, facts in cells:
        first = first or facts
        same = facts == first or _same_losses(facts, first, parity_tolerance(precision, like_hardware=like_hardware))
        values = facts._asdict() | {"arithmetic": "its losses" if same else "other losses"}
        for kind in INCOMPATIBLE_KINDS:
            if values[kind]:
                holders[kind].setdefault(values[kind], []).append(label)
    # What one machine is told to do is a choice; on another machine it is what that machine has.
    return [
        _mismatch(kind, kind, values, "warns" if kind == "threads" and not like_hardware else "incompatible")
        for kind, values in holders.items()
        if len(values) > 1
    ]


def _same_losses(facts: CellFacts, base_facts: CellFacts, tolerance: float) -> bool:
    """Return true, too, where losses from other data, weights or batches, or of another number, do not compare."""
    begun, base_begun = ((of.start, of.data, len(of.losses)) for of in (facts, base_facts))
    if not facts.start or begun != base_begun:
        return True
    difference = max_relative_difference(facts.losses, base_facts.losses)
    return difference is not None and difference <= tolerance


def run_mismatches(runs: Sequence[tuple[str, Facts]]) -> list[Mismatch]:
    """Return which of the runs' facts are not the same in all, gravest first."""
    holders: dict[tuple[str, str], dict[Value | None, list[str]]] = {}
    for label, facts in runs:
        for key, value in facts.items():
            holders.setdefault(key, {}).setdefault(value, []).append(label)
    mismatches = []
    for (kind, name), values in holders.items():
        fact = FACTS.get(kind, UNKNOWN)
        lacking = [label for label, facts in runs if (kind, name) not in facts]
        if lacking and not fact.is_optional:
            values.setdefault("none", []).extend(lacking)
        numbers = [value for value in values if isinstance(value, int | float)]
        is_negligible = len(numbers) == len(values) and max(numbers) - min(numbers) <= fact.negligible
        if len(values) > 1 and not is_negligible:
            mismatches.append(_mismatch(kind, name, values, fact.grade))
    order = {kind: place for place, kind in enumerate(FACTS)}
    return sorted(mismatches, key=lambda mismatch: order.get(mismatch.kind, len(order)))


def blocking(mismatches: Iterable[Mismatch]) -> list[Mismatch]:
    """Return those for which the gate keeps two cells apart."""
    return [mismatch for mismatch in mismatches if mismatch.grade == "incompatible"]


def merged(mismatches: Iterable[Mismatch]) -> list[Mismatch]:
    """Return each kind of difference between cells once, whichever cells it is in."""
    kinds: dict[tuple[str, Grade], dict[Value | None, dict[str, None]]] = {}
    for mismatch in mismatches:
        for value, labels in mismatch.values:
            kinds.setdefault((mismatch.kind, mismatch.grade), {}).setdefault(value, {}).update(dict.fromkeys(labels))
    return [_mismatch(kind, kind, values, grade) for (kind, grade), values in kinds.items()]


def _mismatch(kind: str, name: str, holders: Mapping[Value | None, Iterable[str]], grade: Grade) -> Mismatch:
    values = [(value, list(labels)) for value, labels in holders.items()]
    return Mismatch(kind=kind, name=name, grade=grade, values=values)
