"""The sides of a comparison of several runs, and in which order these ran.

A side has the runs of one identity and one given label, or of one platform.

cpu.json   mlp/torch/cpu/…   ─┐
gpu.json   mlp/torch/gpu/…   ─┴─ mlp/torch/*/…   what was asked is the row, where it ran the column
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from kit.compare.naming import axis_values, label_members, platform_names
from kit.compare.rows import Headline, Note
from kit.compare.runs import Run, RunTimes, Sample, same_host
from kit.errors import KitError
from kit.profile.cell import AXES, Cell
from kit.profile.fields import Reason, reason
from kit.stats.sessions import RunLevel, overlapping, pairs_in_turn

DEVICE = ("device",)
# A cell that a platform lacks may be there with another of these.
OTHERWISE = ("batch", "precision", "compile_mode", "feed", "devices", "threads", "variant")


class Side(NamedTuple):
    """Runs of one identity and one given label, or of one platform."""

    label: str
    runs: list[Run]

    @property
    def samples(self) -> list[Sample]:
        """The cells of all of its runs."""
        return [sample for run in self.runs for sample in run.samples.values()]

    @property
    def names(self) -> set[str]:
        """The names that choose it on a command line."""
        devices = [used.kind for run in self.runs for used in run.headline.devices]
        return {self.label, *(name for run in self.runs for name in (run.label, run.given_label) if name), *devices}

    @property
    def headline(self) -> Headline:
        """What its runs have in common, and everything that any of them has."""
        heads = [run.headline for run in self.runs]
        return msgspec.structs.replace(
            heads[0],
            label=self.label,
            profiles=len(heads),
            suite=" and ".join(dict.fromkeys(head.suite for head in heads)),
            axes={axis: list(dict.fromkeys(value for head in heads for value in head.axes[axis])) for axis in AXES},
            data=list(dict.fromkeys(name for head in heads for name in head.data)),
            rounds=min(head.rounds for head in heads),
            rounds_max=max(head.rounds for head in heads),
        )

    def like_hardware(self, other: Side) -> bool:
        """Whether both ran on the same hardware; of platforms, and on the same device of it."""
        return self.runs[0].hardware == other.runs[0].hardware


def sides_beside(
    runs: Sequence[Run], against: Sequence[Run], baseline: str | None
) -> tuple[Literal["runs", "platforms"], list[Side]]:
    """Return whether runs are of several platforms, and their sides, the baseline's first.

    Each sample gets the label of its side, and the group of its cell on the first side as its table.

    Raises:
        KitError: no run or platform has the baseline's name, or several have.
    """
    before = {key for run in runs for key in run.samples}
    platforms = are_platforms([*runs, *against]) and not any(before & run.samples.keys() for run in against)
    sides = (
        _platforms([*on_platforms(runs), *on_platforms(against)], baseline)
        if platforms
        else _sides(runs, against, baseline)
    )
    tables: dict[str, str] = {}
    for side in sides:
        for sample in side.samples:
            sample.side, sample.table = side.label, tables.setdefault(sample.key, sample.group)
    return "platforms" if platforms else "runs", sides


def _sides(runs: Sequence[Run], against: Sequence[Run], baseline: str | None) -> list[Side]:
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
    # Sides have their given labels; where there is none, or two have it, their files.
    given, sides = [members[0].given_label for members in alike], list[Side]()
    for name, members in zip(given, alike, strict=True):
        files = members[0].label + (f" and {len(members) - 1} more" if len(members) > 1 else "")
        sides.append(Side(files if not name else name if given.count(name) == 1 else f"{name} ({files})", members))
    base = next(side for side in sides if any(run is first for run in side.runs))
    return [base, *(side for side in sides if side is not base)]


def _alike(runs: Sequence[Run]) -> list[list[Run]]:
    sides: dict[tuple[bytes, str], list[Run]] = {}
    for run in runs:
        sides.setdefault((run.identity, run.given_label), []).append(run)
    return list(sides.values())


def _platforms(runs: Sequence[Run], baseline: str | None) -> list[Side]:
    """Return the baseline's platform and the others; the first is the baseline, or the one that `baseline` names."""
    alike = _alike(runs)
    devices = [(members[0], members[0].headline.devices[0]) for members in alike]
    labelled = [(device.kind, device.model, first.given_label or first.label) for first, device in devices]
    sides = [Side(name, members) for name, members in zip(platform_names(labelled), alike, strict=True)]
    named = [side for side in sides if baseline is None or baseline.removesuffix(".json") in side.names]
    if not named and baseline:
        named = [side for side in sides if baseline.lower() in side.label.lower()]
    listed = ", ".join(side.label for side in named or sides)
    if not named:
        raise KitError(f"no platform or profile {baseline!r}; choose from {listed}")
    if baseline is not None and len(named) > 1:
        raise KitError(f"{baseline!r} names {len(named)} platforms; choose from {listed}")
    return [named[0], *(side for side in sides if side is not named[0])]


def are_platforms(runs: Iterable[Run]) -> bool:
    """Whether the runs' cells ran on more than one machine and device."""
    return len({(run.hardware, sample.cell.device) for run in runs for sample in run.samples.values()}) > 1


def on_platforms(runs: Iterable[Run]) -> list[Run]:
    """Return each run once for every device of its cells; a cell's key, and its group's, is what was asked."""
    platforms = []
    for run in runs:
        for device in dict.fromkeys(sample.cell.device for sample in run.samples.values()):
            groups: dict[str, dict[str, Sample]] = {}
            for sample in (sample for sample in run.samples.values() if sample.cell.device == device):
                asked = sample.group.replace(f"/{device}/", "/*/", 1)
                groups.setdefault(asked, {})[sample.cell.key_without(DEVICE)] = sample
            platform = copy(run)
            platform.identity, platform.hardware = run.identity + device.encode(), f"{run.hardware} {device}"
            platform.headline = msgspec.structs.replace(
                run.headline,
                devices=[used for used in run.headline.devices if used.kind == device],
                axes=axis_values(sample.cell for members in groups.values() for sample in members.values()),
            )
            platform.samples = {}
            compared = [axis for axis in run.compared if axis not in DEVICE]
            for group, members in groups.items():
                names = label_members({key: sample.cell for key, sample in members.items()}, compared)
                for key, sample in members.items():
                    platform.samples[key] = moved = copy(sample)
                    moved.run, moved.key, moved.group, moved.name = platform, key, group, names[key]
            platforms.append(platform)
    return platforms


def why_missing(runs: Sequence[Run], cell: Cell) -> Reason:
    """Return why a side has no such cell: its backend was skipped, it was measured otherwise, or not at all."""
    for run in runs:
        for note in run.notes:
            if note.what.code == "skipped" and note.what.values.get("backend") == cell.backend:
                return note.because or note.what
        for axis in OTHERWISE:
            wanted = cell.key_without((*DEVICE, axis))
            for other in (sample.cell for sample in run.samples.values()):
                if other.key_without((*DEVICE, axis)) == wanted:
                    return reason("measured_otherwise", axis=axis, value=str(other.value(axis)))
    return reason("not_measured")


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


def orders_of(sides: Sequence[Side]) -> list[Note]:
    """Return in which order runs of one machine were measured; runs whose clock was set back lose their times."""
    base, orders = sides[0], list[Note]()
    for side in (side for side in sides[1:] if base.like_hardware(side)):
        orders.append(Note(what=_order(base, side)))
        if orders[-1].what.code == "clock_set_back":
            for run in side.runs:  # the wall clock does not order them
                run.times = RunTimes(None, None, None)
    return orders


def _order(base: Side, side: Side) -> Reason:
    """Return in which order the runs of two sides on one machine were measured."""
    pair = {"base": base.label, "side": side.label}
    if not same_host([*base.runs, *side.runs]):
        return reason("other_host", **pair)
    a, b = ([RunLevel(0.0, begin_s=run.times.begin_s, end_s=run.times.end_s) for run in s.runs] for s in (base, side))
    if any(level.begin_s is None for level in (*a, *b)):
        return reason("runs_without_time", **pair)
    if (backwards := _clock_set_back([*base.runs, *side.runs])) is not None:
        return reason("clock_set_back", first=backwards[0].label, second=backwards[1].label)
    if overlapping(a, b):
        return reason("runs_overlap", **pair)
    pairs = pairs_in_turn(a, b)
    if not pairs:
        return reason("runs_apart", **pair)
    base_first = sum((first.begin_s or 0.0) < (second.begin_s or 0.0) for first, second in pairs)
    code = "runs_in_turn" if 0 < base_first < len(pairs) else "runs_in_one_order"
    return reason(code, pairs=len(pairs), runs=len(a) + len(b), **pair)


def _clock_set_back(runs: Sequence[Run]) -> tuple[Run, Run] | None:
    """Return two runs whose order by the wall clock is not that since the machine's boot, with no boot between them."""
    times = [(run.times.begin_s, run.times.raw_s, run) for run in runs]
    timed = [(begin_s, raw_s, run) for begin_s, raw_s, run in times if begin_s is not None and raw_s is not None]
    in_order = sorted(moment[:2] for moment in timed)
    if all(raw_s <= later_raw_s for (_, raw_s), (_, later_raw_s) in pairwise(in_order)):
        return None
    for begin_s, raw_s, first in timed:
        for later_s, later_raw_s, second in timed:
            if later_s - later_raw_s < begin_s < later_s and raw_s > later_raw_s:  # no boot between them
                return first, second
    return None
