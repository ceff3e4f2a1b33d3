"""How many times as fast a cell is elsewhere: on another device of a profile, or in another profile.

Cells that are alike but for the device are set beside each other. Two that took turns within a profile have an interval
over rounds. Two runs at different times cannot be paired, and one run of each does not show how much runs differ: their
gain has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kit.compare.facts import CellFacts
from kit.compare.gate import cell_mismatches
from kit.compare.pairs import Pairs
from kit.compare.rows import Mismatch, Versus
from kit.compare.runs import CellRun, Run, reduce_run
from kit.compare.within import BaselineError, launches_of, parts_of
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.schema import Profile
from kit.workloads.parity import TOLERANCE_FACTORS


class Place(NamedTuple):
    """One device of one profile."""

    name: str  # what tells it apart: the device, the profile's label, or both
    profile: Profile
    run: Run
    cells: dict[str, tuple[str, CellRun]]  # with their keys, by their keys without the device


class Gain(NamedTuple):
    """One cell in a place, against the same cell in the first place."""

    place: str
    cell: Cell
    gain_pct: float | None  # the first place's step in percent of this one's: 100 is as fast; null: no number, blocked
    interval_pct: tuple[float, float] | None = None
    blocked: Mismatch | None = None  # why the two are not to be compared


class OnePlaceError(KitError):
    """Nothing to gain on."""


def places_of(profiles: Sequence[tuple[str, Profile]], baseline: str | None) -> list[Place]:
    """Return every device of every profile, given with their labels; the baseline first.

    Raises:
        BaselineError: no device, label or place is called `baseline`.
        OnePlaceError: there is only one.
    """
    runs = [(profile, reduce_run(label, profile, details=False)) for label, profile in profiles]
    devices = {run.label: dict.fromkeys(one.cell.device for one in run.cells.values()) for _, run in runs}
    places = []
    for profile, run in runs:
        for device in devices[run.label]:
            alone = all(len(own) == 1 for own in devices.values())
            name = device if len(runs) == 1 else run.label if alone else f"{run.label} {device}"
            here = [(key, one) for key, one in run.cells.items() if one.cell.device == device]
            own = {one.cell.key_without(("device",)): (key, one) for key, one in here}
            places.append(Place(name, profile, run, own))
    if len(places) < 2:  # noqa: PLR2004 - one and another
        raise OnePlaceError("a gain needs two measured profiles, or one of two devices; give another")
    called = [{one.name, one.run.label, *(own.cell.device for _, own in one.cells.values())} for one in places]
    first = next((at for at, names in enumerate(called) if baseline is None or baseline in names), None)
    if first is None:
        raise BaselineError(f"no baseline {baseline!r}; choose from {', '.join(one.name for one in places)}")
    return [places[first], *places[:first], *places[first + 1 :]]


def gains(places: Sequence[Place], parity_tolerance: float) -> list[Gain]:
    """Return what each later place gains over the first, of every cell that both have, in the profiles' order."""
    base, *others = places
    taking_turns: dict[str, Pairs] = {}
    found = []
    for place in others:
        alike = base.run.hardware == place.run.hardware
        for name, (key, own) in place.cells.items():
            if name not in base.cells:
                continue
            base_key, theirs = base.cells[name]
            facts = [(base.name, theirs.facts), (place.name, own.facts)]
            blocked = blocking(facts, own.cell.precision, like_hardware=alike, parity_tolerance=parity_tolerance)
            gain = Gain(place.name, own.cell, None, blocked=blocked)
            if blocked is None and own.numbers.step_ns and theirs.numbers.step_ns:
                gain = gain._replace(gain_pct=gain_pct(theirs.numbers.step_ns, own.numbers.step_ns))
                if base.run is place.run and own.group == theirs.group:
                    if own.group not in taking_turns:
                        group = base.profile, own.group
                        cells = {one.key: one.cell for one in base.profile.cells}
                        taking_turns[own.group] = Pairs(parts_of(*group), cells, launches_of(*group))
                    gain = _paired(gain, taking_turns[own.group].versus(base_key, key))
            found.append(gain)
    return found


def gain_pct(base_time: float, time: float) -> float:
    """Return a time as a gain over the base's: 100 is as fast, 200 twice as fast."""
    return 100 * base_time / time


def blocking(
    cells: Sequence[tuple[str, CellFacts]], precision: str, *, like_hardware: bool, parity_tolerance: float
) -> Mismatch | None:
    """Return why the gate keeps a cell from the base's, given first, each with the label of its run; null: it may."""
    tolerance = parity_tolerance * TOLERANCE_FACTORS.get(precision, 1.0)
    different = cell_mismatches(cells, like_hardware=like_hardware, tolerance=tolerance)
    return next((one for one in different if one.grade == "blocks"), None)


def _paired(gain: Gain, versus: Versus) -> Gain:
    """Return the gain that the rounds in which both took turns say."""
    if versus.ratio is None:
        return gain
    ends = None if versus.low is None or versus.high is None else (100 * versus.low, 100 * versus.high)
    return gain._replace(gain_pct=100 * versus.ratio, interval_pct=ends)
