"""Joules of the whole machine from an external meter's file, which tells UTC, over the blocks of a run, which do not.

    UTC       taken ├───────── readings of the meter ─────────┤ taken        of the states before and after
    raw      raw_ns ├──── blocks on CLOCK_MONOTONIC_RAW ──────┤ raw_ns

Between both states UTC is taken to have gone evenly. That is wrong by no more than the two clocks drifted apart; to it
come how exactly each state tells both, and half of the time between two readings. The meter's own clock is the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kit.compare.rows import Note
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.identity import State
from kit.profile.launch import Launch
from kit.profile.meter_file import read_meter
from kit.profile.reason import Reason, reason
from kit.profile.schema import Profile, StateSpan
from kit.profile.sensor import NO_SENSOR, Energy, EnergyKind, SensorReport
from kit.stats.energy import ERROR_SHARE_MAX, Joules, Refusal, Window, counter_energy, parts_energy, power_energy

SENSOR = "meter"
# Quartz is off by up to so much, which UTC is not; with its temperature that rate changes by a few.
CRYSTAL_PPM, RATE_CHANGE_PPM = 100.0, 5.0
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# `State.taken` is told in microseconds.
TAKEN_NS = 1_000


class Clocks(NamedTuple):
    """Both clocks at both ends of a run."""

    utc_ns: tuple[int, int]
    raw_ns: tuple[int, int]
    error_ns: int  # of what `raw` returns, the meter's spacing left out

    def raw(self, utc_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return instants of UTC on CLOCK_MONOTONIC_RAW."""
        (utc_begin, utc_end), (raw_begin, raw_end) = self.utc_ns, self.raw_ns
        pace = (raw_end - raw_begin) / (utc_end - utc_begin)
        since_ns: NDArray[np.int64] = np.rint((utc_ns - utc_begin) * pace).astype(np.int64)
        return raw_begin + since_ns


class Meter:
    """A meter's file, and what is to be said of it beside the tables.

    Args:
        file: as `kit.profile.meter_file` describes it.

    Raises:
        MeterFileError: it is none.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._readings = file, read_meter(file)
        self._hardware: str | None = None
        self._used, self._error_ns = 0, 0

    def added_to(self, label: str, profile: Profile) -> Profile:
        """Return the profile with the meter's joules over each of its blocks for energy, or why there are none.

        Raises:
            KitError: it does not tell UTC at both ends, the meter read nothing in it, or it is of a second machine.
        """
        hardware = profile.identity.hardware_sha256
        if self._hardware not in (None, hardware):
            raise KitError(f"--meter {self._file} covers one machine, and {label} is from another; leave {label} out")
        clocks, readings = _clocks(label, profile.state), self._readings
        begin_ns, end_ns = clocks.utc_ns
        first, last = np.searchsorted(readings.utc_ns, clocks.utc_ns)
        if first == last:
            spans = _span(begin_ns, end_ns), _span(int(readings.utc_ns[0]), int(readings.utc_ns[-1]))
            raise KitError(
                f"{self._file} has no reading during {label}: the run took {spans[0]}, the file covers {spans[1]}"
            )
        inside = slice(max(0, int(first) - 1), int(last) + 1)
        spacing_ns = readings.spacing_ns
        series = _Series(
            clocks.raw(readings.utc_ns[inside]),
            readings.values[inside],
            spacing_ns,
            clocks.error_ns + spacing_ns // 2,
            is_counter=readings.is_counter,
        )
        for result in profile.cells:
            known = [energy for launch in result.launches for energy in launch.energy]
            has_long = any(energy.kind == "steady" and energy.begin_ns is not None for energy in known)
            for launch in result.launches:
                entries = [*_long_blocks(launch, series), *([] if has_long else _blocks(result.cell, launch, series))]
                launch.energy = [*(energy for energy in launch.energy if energy.sensor != NO_SENSOR), *entries]
        # Only now: one that could not be aligned says nothing of whose the readings are.
        self._hardware = hardware
        self._used, self._error_ns = self._used + int(last - first), max(self._error_ns, series.error_ns)
        return replace(profile, sensors=[*profile.sensors, self._report(spacing_ns)])

    def note(self) -> Note:
        """Return what was read, and how well it is aligned at worst."""
        values = {"spacing_s": self._readings.spacing_ns / 1e9, "align_s": self._error_ns / 1e9}
        return Note(what=reason("meter", file=self._file.name, readings=self._used, **values))

    def _report(self, spacing_ns: int) -> SensorReport:
        is_counter = self._readings.is_counter
        return SensorReport(
            name=SENSOR,
            quantity="energy" if is_counter else "power",
            unit="J" if is_counter else "W",
            scope="whole machine, as the meter is placed",
            source=str(self._file),
            status="measured",
            counter=is_counter,
            update_period_ns=spacing_ns,
        )


class _Series(NamedTuple):
    """Readings within a run, on its clock."""

    at_ns: NDArray[np.int64]
    values: NDArray[np.float64]
    spacing_ns: int
    error_ns: int  # of when they were
    is_counter: bool

    def energy(self, windows: Sequence[Window], *, is_one_block: bool) -> Joules | Refusal:
        """Return joules over windows, the error of the alignment in theirs; or why there are none."""
        total_ns = sum(end_ns - begin_ns for begin_ns, end_ns in windows)
        if self.error_ns > (most_ns := ERROR_SHARE_MAX * total_ns):
            return Refusal("meter_misaligned", {"error_s": self.error_ns / 1e9, "most_s": most_ns / 1e9})
        near = slice(
            max(0, int(np.searchsorted(self.at_ns, windows[0][0])) - 2),
            int(np.searchsorted(self.at_ns, windows[-1][1])) + 2,
        )
        at_ns, values = self.at_ns[near].tolist(), self.values[near].tolist()
        if not at_ns:
            return Refusal("energy_low_coverage", {"coverage_pct": 0.0, "needed_pct": 100.0})
        if not is_one_block:
            energy = parts_energy(at_ns, values, windows, self.spacing_ns, is_counter=self.is_counter)
        elif self.is_counter:
            energy = counter_energy(at_ns, values, *windows[0], self.spacing_ns)
        else:
            energy = power_energy(at_ns, values, *windows[0], self.spacing_ns, is_each_fresh=True)
        if isinstance(energy, Refusal):
            return energy
        return energy._replace(error_fraction=energy.error_fraction + self.error_ns / energy.window_ns)


def _clocks(label: str, span: StateSpan) -> Clocks:
    before, after = span.before, span.after
    if after is None or before.raw_ns is None or after.raw_ns is None:
        raise KitError(
            f"{label}: --meter needs the time of the run's clock at both ends, which it does not have; measure it again"
        )
    utc_ns, raw_ns = (_utc_ns(before), _utc_ns(after)), (before.raw_ns, after.raw_ns)
    widths_ns = (before.raw_width_ns or 0) + (after.raw_width_ns or 0) + 2 * TAKEN_NS
    span_ns = raw_ns[1] - raw_ns[0]
    drift_ns = abs((utc_ns[1] - utc_ns[0]) - span_ns)
    # A rate that stays the same is taken out between both ends; what is more was a clock that was set, or that slept.
    is_rate = drift_ns <= CRYSTAL_PPM / 1e6 * span_ns
    unknown_ns = int(RATE_CHANGE_PPM / 1e6 * span_ns / 2) if is_rate else drift_ns
    return Clocks((utc_ns[0], max(utc_ns[1], utc_ns[0] + 1)), raw_ns, widths_ns + unknown_ns)


def _utc_ns(state: State) -> int:
    return (datetime.fromisoformat(state.taken) - EPOCH) // timedelta(microseconds=1) * 1000


def _span(begin_ns: int, end_ns: int) -> str:
    begin, end = (EPOCH + timedelta(microseconds=ns // 1000) for ns in (begin_ns, end_ns))
    return f"{begin:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"


def _long_blocks(launch: Launch, series: _Series) -> list[Energy]:
    """Return the meter's entries beside those that sensors have, or that were kept for it."""
    known = {(energy.kind, energy.begin_ns): energy for energy in launch.energy if energy.kind != "fit"}
    return [
        _entry(
            series,
            [(begin_ns, begin_ns + energy.block_ns)],
            of,
            energy.samples,
            energy.steps or 0,
            is_one_block=of == "steady",
        )
        for (of, begin_ns), energy in known.items()
        if begin_ns is not None
    ]


def _blocks(cell: Cell, launch: Launch, series: _Series) -> list[Energy]:
    """Return the meter's entry of all blocks of a launch together."""
    blocks, steps = launch.blocks, sum(launch.blocks.all_steps())
    windows = [(begin, begin + span) for begin, span in zip(blocks.begin_ns, blocks.span_ns, strict=True)]
    of: EnergyKind = "fit" if cell.task == "fit" else "steady"
    return [_entry(series, windows, of, steps * cell.batch, steps, is_one_block=False)] if windows else []


def _entry(
    series: _Series, windows: Sequence[Window], of: EnergyKind, samples: int, steps: int, *, is_one_block: bool
) -> Energy:
    energy = series.energy(windows, is_one_block=is_one_block)
    method = "between_readings" if not is_one_block else "counter_between_updates"
    entry = Energy(
        sensor=SENSOR,
        joules_j=None,
        window_ns=None,
        samples=samples,
        block_ns=sum(end_ns - begin_ns for begin_ns, end_ns in windows),
        kind=of,
        tier="external_meter",
        method="power_trapezoids" if is_one_block and not series.is_counter else method,
        begin_ns=windows[0][0],
        steps=steps,
        align_error_ns=series.error_ns,
    )
    if isinstance(energy, Refusal):
        return replace(entry, reason=Reason(code=energy.code, values={**energy.values}))
    return replace(entry, **energy._asdict())
