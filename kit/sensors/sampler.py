"""The sampler: a process that reads the sampled sensors ten times a second, and what its readings say of a launch.

    deadline k = start + k * period      absolute, so that a late tick delays no other
    ├── tick 0 ──┤── tick 1 ──┤── (late) ──┤── tick 3 ──┤  ...  until standard input closes
             ├─────── window ───────┤            of a launch: mean and maximum in it, and its energy

In the measured process it would take the interpreter lock from the steps; as a process of its own it takes only some
CPU time. It writes line by line, so that a killed sampler loses at most one tick:

    [report, ...]                          the sensors, in the order of the values below
    [[at_ns, value], null, ...]            one tick; null: not read at this tick; value null: the read failed

The command is `python -m kit.sensors.sampler > FILE`; the runner starts and stops it by `Sampling`. If a sampler dies,
its round loses the sampled numbers, with the reason, and nothing else. The process starts without NumPy, so functions
that need `kit.stats.window_energy` import it.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, linear_regression
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from kit.import_order import module_command
from kit.profile.fields import Reason, reason
from kit.profile.instruments import Energy, EnergyKind, SensorReadings, SensorReport, SensorSummary, Tier
from kit.sensors import nvml
from kit.sensors.sources import Reading, Sensor, measured, now_ns, sampled_sensors

if TYPE_CHECKING:
    from kit.stats.window_energy import Joules, Refusal, Window

# Counters are updated every 10 to 100 ms: faster reading would cost more than it shows.
PERIOD_NS = 100_000_000
# How many ticks lie between reads of a quantity, of a device or not, where it is more than one. Reading the frequency
# of CPUs asks each in turn and wakes those that sleep. An activity is a mean between readings, which NVML wants further
# apart than 100 ms.
TICKS_APART = {("frequency", False): 10, ("activity", True): 5}
# A sampler stops within one read; if it takes longer, it hangs in a driver.
STOP_TIMEOUT_S = 3.0
# Before its first tick a sampler measures how often the GPUs' counters are updated.
START_TIMEOUT_S = 10.0
# Readings 0.1 s apart give a sound mean power if many updates of a counter lie between them, as with RAPL (not NVML).
POWER_UPDATE_MAX_NS = 10_000_000
# What is kept over time of the devices in a long block: it shows when a board settles. So many values of a sensor show
# a block of 10 s reading by reading, and are as many as a chart has room for.
KEPT_OVER_TIME, KEPT_MOST = ("power", "frequency"), 200
# The first value of a gauge in a window belongs to what ran before the window, so the window has to hold one more.
PERIODS_LEAST = 2


class Sampling:
    """One sampler process, from `start` to `stop`."""

    def __init__(self, reports: Sequence[SensorReport]) -> None:
        self._reports = reports
        self._out, self._error = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        command = module_command(sys.executable, "kit.sensors.sampler")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self._out, stderr=self._error)

    @classmethod
    def start(cls, reports: Sequence[SensorReport]) -> Self | None:
        """Start a sampler; None where there is nothing to sample. `reports`: from `probe_all`, once a run."""
        sampled = [report for report in reports if report.sampled and report.status != "unavailable"]
        return cls(sampled) if sampled else None

    def wait_for_first(self) -> None:
        """Wait until the sampler reads, unless it has ended or hangs in a driver."""
        end_s = time.monotonic() + START_TIMEOUT_S
        while os.fstat(self._out.fileno()).st_size == 0 and self._process.poll() is None and time.monotonic() < end_s:
            time.sleep(PERIOD_NS / 1e10)

    def stop(self) -> Sampled:
        """End the sampler and return what it read."""
        try:
            self._process.communicate(timeout=STOP_TIMEOUT_S)  # closes its standard input
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with self._out, self._error:
            self._out.seek(0)
            self._error.seek(0)
            series, lines = read_series(self._out.read()), self._error.read().decode(errors="replace").splitlines()
        if series and self._process.returncode == 0:
            return Sampled(series)
        failure = reason("sampler_failed", exit_code=self._process.returncode, error=["", *lines][-1])
        return Sampled(series or [SensorSeries(report, [], []) for report in self._reports], failure)


class SensorSeries(NamedTuple):
    """Successful readings of one sensor, by time."""

    report: SensorReport
    at_ns: list[int]
    values: list[float]

    @property
    def memory_ns(self) -> int:
        """How far back a gauge's value reaches: its update period, or the time that it is a mean over."""
        report = self.report
        return 0 if report.counter else max(report.update_period_ns or 0, report.mean_over_ns or 0)

    def within(self, windows: Sequence[Window]) -> Iterator[slice]:
        """Yield which readings belong to each window that is long enough for this sensor.

        A gauge's readings before its memory has passed belong to what ran before the window.
        """
        for begin_ns, end_ns in windows:
            if end_ns - begin_ns >= PERIODS_LEAST * self.memory_ns:
                yield slice(bisect_left(self.at_ns, begin_ns + self.memory_ns), bisect_right(self.at_ns, end_ns))

    def summaries(self, windows: Sequence[Window]) -> dict[str, SensorSummary]:
        """Return mean and maximum of the readings in the windows, by name; nothing if no reading is there.

        A mask of clocks event reasons gives the percentage of readings in which the GPU was slowed, and one for each
        reason. A counter gives its rate.
        """
        name, unit = self.report.name, self.report.unit
        if self.report.counter:
            return self._rate(windows)
        shown = {name: [value for inside in self.within(windows) for value in self.values[inside]]}
        if unit == nvml.MASK:
            unit, slowed = "%", [nvml.slowing(int(mask)) for mask in shown[name]]
            shown = {name: [100.0 * bool(causes) for causes in slowed]}
            for cause in sorted({cause for causes in slowed for cause in causes}):
                shown[f"{name}.{cause}"] = [100.0 * (cause in causes) for causes in slowed]
        return {
            key: SensorSummary(mean=fmean(values), max=max(values), unit=unit, samples=len(values))
            for key, values in shown.items()
            if values
        }

    def _rate(self, windows: Sequence[Window]) -> dict[str, SensorSummary]:
        """Return how fast a counter rose: in all windows, and at most between two readings.

        Nanoseconds give the percentage of time in which the counter rose, joules give `<sensor>.power` if the counter
        is updated often enough. A counter that fell was reset, and joules that stood still are a failure, not 0 W.
        """
        name, is_time = self.report.name, self.report.unit == "ns"
        is_power = self.report.quantity == "energy" and 0 < (self.report.update_period_ns or 0) <= POWER_UPDATE_MAX_NS
        steps = [step for inside in self.within(windows) for step in pairwise(range(len(self.at_ns))[inside])]
        rises = [self.values[later] - self.values[earlier] for earlier, later in steps]
        spans_ns = [self.at_ns[later] - self.at_ns[earlier] for earlier, later in steps]
        if min(rises, default=-1) < 0 or not (is_time or (is_power and any(rises))):
            return {}
        factor, unit = (100, "%") if is_time else (1e9, "W")
        mean = factor * sum(rises) / sum(spans_ns)
        highest = max(factor * rise / span_ns for rise, span_ns in zip(rises, spans_ns, strict=True))
        summary = SensorSummary(mean=mean, max=highest, unit=unit, samples=len(rises))
        return {name if is_time else f"{name}.power": summary}


class Sampled(NamedTuple):
    """Everything one sampler read; `failure`: why it ended too early, or read nothing."""

    series: Sequence[SensorSeries]
    failure: Reason | None = None

    def for_devices(self, device_ids: Sequence[str]) -> Sampled:
        """Return the samples without the sensors of other devices."""
        return self._replace(
            series=[series for series in self.series if series.report.device_id in (None, *device_ids)]
        )

    def gauges_needing_longer_windows(self, windows: Sequence[Window]) -> dict[str, Reason]:
        """Return the gauges for which all windows are too short, with the length that they need."""
        longest_ns = max((end_ns - begin_ns for begin_ns, end_ns in windows), default=0)
        return {
            series.report.name: reason(
                "gauge_window_too_short", window_ns=longest_ns, needed_ns=PERIODS_LEAST * series.memory_ns
            )
            for series in self.series
            if longest_ns < PERIODS_LEAST * series.memory_ns
        }

    def summaries(self, windows: Sequence[Window]) -> dict[str, SensorSummary]:
        """Return what `Series.summaries` gives for each sensor."""
        return {name: summary for series in self.series for name, summary in series.summaries(windows).items()}

    def over_time(self, window: Window) -> list[SensorReadings]:
        """Return what gauges of power and clock of the devices read in a window; of more than KEPT_MOST means."""
        kept = []
        for report, at_ns, values in self.series:
            inside = range(bisect_left(at_ns, window[0]), bisect_right(at_ns, window[1]))
            if report.device_id is None or report.quantity not in KEPT_OVER_TIME or not inside:
                continue
            count = -(-len(inside) // KEPT_MOST)
            parts = [slice(first, min(first + count, inside.stop)) for first in inside[::count]]
            kept.append(
                SensorReadings(
                    sensor=report.name,
                    unit=report.unit,
                    at_ns=[round(fmean(at_ns[part])) - window[0] for part in parts],
                    values=[fmean(values[part]) for part in parts],
                    readings_per_value=count,
                )
            )
        return kept

    def energy(self, kind: EnergyKind, windows: Sequence[Window], samples: int, steps: int) -> list[Energy]:
        """Return the energy in the windows by every sampled sensor of energy or power.

        Entries overlap (a GPU's counter and its integrated power; psys and the packages in it): never add them up.

        Args:
            kind: a steady block is one long window, whose ends move to updates of the sensor. Other windows are as
                long as what ran in them, so readings around their ends are interpolated.
            windows: begin and end of each.
            samples: samples that were trained or inferred in the windows.
            steps: steps in the windows.
        """
        from kit.stats.window_energy import Joules, block_energy, parts_energy

        entries = []
        for series in self._energy_series():
            report, at_ns, values = series
            is_counter, lag_max_ns, warming_c_per_s = report.counter, report.lag_max_ns or 0, None
            if kind == "steady":
                method = "counter_between_updates" if is_counter else "power_trapezoids"
                warming_c_per_s = self._warming_c_per_s(report.device_id, windows[0])
                energy = block_energy(
                    at_ns, values, *windows[0], report.update_period_ns,
                    is_counter=is_counter, memory_ns=series.memory_ns, lag_max_ns=lag_max_ns,
                )  # fmt: skip
            else:
                method = "between_readings"
                period_ns = report.update_period_ns if is_counter else series.memory_ns or None
                energy = parts_energy(at_ns, values, windows, period_ns, is_counter=is_counter, lag_max_ns=lag_max_ns)
            tier: Tier = "device_counter" if is_counter else "integrated_power"
            entry = Energy(
                sensor=report.name,
                joules_j=None,
                window_ns=None,
                samples=samples,
                block_ns=sum(end_ns - begin_ns for begin_ns, end_ns in windows),
                device_id=report.device_id,
                kind=kind,
                tier="modelled" if report.status == "modelled" else tier,
                method=method,
                begin_ns=windows[0][0],
                steps=steps,
                warming_c_per_s=warming_c_per_s,
            )
            more = energy._asdict() if isinstance(energy, Joules) else {"reason": self._why(energy)}
            entries.append(replace(entry, **more))
        return entries

    def idle_w(self, window: Window) -> dict[str, Joules | Reason]:
        """Return the energy of each of these sensors while no worker was alive, or why it is unknown."""
        from kit.stats.window_energy import IDLE_ERROR_SHARE_MAX, Joules, idle_power, parts_energy

        shown: dict[str, Joules | Reason] = {}
        for series in self._energy_series():
            report, at_ns, values = series
            begin_ns, end_ns = window[0] + max(series.memory_ns, report.lag_max_ns or 0), window[1]
            if report.counter:
                idle = parts_energy(
                    at_ns, values, [(begin_ns, end_ns)], report.update_period_ns,
                    is_counter=True, error_share_max=IDLE_ERROR_SHARE_MAX,
                )  # fmt: skip
            else:
                idle = idle_power(at_ns, values, begin_ns, end_ns)
            shown[report.name] = idle if isinstance(idle, Joules) else self._why(idle)
        return shown

    def _energy_series(self) -> list[SensorSeries]:
        return [series for series in self.series if series.report.quantity in ("energy", "power")]

    def _warming_c_per_s(self, device_id: str | None, window: Window) -> float | None:
        """Return the slope of a device's temperature in the window; None if no sensor shows it."""
        for report, at_ns, degrees_c in self.series:
            if device_id is not None and (report.device_id, report.quantity) == (device_id, "temperature"):
                inside = slice(bisect_left(at_ns, window[0]), bisect_right(at_ns, window[1]))
                seconds = [(at - window[0]) / 1e9 for at in at_ns[inside]]
                return linear_regression(seconds, degrees_c[inside]).slope if len(seconds) > 1 else None
        return None

    def _why(self, refusal: Refusal) -> Reason:
        return self.failure or Reason(code=refusal.code, values={**refusal.values})


def read_series(written: bytes) -> list[SensorSeries]:
    """Return the series that a sampler wrote, up to where it was cut off; nothing if no line can be read."""
    series: list[SensorSeries] = []
    try:
        head, *lines = written.splitlines()
        series = [SensorSeries(report, [], []) for report in msgspec.json.decode(head, type=list[SensorReport])]
        decode = msgspec.json.Decoder(list[Reading | None]).decode
        for line in lines:
            for (_, at_ns, values), reading in zip(series, decode(line), strict=False):
                if reading is not None and reading.value is not None:
                    at_ns.append(reading.at_ns)
                    values.append(reading.value)
    except ValueError:  # killed while it wrote
        pass
    return series


def _cost_sensor() -> Sensor:
    """Return the sensor of the sampler's own CPU time since its last reading, in percent of the usable CPUs."""
    scope = "the sampler, of the usable CPUs"
    report = measured("sampler.cpu", "utilization", "%", scope, "CLOCK_PROCESS_CPUTIME_ID")
    last, cpus = (now_ns(), time.process_time_ns()), len(os.sched_getaffinity(0))

    def taken_pct() -> float:
        nonlocal last
        earlier, last = last, (now_ns(), time.process_time_ns())
        return 100 * (last[1] - earlier[1]) / (last[0] - earlier[0]) / cpus

    return Sensor(report, taken_pct)


def main() -> None:
    """Write a tick to standard output at every deadline until standard input closes.

    Raises:
        OSError: the output cannot be written.
    """
    # A terminal signals the whole process group; the runner decides what a signal means.
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interrupt, signal.SIG_IGN)
    sensors = [*(sensor for sensor in sampled_sensors() if sensor.is_available), _cost_sensor()]
    out, encode = sys.stdout.fileno(), msgspec.json.Encoder().encode
    os.write(out, encode([sensor.report for sensor in sensors]) + b"\n")
    due_ticks = [0] * len(sensors)
    start_ns, tick = now_ns(), 0
    while not select.select([sys.stdin], [], [], max(0, start_ns + tick * PERIOD_NS - now_ns()) / 1e9)[0]:
        readings: list[Reading | None] = [None] * len(sensors)
        for index, sensor in enumerate(sensors):
            if tick >= due_ticks[index]:
                readings[index] = sensor.read()
                of_device = sensor.report.device_id is not None
                due_ticks[index] = tick + TICKS_APART.get((sensor.report.quantity, of_device), 1)
        os.write(out, encode(readings) + b"\n")
        tick = max(tick, (now_ns() - start_ns) // PERIOD_NS) + 1


if __name__ == "__main__":
    main()
