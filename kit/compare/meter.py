"""Joules of the whole machine, from an external meter's file over the blocks of a run.

    time,power_w                               or time,energy_j
    2026-01-01T12:00:00.000+01:00,412.5        ISO 8601 with its zone, or Unix seconds
    2026-01-01T12:00:01.000+01:00,             nothing was read: a gap

The meter tells UTC, and blocks are on CLOCK_MONOTONIC_RAW. Both states of a run have both clocks:

    UTC       taken ├───────── readings of the meter ─────────┤ taken        of the states before and after
    raw      raw_ns ├──── blocks on CLOCK_MONOTONIC_RAW ──────┤ raw_ns

Between both states, UTC is taken to run evenly. The error of that is at most the drift between the two clocks; the
widths of both states' readings and half of the time between two readings of the meter are added to it. The meter's own
clock is the user's to set. A million lines take about two seconds.
"""

from __future__ import annotations

import io
import math
from array import array
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kit.compare.rows import Note
from kit.errors import KitError
from kit.files import open_limited
from kit.profile.cell import Cell
from kit.profile.facts import BARE_METAL, Identity
from kit.profile.fields import Reason, reason
from kit.profile.instruments import NO_SENSOR, Energy, EnergyKind, SensorReport
from kit.profile.schema import Launch, Profile, StateSpan
from kit.stats.window_energy import (
    ERROR_SHARE_MAX,
    REPEATS_FROM,
    Joules,
    Refusal,
    Window,
    block_energy,
    parts_energy,
    refresh_ns,
)

SENSOR = "meter"
# Header -> whether its values add up.
HEADERS = {"time,power_w": False, "time,energy_j": True}
# Quartz is off by at most about this, and UTC is not; its rate changes with temperature by a few ppm.
CRYSTAL_PPM, RATE_CHANGE_PPM = 100.0, 5.0
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
# The resolution of a state's `taken`
TAKEN_NS = 1_000
# 64 bits of nanoseconds end in 2262; a larger number is in milliseconds.
SECONDS_MAX = 9.2e9
# A year of a reading a second takes about this.
FILE_MAX_B = 1 << 30
# Longer cells are neither a time nor a number, and a message shows no more of them.
# Watts or joules: a power station in a year.
READING_MAX = 1e17
CELL_MAX = 48


# A computer that runs a framework draws at least this. A log in kilowatts is below it.
MACHINE_LEAST_W = 1.0
# The most that a chassis, a logical CPU and an accelerator draw at the plug, generously: 384 logical CPUs draw about
# 1 kW, a board up to 1.4 kW. A log in milliwatts is beyond that. A guest does not see all of the machine that is
# metered; the largest with a plug of its own draw about 20 kW.
CHASSIS_MOST_W, CPU_MOST_W, ACCELERATOR_MOST_W, HOST_MOST_W = 5_000.0, 25.0, 3_000.0, 30_000.0


class MeterFileError(KitError):
    """A file that cannot be read as a meter's."""


class OtherTimeError(KitError):
    """A run during which the meter read nothing."""


class MeterReadings(NamedTuple):
    """What a meter read, by time; lines without a reading are left out."""

    at_ns: NDArray[np.int64]  # UTC, of a run its raw clock
    values: NDArray[np.float64]  # watts; of a counter joules
    is_counter: bool
    spacing_ns: int  # the usual time between two readings
    error_ns: int = 0  # of `at_ns`
    period_ns: int = 0  # between fresh values of the sensor behind the log; at least the spacing


def read_meter(file: Path) -> MeterReadings:
    """Read a meter's file.

    Raises:
        MeterFileError: it is none; the line says where and what would be right.
    """
    times_ns, values, last_ns = array("q"), array("d"), -1
    try:
        with io.TextIOWrapper(open_limited(file, FILE_MAX_B), encoding="utf-8-sig", errors="replace") as lines:
            header = next(lines, "").strip()
            if header not in HEADERS:
                what = f"the header is {header[:CELL_MAX]!r}" if header else "the file is empty"
                raise MeterFileError(f"{file}: {what}; begin it with time,power_w or time,energy_j")
            for number, line in enumerate(lines, 2):
                cells = [cell.strip() for cell in line.split(",")]
                if cells == [""]:
                    continue
                try:
                    if len(cells) != 2:  # noqa: PLR2004 - time and value
                        raise ValueError(f"it has {len(cells)} columns, and two are needed")
                    last_ns, value = _utc_ns(cells[0], last_ns), _value(cells[1])
                except ValueError as error:
                    raise MeterFileError(f"{file}: line {number}: {error}") from None
                if not math.isnan(value):
                    times_ns.append(last_ns)
                    values.append(value)
    except OSError as error:
        raise MeterFileError(f"{file} cannot be read: {error.strerror}") from None
    if len(values) < 2:  # noqa: PLR2004 - energy is of the time between two
        raise MeterFileError(f"{file}: fewer than two readings; the file needs a header, and a line for each reading")
    utc_ns = np.array(times_ns, np.int64)
    return MeterReadings(utc_ns, np.array(values, np.float64), HEADERS[header], int(np.median(np.diff(utc_ns))))


def _value(text: str) -> float:
    """Return a reading; nan: nothing was read. Raises ValueError that says what is wrong."""
    try:
        value = float(text or "nan")
    except ValueError:
        raise ValueError(f"{text[:CELL_MAX]!r} is not a number") from None
    if value < 0 or value > READING_MAX:
        raise ValueError(f"{text[:CELL_MAX]!r} is not possible; leave out what the meter did not read")
    return value


def _utc_ns(text: str, last_ns: int) -> int:
    """Return nanoseconds since 1970 of ISO 8601 with a zone, or of Unix seconds, after those of the previous line.

    Raises:
        ValueError: it is neither, or not later.
    """
    shown = repr(text[:CELL_MAX])
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{shown} is not a time in ISO 8601, such as 2026-01-01T12:00:00+01:00") from None
        if moment.tzinfo is None:
            raise ValueError(f"{shown} has no zone; write it as 2026-01-01T12:00:00+01:00, or with Z for UTC") from None
        at_ns = _since_epoch_ns(moment)
    else:
        if not 0 <= seconds <= SECONDS_MAX:
            raise ValueError(f"{shown} is not a time in Unix seconds; milliseconds have to be divided by 1000")
        at_ns = round(seconds * 1e9)
    if at_ns <= last_ns:
        raise ValueError("its time is not later than that of the previous line; sort by time, each time once")
    return at_ns


def _since_epoch_ns(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND * 1_000


class Meter:
    """A meter's file, and what has to be said about it below the tables.

    Args:
        file: as above.

    Raises:
        MeterFileError: it is none.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._readings = file, read_meter(file)
        self._hardware: str | None = None
        self._used, self._error_ns, self._period_ns = 0, 0, 0
        self._other_time: OtherTimeError | None = None

    def replaces_joules_of(self, label: str, profile: Profile) -> Profile:
        """Return the profile with the meter's joules, or why there are none: also where it read nothing in the run.

        Raises:
            KitError: as `added_to`.
        """
        try:
            return self.added_to(label, profile)
        except OtherTimeError as error:
            self._other_time = self._other_time or error
            return _metered(profile, Refusal("meter_read_nothing", {}), math.inf)

    def added_to(self, label: str, profile: Profile) -> Profile:
        """Return the profile with the meter's joules over each of its blocks for energy, or why there are none.

        Raises:
            OtherTimeError: the meter read nothing in it.
            KitError: it lacks UTC at an end, or it is from a second machine.
        """
        hardware = profile.identity.hardware_sha256
        if self._hardware not in (None, hardware):
            raise KitError(f"--meter {self._file} covers one machine, and {label} is from another; leave {label} out")
        series = self._series(label, profile.state)
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
            update_period_ns=series.period_ns,
        )
        profile = _metered(profile, series, _machine_most_w(profile.identity))
        return replace(profile, sensors=[*profile.sensors, report])

    def note(self) -> Note:
        """Return what was read, and how well it is aligned at worst.

        Raises:
            OtherTimeError: it read nothing in any of the runs.
        """
        if self._other_time is not None and not self._used:
            raise self._other_time
        spacing_ns, period_ns = self._readings.spacing_ns, self._period_ns
        values = {"spacing_s": spacing_ns / 1e9, "align_s": self._error_ns / 1e9}
        values |= {"period_s": period_ns / 1e9} if period_ns > REPEATS_FROM * spacing_ns else {}
        code = "meter_repeats" if "period_s" in values else "meter"
        return Note(what=reason(code, file=self._file.name, readings=self._used, **values))

    def _series(self, label: str, span: StateSpan) -> MeterReadings:
        """Return the readings of a run on its own clock, with one reading before it and one after it."""
        (utc_begin, utc_end), (raw_begin, raw_end), clock_error_ns = _clocks(label, span)
        readings = self._readings
        first, last = np.searchsorted(readings.at_ns, (utc_begin, utc_end))
        if first == last:
            ends = (EPOCH + int(ns) // 1_000 * MICROSECOND for ns in (utc_begin, utc_end, *readings.at_ns[[0, -1]]))
            begin, end, first_read, last_read = (f"{moment:%Y-%m-%d %H:%M:%S}" for moment in ends)
            raise OtherTimeError(
                f"{self._file} has no reading during {label}: the run took {begin} to {end} UTC, "
                f"the file covers {first_read} to {last_read} UTC"
            )
        inside = slice(max(0, int(first) - 1), int(last) + 1)
        since_ns = (readings.at_ns[inside] - utc_begin) * ((raw_end - raw_begin) / (utc_end - utc_begin))
        at_ns: NDArray[np.int64] = raw_begin + np.rint(since_ns).astype(np.int64)
        error_ns = clock_error_ns + readings.spacing_ns // 2
        values, period_ns = readings.values[inside], readings.spacing_ns
        if not readings.is_counter:  # a counter's own rises show its period
            period_ns = max(period_ns, round(refresh_ns(at_ns.astype(np.float64), values)))
        self._used, self._error_ns = self._used + int(last - first), max(self._error_ns, error_ns)
        self._period_ns = max(self._period_ns, period_ns)
        return readings._replace(at_ns=at_ns, values=values, error_ns=error_ns, period_ns=period_ns)


def _clocks(label: str, span: StateSpan) -> tuple[Window, Window, int]:
    """Return UTC and the raw clock at both ends of a run, and how far one may be off the other in between."""
    before, after = span.before, span.after or span.before
    raw_begin, raw_end = before.raw_ns, after.raw_ns
    try:
        utc_begin, utc_end = (_since_epoch_ns(datetime.fromisoformat(state.taken)) for state in (before, after))
    except (ValueError, TypeError):
        raw_begin = None
    if span.after is None or raw_begin is None or raw_end is None:
        raise KitError(
            f"{label}: --meter needs the time of the run's clock at both ends, which it does not have; measure it again"
        )
    drift_ns = abs((utc_end - utc_begin) - (raw_end - raw_begin))
    # A constant rate is corrected between both ends; a larger drift is a clock that was set, or a machine that slept.
    is_rate = drift_ns <= CRYSTAL_PPM / 1e6 * (raw_end - raw_begin)
    unknown_ns = int(RATE_CHANGE_PPM / 1e6 * (raw_end - raw_begin) / 2) if is_rate else drift_ns
    widths_ns = (before.raw_width_ns or 0) + (after.raw_width_ns or 0) + 2 * TAKEN_NS
    return (utc_begin, max(utc_end, utc_begin + 1)), (raw_begin, raw_end), widths_ns + unknown_ns


def _machine_most_w(identity: Identity) -> float:
    """Return the most that a machine may draw; of a guest, which does not know its host, that of the largest."""
    cpus = identity.integer("cpu.cores_logical")
    if cpus is None or identity.text("hypervisor") != BARE_METAL:
        return HOST_MOST_W
    return CHASSIS_MOST_W + CPU_MOST_W * cpus + ACCELERATOR_MOST_W * len(identity.accelerators())


def _metered(profile: Profile, series: MeterReadings | Refusal, most_w: float) -> Profile:
    """Return the profile with entries of the meter; `most_w`: more is not believed."""
    for result in profile.cells:
        known = [energy for launch in result.launches for energy in launch.energy]
        has_long = any(energy.kind == "steady" and energy.begin_ns is not None for energy in known)
        for launch in result.launches:
            parts = _parts(result.cell, launch, has_long=has_long)
            entries = [_entry(part, series, most_w) for part in parts]
            launch.energy = [*(energy for energy in launch.energy if energy.sensor != NO_SENSOR), *entries]
    return profile


class _Part(NamedTuple):
    """A part of a launch that is to have an entry of the meter; without windows it is not known when it ran."""

    kind: EnergyKind
    is_block: bool  # one long block; else its ends are interpolated between readings
    samples: int
    steps: int
    windows: list[Window]


def _parts(cell: Cell, launch: Launch, *, has_long: bool) -> list[_Part]:
    """Return the blocks that sensors have entries for, or that were measured for the meter.

    Without a long block also all blocks together. A long block is one window. Where sensors have an entry of some
    kind, the meter has one, so that theirs is not taken for it.
    """
    known = {(energy.kind, energy.begin_ns): energy for energy in launch.energy if energy.kind != "fit"}
    parts = [
        _Part(kind, kind == "steady", energy.samples, energy.steps or 0, [(begin_ns, begin_ns + energy.block_ns)])
        for (kind, begin_ns), energy in known.items()
        if begin_ns is not None
    ]
    blocks, steps = launch.blocks, sum(launch.blocks.all_steps())
    windows = blocks.windows()
    if windows and not has_long:
        parts.append(_Part(cell.traits.energy, False, steps * cell.batch, steps, windows))
    lacking = dict.fromkeys(energy.kind for energy in launch.energy).keys() - {part.kind for part in parts}
    return [*parts, *(_Part(kind, False, 0, 0, []) for kind in sorted(lacking))]


def _entry(part: _Part, series: MeterReadings | Refusal, most_w: float) -> Energy:
    """Return the meter's entry of a part, with joules and the error of the alignment, or why there are none."""
    block_ns = sum(end_ns - begin_ns for begin_ns, end_ns in part.windows)
    energy: Joules | Refusal
    if isinstance(series, Refusal):
        energy, method, align_error_ns = series, None, None
    else:
        energy, align_error_ns = _joules(part, series, block_ns, most_w), series.error_ns
        of_block = "counter_between_updates" if series.is_counter else "power_trapezoids"
        method = of_block if part.is_block else "between_readings"
    fields: dict[str, Any] = {"joules_j": None, "window_ns": None}
    if isinstance(energy, Refusal):
        fields["reason"] = Reason(code=energy.code, values={**energy.values})
    else:
        fields = energy._asdict()
        fields["error_fraction"] += (align_error_ns or 0) / energy.window_ns
    return Energy(
        sensor=SENSOR,
        samples=part.samples,
        block_ns=block_ns,
        kind=part.kind,
        tier="external_meter",
        method=method,
        begin_ns=part.windows[0][0] if part.windows else None,
        steps=part.steps,
        align_error_ns=align_error_ns,
        **fields,
    )


def _joules(part: _Part, series: MeterReadings, block_ns: int, most_w: float) -> Joules | Refusal:
    """Return what the meter read over a part; `most_w`: a mean power beyond this is not believed."""
    if not part.windows:
        return Refusal("energy_block_without_time", {})
    if series.error_ns > (most_ns := ERROR_SHARE_MAX * block_ns):
        return Refusal("meter_misaligned", {"error_s": series.error_ns / 1e9, "most_s": most_ns / 1e9})
    (begin_ns, _), (_, end_ns) = part.windows[0], part.windows[-1]
    first, last = np.searchsorted(series.at_ns, (begin_ns, end_ns))
    near = slice(max(0, int(first) - 2), int(last) + 2)
    at_ns, values = series.at_ns[near].tolist(), series.values[near].tolist()
    if not at_ns:
        return Refusal("energy_low_coverage", {"coverage_pct": 0.0, "needed_pct": 100.0})
    is_counter, period_ns = series.is_counter, series.period_ns
    if part.is_block:
        read = block_energy(at_ns, values, begin_ns, end_ns, period_ns, is_counter=is_counter, is_each_fresh=True)
    else:
        read = parts_energy(at_ns, values, part.windows, period_ns, is_counter=is_counter)
    if isinstance(read, Refusal):
        return read
    power_w = read.joules_j / read.window_ns * 1e9
    if MACHINE_LEAST_W <= power_w <= most_w:
        return read
    return Refusal("meter_implausible", {"power_w": power_w, "least_w": MACHINE_LEAST_W, "most_w": most_w})
