"""Joules from logs of power over the blocks of a run: of the whole machine, or of as much of it as a log covers.

A log tells UTC, and blocks are on CLOCK_MONOTONIC_RAW. Both states of a run have both clocks:

    UTC       taken ├───────── readings of the log ───────────┤ taken        of the states before and after
    raw      raw_ns ├──── blocks on CLOCK_MONOTONIC_RAW ──────┤ raw_ns

Between both states, UTC is taken to run evenly. The error of that is at most the drift between the two clocks; the
widths of both states' readings and half of the time between two readings of the log are added to it. The log's own
clock is the user's to set. How late a sensor shows power is not known: so much of a block's begin does not count, and
by how much the rest still moves is added to the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kit.compare.log_times import EPOCH, MICROSECOND, since_epoch_ns, zone_named
from kit.compare.meter_logs import MeterReadings, read_meter
from kit.compare.rows import Note
from kit.errors import KitError
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

# How the name of a log's sensor begins, before what it covers.
SENSOR = "meter."
# What a log covers that covers no more than one kind of device.
OF_ONE_DEVICE = {"gpu": "gpu", "package": "cpu"}
# In place of a zone: that of the measured machine.
ZONE_OF_RUN = "run"
# Quartz is off by at most about this, and UTC is not; its rate changes with temperature by a few ppm.
CRYSTAL_PPM, RATE_CHANGE_PPM = 100.0, 5.0
# The resolution of a state's `taken`
TAKEN_NS = 1_000
# A computer that runs a framework draws at least this. A log in kilowatts is below it.
MACHINE_LEAST_W = 1.0
# The most that a chassis, a logical CPU and an accelerator draw at the plug, generously: 384 logical CPUs draw about
# 1 kW, a board up to 1.4 kW. A log in milliwatts is beyond that. A guest does not see all of the machine that is
# metered; the largest with a plug of its own draw about 20 kW.
CHASSIS_MOST_W, CPU_MOST_W, ACCELERATOR_MOST_W, HOST_MOST_W = 5_000.0, 25.0, 3_000.0, 30_000.0


class OtherTimeError(KitError):
    """A run during which a log has no reading."""


class MeterChoice(NamedTuple):
    """The logs that a user gave, and how they are read."""

    files: Sequence[Path]
    zone: str = ""  # of times that do not say theirs; ZONE_OF_RUN: that of the measured machine
    columns: Sequence[str] = ()  # that are added up


class Meter:
    """Logs of power, and what has to be said about them below the tables.

    Raises:
        KitError: one of them is none, or there is no such zone.
    """

    def __init__(self, choice: MeterChoice) -> None:
        zone = zone_named(choice.zone) if choice.zone not in ("", ZONE_OF_RUN) else None
        is_of_run = choice.zone == ZONE_OF_RUN
        has_others = len(choice.files) > 1
        read = partial(read_meter, zone=zone, names=choice.columns, has_others=has_others)
        self._logs = [_MeterLog(file, read, zone, is_of_run=is_of_run) for file in choice.files]
        self._other_time: OtherTimeError | None = None

    def replaces_joules_of(self, label: str, profile: Profile) -> Profile:
        """Return the profile with the logs' joules, or why there are none: also where they read nothing in the run.

        Raises:
            KitError: as `added_to`.
        """
        try:
            return self.added_to(label, profile)
        except OtherTimeError as error:
            self._other_time = self._other_time or error
            return _metered(profile, lambda _: (SENSOR.rstrip("."), Refusal("meter_read_nothing", {})), math.inf)

    def added_to(self, label: str, profile: Profile) -> Profile:
        """Return the profile with the logs' joules over each of its blocks for energy, or why there are none.

        Raises:
            OtherTimeError: no log has a reading in it.
            KitError: it lacks UTC at an end, all logs are of other machines, or two cover the same of it.
        """
        hardware = profile.identity.hardware_sha256
        known: dict[str, MeterReadings] = {}
        other_time: OtherTimeError | None = None
        for log in self._logs:
            if log.hardware not in (None, hardware):
                continue
            try:
                series = log.series(label, profile.state)
            except OtherTimeError as error:
                other_time = other_time or error
                continue
            # A profile that could not be aligned does not say which machine the readings are from.
            log.hardware = hardware
            if series.covers in known:
                raise KitError(
                    f"--meter {log.file} and another log cover the same of {label}; compare each profile with its own"
                )
            known[series.covers] = series
            report = SensorReport(
                name=SENSOR + series.covers,
                quantity="energy" if series.is_counter else "power",
                unit="J" if series.is_counter else "W",
                scope=series.covers,
                source=str(log.file),
                status="measured",
                counter=series.is_counter,
                update_period_ns=series.period_ns,
                lag_max_ns=series.lag_max_ns or None,
            )
            profile = replace(profile, sensors=[*profile.sensors, report])
        if other_time is not None and not known:
            raise other_time
        if not known:
            raise KitError(
                f"--meter {self._logs[0].file} covers one machine, and {label} is from another; leave {label} out, or "
                "give its own log, too"
            )
        return _metered(profile, lambda cell: _log_of(cell, known), _machine_most_w(profile.identity))

    def notes(self) -> list[Note]:
        """Return what was read of each log, how well it is aligned at worst, and when a run took place by its clock.

        Raises:
            OtherTimeError: nothing was read in any of the runs.
        """
        if self._other_time is not None and not any(log.used for log in self._logs):
            raise self._other_time
        return [note for log in self._logs if log.used for note in log.notes()]


class _MeterLog:
    """One log.

    Attributes:
        hardware: of the machine that it covers; None: it is not known.
        used: readings so far.
    """

    def __init__(self, file: Path, read: Callable[..., MeterReadings], zone: tzinfo | None, *, is_of_run: bool) -> None:
        self.file, self.hardware, self.used = file, None, 0
        self._zone, self._first_run, self._adrift = zone, ("", 0, 0), ""
        self._read, self._error_ns, self._period_ns = read, 0, 0
        self._readings = None if is_of_run else read(file)

    hardware: str | None
    _readings: MeterReadings | None

    def notes(self) -> list[Note]:
        assert self._readings is not None
        spacing_ns, period_ns, covers = self._readings.spacing_ns, self._period_ns, self._readings.covers
        values = {"spacing_s": spacing_ns / 1e9, "align_s": self._error_ns / 1e9}
        values |= {"period_s": period_ns / 1e9} if period_ns > REPEATS_FROM * spacing_ns else {}
        code = "meter_repeats" if "period_s" in values else "meter"
        what = [reason(code, file=self.file.name, readings=self.used, covers=covers, **values)]
        if self._zone is not None:
            # A long log has readings an hour off, too, so that nothing else shows a wrong zone.
            label, *ends_ns = self._first_run
            begin, end = ((EPOCH + ns // 1_000 * MICROSECOND).astimezone(self._zone) for ns in ends_ns)
            times = {"begin": f"{begin:%Y-%m-%d %H:%M:%S}", "end": f"{end:%H:%M:%S}"}
            what.append(reason("meter_zone", file=self.file.name, profile=label, **times))
        if self._adrift:
            what.append(reason("meter_clock", file=self.file.name, profile=self._adrift))
        return [Note(what=each) for each in what]

    def series(self, label: str, span: StateSpan) -> MeterReadings:
        """Return the readings of a run on its own clock, with one reading before it and one after it."""
        (utc_begin, utc_end), (raw_begin, raw_end), clock_error_ns = _clocks(label, span)
        if self._readings is None:
            self._zone = _zone_of(label, span)
            self._readings = self._read(self.file, zone=self._zone)
        readings = self._readings
        first, last = np.searchsorted(readings.at_ns, (utc_begin, utc_end))
        if first == last:
            ends = (EPOCH + int(ns) // 1_000 * MICROSECOND for ns in (utc_begin, utc_end, *readings.at_ns[[0, -1]]))
            begin, end, first_read, last_read = (f"{moment:%Y-%m-%d %H:%M:%S}" for moment in ends)
            raise OtherTimeError(
                f"{self.file} has no reading during {label}: the run took {begin} to {end} UTC, "
                f"the file covers {first_read} to {last_read} UTC"
            )
        inside = slice(max(0, int(first) - 1), int(last) + 1)
        since_ns = (readings.at_ns[inside] - utc_begin) * ((raw_end - raw_begin) / (utc_end - utc_begin))
        at_ns: NDArray[np.int64] = raw_begin + np.rint(since_ns).astype(np.int64)
        error_ns = clock_error_ns + readings.spacing_ns // 2 + readings.error_ns
        values, period_ns, lag_max_ns = readings.values[inside], readings.spacing_ns, 0
        if not readings.is_counter:  # a counter's own rises show its period
            period_ns = max(period_ns, round(refresh_ns(at_ns.astype(np.float64), values)))
            # A value may be a mean over the time since the one before it.
            lag_max_ns = max(readings.lag_max_ns, readings.spacing_ns)
        self._first_run = self._first_run if self.used else (label, utc_begin, utc_end)
        if span.before.facts.get("clock_synchronized") is False:
            self._adrift = self._adrift or label
        self.used, self._error_ns = self.used + int(last - first), max(self._error_ns, error_ns)
        self._period_ns = max(self._period_ns, period_ns)
        return readings._replace(
            at_ns=at_ns, values=values, error_ns=error_ns, period_ns=period_ns, lag_max_ns=lag_max_ns
        )


def _zone_of(label: str, span: StateSpan) -> tzinfo:
    """Return the zone of the measured machine.

    Raises:
        KitError: the profile does not say it, or its clock was put forward or back meanwhile.
    """
    offsets_s = {None if state is None else state.integer("utc_offset_s") for state in (span.before, span.after)}
    offset_s = next(iter(offsets_s))
    if len(offsets_s) > 1 or offset_s is None:
        why = "does not say its zone" if None in offsets_s else "changed to or from summer time"
        raise KitError(f"--meter-zone {ZONE_OF_RUN}: {label} {why}; name the zone, such as Europe/Berlin")
    return timezone(timedelta(seconds=offset_s))


def _log_of(cell: Cell, known: dict[str, MeterReadings]) -> tuple[str, MeterReadings | Refusal]:
    """Return the name and the readings of the first log that covers a cell's device, or why there are none."""
    refusal = None
    for covers, series in known.items():
        if OF_ONE_DEVICE.get(covers, cell.device) != cell.device:
            refusal = refusal or Refusal("meter_of_other_device", {"covers": covers, "device": cell.device})
        elif series.gpus not in (0, cell.devices):
            refusal = Refusal("meter_of_other_count", {"gpus": series.gpus, "devices": cell.devices})
        else:
            return SENSOR + covers, series
    assert refusal is not None
    return SENSOR + next(iter(known)), refusal


def _clocks(label: str, span: StateSpan) -> tuple[Window, Window, int]:
    """Return UTC and the raw clock at both ends of a run, and how far one may be off the other in between."""
    before, after = span.before, span.after or span.before
    raw_begin, raw_end = before.raw_ns, after.raw_ns
    try:
        utc_begin, utc_end = (since_epoch_ns(datetime.fromisoformat(state.taken)) for state in (before, after))
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


def _metered(profile: Profile, log_of: Callable[[Cell], tuple[str, MeterReadings | Refusal]], most_w: float) -> Profile:
    """Return the profile with entries of its logs; `most_w`: more is not believed."""
    for result in profile.cells:
        sensor, series = log_of(result.cell)
        known = [energy for launch in result.launches for energy in launch.energy]
        has_long = any(energy.kind == "steady" and energy.begin_ns is not None for energy in known)
        for launch in result.launches:
            parts = _parts(result.cell, launch, has_long=has_long)
            entries = [_entry(sensor, part, series, most_w) for part in parts]
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


def _entry(sensor: str, part: _Part, series: MeterReadings | Refusal, most_w: float) -> Energy:
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
        sensor=sensor,
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
    after = int(np.searchsorted(series.at_ns, end_ns + series.lag_max_ns))
    near = slice(max(0, int(first) - 2), max(int(last), after) + 2)
    at_ns, values = series.at_ns[near].tolist(), series.values[near].tolist()
    if not at_ns:
        return Refusal("energy_low_coverage", {"coverage_pct": 0.0, "needed_pct": 100.0})
    is_counter, period_ns, lag_max_ns = series.is_counter, series.period_ns, series.lag_max_ns
    if part.is_block:
        read = block_energy(
            at_ns, values, begin_ns, end_ns, period_ns, is_counter=is_counter, lag_max_ns=lag_max_ns, is_each_fresh=True
        )
    else:
        read = parts_energy(at_ns, values, part.windows, period_ns, is_counter=is_counter, lag_max_ns=lag_max_ns)
    if isinstance(read, Refusal):
        return read
    power_w = read.joules_j / read.window_ns * 1e9
    least_w = MACHINE_LEAST_W if series.covers == "wall" else 0.0
    if least_w <= power_w <= most_w:
        return read
    return Refusal("meter_implausible", {"power_w": power_w, "least_w": least_w, "most_w": most_w})
