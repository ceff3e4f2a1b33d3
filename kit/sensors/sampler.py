"""The sampler, a process that reads the sampled sensors ten times a second.

    deadline k = start + k * period      absolute, so that a late tick delays no other
    ├── tick 0 ──┤── tick 1 ──┤── (late) ──┤── tick 3 ──┤  ...  until standard input closes

In the measured process it would take the interpreter lock from the steps; as a process of its own it takes only some
CPU time. It writes line by line, so that a killed sampler loses at most one tick:

    [report, ...]                          the sensors, in the order of the values below
    [[at_ns, value], null, ...]            one tick; null: not read at this tick; value null: the read failed

The command is `python -m kit.sensors.sampler > FILE`; the runner starts and stops it by `Sampling`. If a sampler dies,
its round loses the sampled numbers, with the reason, and nothing else.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Self

import msgspec

from kit.import_order import module_command
from kit.profile.reason import reason
from kit.profile.sensor import SensorReport
from kit.sensors.catalog import sampled_sensors
from kit.sensors.protocol import Reading, Sensor, measured, now_ns
from kit.sensors.samples import Samples, Series

# Counters are updated every 10 to 100 ms: faster reading would cost more than it shows.
PERIOD_NS = 100_000_000
# How many ticks lie between reads of a quantity, where it is more than one. Reading the frequency asks each CPU in turn
# and wakes those that sleep. An activity is a mean between readings, which NVML wants further apart than 100 ms.
TICKS_APART = {"frequency": 10, "activity": 5}
# A sampler stops within one read; if it takes longer, it hangs in a driver.
STOP_TIMEOUT_S = 3.0
# Before its first tick a sampler measures how often the GPUs' counters are updated.
START_TIMEOUT_S = 10.0


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

    def stop(self) -> Samples:
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
            return Samples(series)
        failure = reason("sampler_failed", exit_code=self._process.returncode, error=["", *lines][-1])
        return Samples(series or [Series(report, [], []) for report in self._reports], failure)


def read_series(written: bytes) -> list[Series]:
    """Return the series that a sampler wrote, up to where it was cut off; nothing if no line can be read."""
    series: list[Series] = []
    try:
        head, *lines = written.splitlines()
        series = [Series(report, [], []) for report in msgspec.json.decode(head, type=list[SensorReport])]
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
                due_ticks[index] = tick + TICKS_APART.get(sensor.report.quantity, 1)
        os.write(out, encode(readings) + b"\n")
        tick = max(tick, (now_ns() - start_ns) // PERIOD_NS) + 1


if __name__ == "__main__":
    main()
