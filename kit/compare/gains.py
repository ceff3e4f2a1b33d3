"""How many times as fast a cell is elsewhere: on another device of a profile, or in another profile.

Cells that are alike but for the device are set beside each other. Two that took turns within a profile have an interval
over rounds. Two runs at different times cannot be paired, and one run of each does not show how much runs differ: their
gain has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kit.compare.clean_cycles import count_cycles
from kit.compare.comparability import blocking, cell_mismatches
from kit.compare.pairs import Pairs
from kit.compare.rows import Mismatch
from kit.compare.runs import CellRun, Run, reduce_run, whole_groups
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.schema import Profile


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


def places_of(profiles: Sequence[tuple[str, Profile]], baseline: str | None) -> list[Place]:
    """Return every device of every profile, given with their labels; the baseline first.

    Raises:
        KitError: no device, label or place is called `baseline`.
        KitError: there is only one.
    """
    runs = [(profile, reduce_run(label, profile, details=False)) for label, profile in profiles]
    devices = {run.label: dict.fromkeys(cell_run.cell.device for cell_run in run.cells.values()) for _, run in runs}
    places = []
    for profile, run in runs:
        for device in devices[run.label]:
            alone = all(len(kinds) == 1 for kinds in devices.values())
            name = device if len(runs) == 1 else run.label if alone else f"{run.label} {device}"
            here = [(key, cell_run) for key, cell_run in run.cells.items() if cell_run.cell.device == device]
            by_key = {cell_run.cell.key_without(("device",)): (key, cell_run) for key, cell_run in here}
            places.append(Place(name, profile, run, by_key))
    if len(places) < 2:  # noqa: PLR2004 - one and another
        raise KitError("a gain needs two measured profiles, or one profile of two devices; give a second profile")
    called = [
        {place.name, place.run.label, *(cell_run.cell.device for _, cell_run in place.cells.values())}
        for place in places
    ]
    first = next((at for at, names in enumerate(called) if baseline is None or baseline in names), None)
    if first is None:
        raise KitError(f"no baseline {baseline!r}; choose from {', '.join(place.name for place in places)}")
    return [places[first], *places[:first], *places[first + 1 :]]


def gains(places: Sequence[Place]) -> list[Gain]:
    """Return what each later place gains over the first, of every cell that both have, in the profiles' order."""
    base, *others = places
    taking_turns: dict[str, Pairs] = {}
    groups = {group.key: group for group in whole_groups(count_cycles(base.profile))}
    all_gains = []
    for place in others:
        alike = base.run.hardware == place.run.hardware
        for name, (key, cell_run) in place.cells.items():
            if name not in base.cells:
                continue
            base_key, base_run = base.cells[name]
            facts = [(base.name, base_run.facts), (place.name, cell_run.facts)]
            like = alike and base_run.cell.device == cell_run.cell.device
            blocked = blocking(cell_mismatches(facts, cell_run.cell.precision, like_hardware=like))
            gain = Gain(place.name, cell_run.cell, None, blocked=next(iter(blocked), None))
            if not blocked and cell_run.numbers.step_ns and base_run.numbers.step_ns:
                gain = gain._replace(gain_pct=gain_pct(base_run.numbers.step_ns, cell_run.numbers.step_ns))
                if base.run is place.run and cell_run.group == base_run.group:
                    if cell_run.group not in taking_turns:
                        taking_turns[cell_run.group] = groups[cell_run.group].pairs()
                    versus = taking_turns[cell_run.group].versus(base_key, key)
                    if versus.ratio is not None:
                        gain = gain._replace(gain_pct=100 * versus.ratio)
                    if versus.low is not None and versus.high is not None:
                        gain = gain._replace(interval_pct=(100 * versus.low, 100 * versus.high))
            all_gains.append(gain)
    return all_gains


def gain_pct(base_time: float, time: float) -> float:
    """Return a time as a gain over the base's: 100 is as fast, 200 twice as fast."""
    return 100 * base_time / time
