"""The sampler: reads what has no counter at the process ten times a second, from a process of its own.

    deadline k = start + k * period      absolute, so that a late tick delays no other
    ├── tick 0 ──┤── tick 1 ──┤── (late) ──┤── tick 3 ──┤  ...  until standard input closes

Python that ran in the measured process would take the interpreter lock from its steps; this one takes only a CPU, now
and then. It writes line by line, so that a killed sampler loses one tick:

    [report, ...]                          what is sampled, in this order
    [[at_ns, value], null, ...]            one tick; null: not read at this tick; value null: the read failed

`python -m kit.sensors.sampler > FILE`. The runner starts and stops it by `Sampling`: one that dies costs a round its
sampled numbers, with the reason, and nothing else.
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

from kit.profile.reason import reason
from kit.profile.sensor import SensorReport
from kit.sensors.catalog import sampled_sensors
from kit.sensors.protocol import Reading, Sensor, now_ns
from kit.sensors.samples import Samples, Series

# Counters update every 10 to 100 ms: reading faster costs more than it shows.
PERIOD_NS = 100_000_000
# Reading a clock frequency asks every CPU in turn, sleeping ones included: once a second. Activity is a mean between
# readings that NVML wants further apart than 100 ms.
TICKS = {"frequency": 10, "activity": 5}
# It ends within one read; what takes longer hangs in a driver.
STOP_TIMEOUT_S = 3.0
# It measures how often the GPUs' counters are fresh.
START_TIMEOUT_S = 10.0


class Sampling:
    """One sampler process, from `start` to `stop`."""

    def __init__(self, reports: Sequence[SensorReport]) -> None:
        self._reports = reports
        self._out, self._error = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        command = [sys.executable, "-m", "kit.sensors.sampler"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self._out, stderr=self._error)

    @classmethod
    def start(cls, reports: Sequence[SensorReport]) -> Self | None:
        """Start a sampler; None where there is nothing to sample. `reports`: from `probe_all`, once a run."""
        sampled = [report for report in reports if report.sampled and report.status != "unavailable"]
        return cls(sampled) if sampled else None

    def wait_for_first(self) -> None:
        """Wait until it reads; what takes longer hangs in a driver, or has ended."""
        end_s = time.monotonic() + START_TIMEOUT_S
        while os.fstat(self._out.fileno()).st_size == 0 and self._process.poll() is None and time.monotonic() < end_s:
            time.sleep(PERIOD_NS / 1e10)

    def stop(self) -> Samples:
        """End the sampler and return what it saw."""
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
    """Return what a sampler wrote, whole or cut off; empty where it wrote nothing that can be read."""
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


def cost_sensor() -> Sensor:
    """Return the sensor of what the sampler itself takes of all usable CPUs, since its last reading."""
    report = SensorReport(
        name="sampler.cpu",
        quantity="utilization",
        unit="%",
        scope="the sampler, of the usable CPUs",
        source="CLOCK_PROCESS_CPUTIME_ID",
        status="measured",
    )
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
    # They go to a terminal's whole group: the runner decides what they mean.
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interrupt, signal.SIG_IGN)
    sensors = [*(sensor for sensor in sampled_sensors() if sensor.is_available), cost_sensor()]
    ticks_apart = [TICKS.get(sensor.report.quantity, 1) for sensor in sensors]
    out, encode = sys.stdout.fileno(), msgspec.json.Encoder().encode
    os.write(out, encode([sensor.report for sensor in sensors]) + b"\n")
    due = [0] * len(sensors)
    start_ns, tick = now_ns(), 0
    while not select.select([sys.stdin], [], [], max(0, start_ns + tick * PERIOD_NS - now_ns()) / 1e9)[0]:
        line: list[Reading | None] = [None] * len(sensors)
        for index, sensor in enumerate(sensors):
            if tick >= due[index]:
                line[index], due[index] = sensor.read(), tick + ticks_apart[index]
        os.write(out, encode(line) + b"\n")
        tick = max(tick, (now_ns() - start_ns) // PERIOD_NS) + 1


if __name__ == "__main__":
    main()
