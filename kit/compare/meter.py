"""Joules of the whole machine, from an external meter's file over the blocks of a run.

The meter tells UTC, and blocks are on CLOCK_MONOTONIC_RAW. Both states of a run have both clocks:

    UTC       taken ├───────── readings of the meter ─────────┤ taken        of the states before and after
    raw      raw_ns ├──── blocks on CLOCK_MONOTONIC_RAW ──────┤ raw_ns

Between both states, UTC is taken to run evenly. The error of that is at most the drift between the two clocks; the
widths of both states' readings and half of the time between two readings of the meter are added to it. The meter's own
clock is the user's to set.
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
from kit.profile.launch import Launch
from kit.profile.meter_file import read_meter
from kit.profile.reason import Reason, reason
from kit.profile.schema import Profile, StateSpan
from kit.profile.sensor import NO_SENSOR, Energy, EnergyKind, SensorReport
from kit.stats.energy import ERROR_SHARE_MAX, Refusal, Window, counter_energy, parts_energy, power_energy

SENSOR = "meter"
# Quartz is off by at most about this, and UTC is not; its rate changes with temperature by a few ppm.
CRYSTAL_PPM, RATE_CHANGE_PPM = 100.0, 5.0
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The resolution of a state's `taken`
TAKEN_NS = 1_000


class _Series(NamedTuple):
    """Readings within a run, on its clock."""

    at_ns: NDArray[np.int64]
    values: NDArray[np.float64]  # watts; of a counter joules
    spacing_ns: int
    error_ns: int  # of `at_ns`
    is_counter: bool


class Meter:
    """A meter's file, and what has to be said about it below the tables.

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
            KitError: it lacks UTC at an end, the meter read nothing in it, or it is from a second machine.
        """
        hardware = profile.identity.hardware_sha256
        if self._hardware not in (None, hardware):
            raise KitError(f"--meter {self._file} covers one machine, and {label} is from another; leave {label} out")
        series = self._series(label, profile.state)
        for result in profile.cells:
            known = [energy for launch in result.launches for energy in launch.energy]
            has_long = any(energy.kind == "steady" and energy.begin_ns is not None for energy in known)
            for launch in result.launches:
                entries = [
                    *_long_blocks(launch, series),
                    *([] if has_long else _all_blocks(result.cell, launch, series)),
                ]
                launch.energy = [*(energy for energy in launch.energy if energy.sensor != NO_SENSOR), *entries]
        # A profile that could not be aligned does not say which machine the readings are from.
        self._hardware = hardware
        report = SensorReport(
            name=SENSOR,
            quantity="energy" if series.is_counter else "power",
            unit="J" if series.is_counter else "W",
            scope="whole machine, as the meter is placed",
            source=str(self._file),
            status="measured",
            counter=series.is_counter,
            update_period_ns=series.spacing_ns,
        )
        return replace(profile, sensors=[*profile.sensors, report])

    def note(self) -> Note:
        """Return what was read, and how well it is aligned at worst."""
        values = {"spacing_s": self._readings.spacing_ns / 1e9, "align_s": self._error_ns / 1e9}
        return Note(what=reason("meter", file=self._file.name, readings=self._used, **values))

    def _series(self, label: str, span: StateSpan) -> _Series:
        """Return the readings of a run on its own clock, with one reading before it and one after it."""
        (utc_begin, utc_end), (raw_begin, raw_end), clock_error_ns = _clocks(label, span)
        readings = self._readings
        first, last = np.searchsorted(readings.utc_ns, (utc_begin, utc_end))
        if first == last:
            covered = _span(int(readings.utc_ns[0]), int(readings.utc_ns[-1]))
            raise KitError(
                f"{self._file} has no reading during {label}: the run took {_span(utc_begin, utc_end)}, "
                f"the file covers {covered}"
            )
        inside = slice(max(0, int(first) - 1), int(last) + 1)
        since_ns = (readings.utc_ns[inside] - utc_begin) * ((raw_end - raw_begin) / (utc_end - utc_begin))
        at_ns: NDArray[np.int64] = raw_begin + np.rint(since_ns).astype(np.int64)
        error_ns = clock_error_ns + readings.spacing_ns // 2
        self._used, self._error_ns = self._used + int(last - first), max(self._error_ns, error_ns)
        return _Series(at_ns, readings.values[inside], readings.spacing_ns, error_ns, readings.is_counter)


def _clocks(label: str, span: StateSpan) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Return UTC and the raw clock at both ends of a run, and how far one may be off the other in between."""
    before, after = span.before, span.after or span.before
    raw_begin, raw_end = before.raw_ns, after.raw_ns
    ends = [_utc_ns(state.taken) for state in (before, after)]
    if span.after is None or raw_begin is None or raw_end is None or None in ends:
        raise KitError(
            f"{label}: --meter needs the time of the run's clock at both ends, which it does not have; measure it again"
        )
    utc_begin, utc_end = (end or 0 for end in ends)
    drift_ns = abs((utc_end - utc_begin) - (raw_end - raw_begin))
    # A constant rate is corrected between both ends; a larger drift is a clock that was set, or a machine that slept.
    is_rate = drift_ns <= CRYSTAL_PPM / 1e6 * (raw_end - raw_begin)
    unknown_ns = int(RATE_CHANGE_PPM / 1e6 * (raw_end - raw_begin) / 2) if is_rate else drift_ns
    widths_ns = (before.raw_width_ns or 0) + (after.raw_width_ns or 0) + 2 * TAKEN_NS
    return (utc_begin, max(utc_end, utc_begin + 1)), (raw_begin, raw_end), widths_ns + unknown_ns


def _utc_ns(taken: str) -> int | None:
    """Return a moment of ISO 8601 with its zone in nanoseconds since 1970; None where it is none."""
    try:
        return (datetime.fromisoformat(taken) - EPOCH) // timedelta(microseconds=1) * 1000
    except (ValueError, TypeError):
        return None


def _span(begin_ns: int, end_ns: int) -> str:
    begin, end = (EPOCH + timedelta(microseconds=ns // 1000) for ns in (begin_ns, end_ns))
    return f"{begin:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"


def _long_blocks(launch: Launch, series: _Series) -> list[Energy]:
    """Return the meter's entries for the blocks that sensors have entries for, or that were measured for the meter."""
    known = {(energy.kind, energy.begin_ns): energy for energy in launch.energy if energy.kind != "fit"}
    return [
        _entry(
            series,
            [(begin_ns, begin_ns + energy.block_ns)],
            kind,
            energy.samples,
            energy.steps or 0,
            is_one_block=kind == "steady",
        )
        for (kind, begin_ns), energy in known.items()
        if begin_ns is not None
    ]


def _all_blocks(cell: Cell, launch: Launch, series: _Series) -> list[Energy]:
    """Return the meter's entry for all blocks of a launch together."""
    blocks, steps = launch.blocks, sum(launch.blocks.all_steps())
    windows = [(begin, begin + span) for begin, span in zip(blocks.begin_ns, blocks.span_ns, strict=True)]
    kind: EnergyKind = "fit" if cell.task == "fit" else "steady"
    return [_entry(series, windows, kind, steps * cell.batch, steps, is_one_block=False)] if windows else []


def _entry(
    series: _Series,
    windows: Sequence[Window],
    kind: EnergyKind,
    samples: int,
    steps: int,
    *,
    is_one_block: bool,
) -> Energy:
    """Return joules over windows with the error of the alignment, or why there are none."""
    window_ns = sum(end_ns - begin_ns for begin_ns, end_ns in windows)
    method = "counter_between_updates" if series.is_counter else "power_trapezoids"
    entry = Energy(
        sensor=SENSOR,
        joules_j=None,
        window_ns=None,
        samples=samples,
        block_ns=window_ns,
        kind=kind,
        tier="external_meter",
        method=method if is_one_block else "between_readings",
        begin_ns=windows[0][0],
        steps=steps,
        align_error_ns=series.error_ns,
    )
    near = slice(
        max(0, int(np.searchsorted(series.at_ns, windows[0][0])) - 2),
        int(np.searchsorted(series.at_ns, windows[-1][1])) + 2,
    )
    at_ns, values = series.at_ns[near].tolist(), series.values[near].tolist()
    if series.error_ns > (most_ns := ERROR_SHARE_MAX * window_ns):
        return replace(entry, reason=reason("meter_misaligned", error_s=series.error_ns / 1e9, most_s=most_ns / 1e9))
    if not at_ns:
        return replace(entry, reason=reason("energy_low_coverage", coverage_pct=0.0, needed_pct=100.0))
    if not is_one_block:
        energy = parts_energy(at_ns, values, windows, series.spacing_ns, is_counter=series.is_counter)
    elif series.is_counter:
        energy = counter_energy(at_ns, values, *windows[0], series.spacing_ns)
    else:
        energy = power_energy(at_ns, values, *windows[0], series.spacing_ns, is_each_fresh=True)
    if isinstance(energy, Refusal):
        return replace(entry, reason=Reason(code=energy.code, values={**energy.values}))
    fields = energy._asdict() | {"error_fraction": energy.error_fraction + series.error_ns / energy.window_ns}
    return replace(entry, **fields)
