"""The sides of a comparison of several runs: runs of one identity and one given label, or of one platform."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from kit.compare.naming import platform_names
from kit.compare.rows import Headline, Row
from kit.compare.runs import CellRun, Run, row_of
from kit.errors import KitError
from kit.profile.cell import AXES
from kit.profile.reason import Reason, reason
from kit.stats.runs import RunLevel, overlapping, pairs_in_turn


class Side(NamedTuple):
    """Runs of one identity and one given label, or of one platform."""

    label: str
    runs: list[Run]

    def of_cell(self, key: str) -> list[CellRun]:
        """Return the cell of every run that has it."""
        return [run.cells[key] for run in self.runs if key in run.cells]

    def row(self, key: str, name: str, *, is_baseline: bool = False) -> Row:
        """Return the row of a cell that some of the runs have."""
        labels = [run.label for run in self.runs if key in run.cells]
        return row_of(name, self.of_cell(key), labels, side=self.label, is_baseline=is_baseline)

    @property
    def names(self) -> set[str]:
        """What may stand for it on a command line."""
        devices = [used.kind for run in self.runs for used in run.headline.devices]
        return {self.label, *(name for run in self.runs for name in (run.label, run.given_label) if name), *devices}


def sides_of(runs: Sequence[Run], against: Sequence[Run], baseline: str | None) -> tuple[Side, list[Side]]:
    """Return the baseline's side and the later ones, each the runs of one identity and one given label.

    The baseline is the side of the first run, or of the one that `baseline` names. Where all runs are alike in both
    and none was given apart, it is that run alone.
    """
    everyone = [*runs, *against]
    label = None if baseline is None else baseline.removesuffix(".json")
    first = next((run for run in everyone if label in (None, run.label) or baseline == run.given_label), None)
    if first is None:
        raise KitError(f"no profile {baseline!r}; choose from {', '.join(run.label for run in everyone)}")
    alike = [*_alike(runs), *_alike(against)]
    if len(alike) == 1:
        alike = [[first], *_alike([run for run in everyone if run is not first])]
    sides = _named(alike)
    base = next(side for side in sides if any(run is first for run in side.runs))
    return base, [side for side in sides if side is not base]


def _alike(runs: Sequence[Run]) -> list[list[Run]]:
    sides: dict[tuple[bytes, str], list[Run]] = {}
    for run in runs:
        sides.setdefault((run.identity, run.given_label), []).append(run)
    return list(sides.values())


def _named(alike: Sequence[list[Run]]) -> list[Side]:
    """Return the sides by their given labels; where there is none, or two have it, by their files."""
    given = [runs[0].given_label for runs in alike]
    sides = []
    for label, runs in zip(given, alike, strict=True):
        files = runs[0].label + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")
        sides.append(Side(files if not label else label if given.count(label) == 1 else f"{label} ({files})", runs))
    return sides


def platforms_of(runs: Sequence[Run], baseline: str | None) -> tuple[Side, list[Side]]:
    """Return the baseline's platform and the others; the first is the baseline, or the one that `baseline` names."""
    alike = _alike(runs)
    devices = [of_platform[0].headline.devices[0] for of_platform in alike]
    labelled = [
        (device.kind, device.model, of_platform[0].given_label or of_platform[0].label)
        for device, of_platform in zip(devices, alike, strict=True)
    ]
    sides = [Side(name, of_platform) for name, of_platform in zip(platform_names(labelled), alike, strict=True)]
    named = [side for side in sides if baseline is None or baseline.removesuffix(".json") in side.names]
    if not named and baseline:
        named = [side for side in sides if baseline.lower() in side.label.lower()]
    listed = ", ".join(side.label for side in named or sides)
    if not named:
        raise KitError(f"no platform or profile {baseline!r}; choose from {listed}")
    if baseline is not None and len(named) > 1:
        raise KitError(f"{baseline!r} names {len(named)} platforms; choose from {listed}")
    return named[0], [side for side in sides if side is not named[0]]


def headline(side: Side) -> Headline:
    """Return what a side's runs have in common, and everything that any of them has."""
    heads = [run.headline for run in side.runs]
    return msgspec.structs.replace(
        heads[0],
        label=side.label,
        profiles=len(heads),
        suite=" and ".join(dict.fromkeys(head.suite for head in heads)),
        axes={axis: list(dict.fromkeys(value for head in heads for value in head.axes[axis])) for axis in AXES},
        data=list(dict.fromkeys(name for head in heads for name in head.data)),
        rounds=min(head.rounds for head in heads),
        rounds_max=max(head.rounds for head in heads),
    )


def each_once(runs: Iterable[Run], against: Iterable[Run]) -> tuple[list[Run], list[Run], list[str]]:
    """Return both lists with each run once, and the labels of those left out: a copy is no second observation."""
    seen: set[str] = set()
    kept: tuple[list[Run], list[Run]] = ([], [])
    repeated = []
    for given, run in [*((0, run) for run in runs), *((1, run) for run in against)]:
        if run.id in seen:
            repeated.append(run.label)
        else:
            kept[given].append(run)
        seen.add(run.id)
    return *kept, repeated


def like_hardware(base: Side, side: Side) -> bool:
    """Whether both ran on the same hardware; of platforms, and on the same device of it."""
    return base.runs[0].hardware == side.runs[0].hardware


def same_host(base: Side, side: Side) -> bool:
    """Whether both ran on one machine; of containers, whose names are drawn anew, on like hardware."""
    return like_hardware(base, side) and len({run.host for of in (base, side) for run in of.runs}) == 1


def order_of(base: Side, side: Side) -> Reason:
    """Return in which order the runs of two sides on one machine were measured."""
    pair = {"base": base.label, "side": side.label}
    if not same_host(base, side):
        return reason("other_host", **pair)
    a, b = ([RunLevel(0.0, begin_s=run.times.begin_s, end_s=run.times.end_s) for run in of.runs] for of in (base, side))
    if any(level.begin_s is None for level in (*a, *b)):
        return reason("runs_without_time", **pair)
    if (backwards := _clock_set_back([*base.runs, *side.runs])) is not None:
        return reason("clock_set_back", first=backwards[0].label, second=backwards[1].label)
    if overlapping(a, b):
        return reason("runs_overlap", **pair)
    pairs = pairs_in_turn(a, b)
    if not pairs:
        return reason("runs_apart", **pair)
    base_first = sum((of_base.begin_s or 0.0) < (of_side.begin_s or 0.0) for of_base, of_side in pairs)
    code = "runs_in_turn" if 0 < base_first < len(pairs) else "runs_in_one_order"
    return reason(code, pairs=len(pairs), runs=len(a) + len(b), **pair)


def _clock_set_back(runs: Sequence[Run]) -> tuple[Run, Run] | None:
    """Return two runs whose order by the wall clock is not that since the machine's boot, with no boot between them."""
    timed = [run for run in runs if run.times.begin_s is not None and run.times.raw_s is not None]
    for first in timed:
        for second in timed:
            begin_s, later_s = first.times.begin_s or 0.0, second.times.begin_s or 0.0
            boot_s = later_s - (second.times.raw_s or 0.0)
            if begin_s < later_s and (first.times.raw_s or 0.0) > (second.times.raw_s or 0.0) and boot_s < begin_s:
                return first, second
    return None
