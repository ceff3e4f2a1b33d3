"""The gate: which cells of two runs may stand beside each other, and what else differs between the runs.

blocks   the numbers answer different questions: not compared, unless by force
warns    could explain a difference between the numbers: compared, and said
noted    explains nothing by itself: compared, and listed

A cell's own coordinates are not graded: another batch or precision is another cell. Hardware and software are what
people compare, so they never block. `kit.report.why` says what each may do to the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kit.compare.facts import CellFacts, Facts
from kit.compare.rows import Grade, Mismatch
from kit.errors import KitError
from kit.profile.reason import Value
from kit.stats.parity import max_relative_difference

BLOCKING = ("data", "arithmetic", "threads", "epochs")
# In the order in which they are told.
GRADES: dict[str, Grade] = {
    **dict.fromkeys(BLOCKING, "blocks"),
    **dict.fromkeys(("cpu", "accelerator", "memory_b", "hypervisor", "cpu_flags", "microcode"), "warns"),
    **dict.fromkeys(("cpu_limit", "memory_limit_b", "container", "kernel", "driver"), "warns"),
    **dict.fromkeys(("package", "python", "environment", "program", "kit", "plan"), "warns"),
    **dict.fromkeys(("governor", "turbo", "power_cap_w", "clock_limit_mhz"), "warns"),
    **dict.fromkeys(("load_1min", "frequency_mhz", "temperature_c", "stolen_pct", "waiting_pct"), "warns"),
    **dict.fromkeys(("host", "image", "image_digest", "libc", "os"), "noted"),
    **dict.fromkeys(("clock", "sensor", "seed", "suite", "rounds", "schema"), "noted"),
}
# By how much two profiles may differ in a quantity before it is called a difference.
NEGLIGIBLE = {
    "load_1min": 0.5,  # half a CPU busy is what a quiet desktop or a finishing build shows
    "frequency_mhz": 100.0,  # one step of most processors' clocks
    "temperature_c": 10.0,  # less is the difference between two rooms
    "stolen_pct": 1.0,  # of all CPU time: the host's own housekeeping stays below
    "waiting_pct": 10.0,  # of the time: a run's own threads make some
    "memory_b": 1 << 29,  # kernels keep some for themselves, each another amount
}
# Known of some machines only: where it is not, nothing is said.
ONLY_WHERE_KNOWN = frozenset({*NEGLIGIBLE, "governor", "turbo", "power_cap_w", "clock_limit_mhz", "host"})

Holders = Mapping[Value | None, Sequence[str]]  # value -> labels of the profiles that have it


class NotComparableError(KitError):
    """Profiles that have nothing to compare; one line that says why."""

    exit_code = 4


def cell_mismatches(cells: Iterable[tuple[str, CellFacts]], *, like_hardware: bool, tolerance: float) -> list[Mismatch]:
    """Return in what one cell is not alike in several runs. What one of them did not record is no difference.

    Args:
        cells: label of a run, and the cell's facts in it; the baseline's first.
        like_hardware: all ran on the same hardware, as far as recorded.
        tolerance: largest relative difference of losses that are called equal.
    """
    holders: dict[str, dict[Value | None, list[str]]] = {kind: {} for kind in BLOCKING}
    first: CellFacts | None = None
    for label, facts in cells:
        first = first or facts
        same = facts == first or _same_losses(facts, first, tolerance)
        values = facts._asdict() | {"arithmetic": "its losses" if same else "other losses"}
        for kind in BLOCKING:
            if values[kind]:
                holders[kind].setdefault(values[kind], []).append(label)
    found = {kind: own for kind, own in holders.items() if len(own) > 1}
    # What one machine is told to do is a choice; on another machine it is what that machine has.
    return [
        _mismatch(kind, kind, own, "warns" if kind == "threads" and not like_hardware else "blocks")
        for kind, own in found.items()
    ]


def _same_losses(ours: CellFacts, theirs: CellFacts, tolerance: float) -> bool:
    """Return true, too, where losses from other data, weights or batches, or of another number, do not compare."""
    if not ours.start or (ours.start, ours.data, len(ours.losses)) != (theirs.start, theirs.data, len(theirs.losses)):
        return True
    difference = max_relative_difference(ours.losses, theirs.losses)
    return difference is not None and difference <= tolerance


def run_mismatches(runs: Sequence[tuple[str, Facts]]) -> list[Mismatch]:
    """Return which of the runs' facts are not the same in all, gravest first."""
    holders: dict[tuple[str, str], dict[Value | None, list[str]]] = {}
    for label, facts in runs:
        for key, value in facts.items():
            holders.setdefault(key, {}).setdefault(value, []).append(label)
    found = []
    for (kind, name), own in holders.items():
        having = {label for labels in own.values() for label in labels}
        if len(having) < len(runs) and kind not in ONLY_WHERE_KNOWN:
            own["none"] = [*own.get("none", []), *(label for label, _ in runs if label not in having)]
        numbers = [value for value in own if isinstance(value, int | float)]
        is_negligible = len(numbers) == len(own) and max(numbers) - min(numbers) <= NEGLIGIBLE.get(kind, 0)
        if len(own) > 1 and not is_negligible:
            found.append(_mismatch(kind, name, own, GRADES.get(kind, "noted")))
    told = list(GRADES)
    return sorted(found, key=lambda one: told.index(one.kind) if one.kind in GRADES else len(told))


def merged(found: Iterable[Mismatch]) -> list[Mismatch]:
    """Return each kind of difference between cells once, whichever cells it is in."""
    kinds: dict[tuple[str, Grade], dict[Value | None, dict[str, None]]] = {}
    for one in found:
        for value, labels in one.values:
            kinds.setdefault((one.kind, one.grade), {}).setdefault(value, {}).update(dict.fromkeys(labels))
    return [
        _mismatch(kind, kind, {value: list(labels) for value, labels in own.items()}, grade)
        for (kind, grade), own in kinds.items()
    ]


def _mismatch(kind: str, name: str, holders: Holders, grade: Grade) -> Mismatch:
    return Mismatch(
        kind=kind, name=name, grade=grade, values=[(value, list(labels)) for value, labels in holders.items()]
    )
