"""The gate: which cells of two runs may be compared, and what else differs between the runs.

incompatible   the numbers answer different questions: not compared, unless by force
warns          could explain a difference between the numbers: compared, and said
noted          explains nothing by itself: compared, and listed

A cell's own coordinates are not graded: another batch or precision is another cell. Hardware and software are what
people compare, so they never block. `kit.profile.facts` has the grades.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from kit.compare.explaining_facts import NONE, CellFacts, Facts
from kit.compare.naming import axes_of
from kit.compare.parity import max_relative_difference
from kit.compare.rows import Mismatch
from kit.errors import KitError
from kit.profile.cell import AXES, Cell
from kit.profile.facts import FACTS, Grade, fact_of, kind_of, title_of
from kit.profile.reason import Value
from kit.workloads.parity import parity_tolerance


class NotComparableError(KitError):
    """Profiles that have nothing to compare; one line that says why."""

    exit_code = 4


# Axis of a cell -> option of `kit run` that chooses its values.
OPTIONS = {
    "workload": "--workload", "backend": "--backend", "task": "--task", "batch": "--batch", "precision": "--dtype",
    "compile_mode": "--compile-mode", "feed": "--feed", "threads": "--threads",
}  # fmt: skip
# In more axes than these two cells do not ask the same question at all.
AXES_APART_MAX = 2


def nothing_common(base_label: str, base_cells: Sequence[Cell], label: str, cells: Sequence[Cell]) -> KitError:
    """Return the error that says in which axes the cells of two sides differ, and what would make one common."""
    for count in range(1, AXES_APART_MAX + 1):
        for axes in combinations([axis for axis in axes_of([*base_cells, *cells]) if axis != "device"], count):
            known = {cell.key_without(("device", *axes)): cell for cell in reversed(base_cells)}
            for cell in cells:
                base = known.get(cell.key_without(("device", *axes)))
                if base is not None and all(base.value(axis) != cell.value(axis) for axis in axes):
                    apart = ", ".join(
                        f"{axis.replace('_', ' ')} {_value(base, axis)} in {base_label}, "
                        f"{_value(cell, axis)} in {label}"
                        for axis in axes
                    )
                    options = [(OPTIONS[axis], base.value(axis)) for axis in axes if axis in OPTIONS]
                    options += [("--parameter", f"{axis}={base.value(axis)}") for axis in axes if axis not in AXES]
                    given = " ".join(f"{option} {value}" for option, value in options if value is not None)
                    left_out = " ".join(option for option, value in options if value is None)
                    words = [f"with {given}" if given else "", f"without {left_out}" if left_out else ""]
                    remedy = f"measure {label} {' and '.join(filter(None, words))}" if options else "measure both alike"
                    return NotComparableError(f"no cell is in both: {apart}; {remedy}")
    has = "; ".join(
        f"{side} has {next((cell.key for cell in known), 'none')}"
        for side, known in ((base_label, base_cells), (label, cells))
    )
    return NotComparableError(f"no cell is in both: {has}; compare runs of the same suite")


def _value(cell: Cell, axis: str) -> str:
    value = cell.value(axis)
    return "by default" if value is None else str(value)


def refusal(mismatch: Mismatch) -> KitError:
    """Return the error of cells that are all kept apart; it says in what, and which option would make them alike."""
    (base_value, others), (value, labels) = mismatch.values[0], mismatch.values[-1]
    option = FACTS[mismatch.kind].option.format(value=base_value)
    alike = f"measure both with {option}" if option else "measure both alike"
    return NotComparableError(
        f"no common cell can be compared: {title_of(mismatch.kind)} is {value} in {labels[0]} and "
        f"{base_value} in {others[0]}; {alike}, or compare them anyway with --force"
    )


def cell_mismatches(cells: Iterable[tuple[str, CellFacts]], precision: str, *, like_hardware: bool) -> list[Mismatch]:
    """Return in what one cell is not alike in several runs. What one of them did not record is no difference.

    Args:
        cells: label of a run, and the cell's facts in it; the baseline's first.
        precision: of the cell; it decides how far losses may differ that are called equal.
        like_hardware: all ran on the same hardware, as far as recorded.
    """
    kinds = [kind for kind, fact in FACTS.items() if fact.grade == "incompatible"]
    holders: dict[str, dict[Value | None, list[str]]] = {kind: {} for kind in kinds}
    first: CellFacts | None = None
    for label, facts in cells:
        first = first or facts
        same = facts == first or _same_losses(facts, first, parity_tolerance(precision, like_hardware=like_hardware))
        values = facts._asdict() | facts.of_run | {"arithmetic": "its losses" if same else "other losses"}
        for kind in kinds:
            if values.get(kind):
                holders[kind].setdefault(values[kind], []).append(label)
    # The number of threads is a choice on one machine; another machine has what it has.
    return [
        _mismatch(kind, kind, values, "warns" if kind == "threads" and not like_hardware else "incompatible")
        for kind, values in holders.items()
        if len(values) > 1
    ]


def _same_losses(facts: CellFacts, base_facts: CellFacts, tolerance: float) -> bool:
    """Return true, too, where losses from other data, weights or batches, or of another number, do not compare."""
    begun, base_begun = ((each.start, each.data, len(each.losses)) for each in (facts, base_facts))
    if not facts.start or begun != base_begun:
        return True
    difference = max_relative_difference(facts.losses, base_facts.losses)
    return difference is not None and difference <= tolerance


def run_mismatches(runs: Sequence[tuple[str, Facts]]) -> list[Mismatch]:
    """Return which of the runs' facts are not the same in all, gravest first."""
    holders: dict[str, dict[Value | None, list[str]]] = {}
    for label, facts in runs:
        for name, value in facts.items():
            holders.setdefault(name, {}).setdefault(value, []).append(label)
    mismatches = []
    for name, values in holders.items():
        fact = fact_of(name)
        lacking = [label for label, facts in runs if name not in facts]
        if lacking and not fact.is_optional:
            values.setdefault(NONE, []).extend(lacking)
        numbers = [value for value in values if isinstance(value, int | float)]
        is_negligible = len(numbers) == len(values) and max(numbers) - min(numbers) <= fact.negligible
        if len(values) > 1 and not is_negligible:
            mismatches.append(_mismatch(kind_of(name)[0], name, values, fact.grade or "noted"))
    order = {kind: index for index, kind in enumerate(FACTS)}
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
