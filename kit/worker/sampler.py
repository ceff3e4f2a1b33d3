"""The sampler: reads every sensor ten times a second, from a process of its own.

    deadline k = start + k * period      absolute, so that a late tick delays no other
    ├── tick 0 ──┤── tick 1 ──┤── (late) ──┤── tick 3 ──┤  ...  until told, or the watched process is gone

Python that ran beside the measured steps would take the interpreter lock from them; this process takes only a CPU,
another one than the worker's where there is one, and it writes down how much of it.

`python -m kit.worker.sampler --pid PID --out FILE [--period-s 0.1]` writes "ready" to standard output, then samples
until SIGTERM, until standard input closes (with --until-stdin-closes), or until PID is gone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kit.sensors.catalog import open_all
from kit.sensors.protocol import Sensor
from kit.sensors.stamp import now_ns
from kit.worker.parent_death import die_with_parent
from kit.worker.samples import Footer, Header, Tick

DEFAULT_PERIOD_S = 0.1
# Counters update every 10 to 100 ms: reading faster costs more than it shows.
MIN_PERIOD_S = 0.02
# Reading a clock frequency asks every CPU in turn, sleeping ones included: once a second.
SLOW_QUANTITIES_NS = {"frequency": 1_000_000_000}


class EndSignal:
    """Wakes the sampler when it is to end: SIGTERM or SIGINT, standard input closed, or the watched process gone."""

    def __init__(self, pid: int, watch_stdin: bool) -> None:
        told_fd, write_fd = os.pipe()
        os.set_blocking(write_fd, False)
        signal.set_wakeup_fd(write_fd)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        self._why = {told_fd: "told to end"}
        if watch_stdin:
            self._why[sys.stdin.fileno()] = "standard input closed"
        # Before Linux 5.3 there is no pidfd; then standard input, which the worker holds, is what tells.
        with contextlib.suppress(OSError):
            self._why[os.pidfd_open(pid)] = f"process {pid} is gone"

    def wait_until(self, deadline_ns: int) -> str | None:
        """Sleep until the deadline, and at least look once; why to end, as soon as there is a reason."""
        left_s = max(0, deadline_ns - now_ns()) / 1e9
        readable, _, _ = select.select(list(self._why), [], [], left_s)
        return self._why[readable[0]] if readable else None


class Pace:
    """Which sensors are due at which tick."""

    def __init__(self, sensors: Sequence[Sensor], period_ns: int) -> None:
        self.every_ticks: list[int] = []  # 0: never
        for sensor in sensors:
            report = sensor.probe()
            slow_ns = SLOW_QUANTITIES_NS.get(report.quantity, period_ns)
            self.every_ticks.append(0 if report.status == "unavailable" else max(1, round(slow_ns / period_ns)))

    def due(self, index: int, tick: int) -> bool:
        """Whether the sensor at `index` is read at this tick."""
        every = self.every_ticks[index]
        return every > 0 and tick % every == 0


def sample(pid: int, file: Path, period_ns: int, end: EndSignal) -> None:
    """Sample until told to end or `pid` is gone.

    Raises:
        OSError: the file cannot be written.
    """
    sensors = open_all(pid, excluded_pid=os.getpid())
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    encode = msgspec.json.Encoder().encode
    header = Header(pid=pid, period_ns=period_ns, reports=[sensor.probe() for sensor in sensors])
    os.write(out, encode(header) + b"\n")
    os.write(sys.stdout.fileno(), b"ready\n")

    pace = Pace(sensors, period_ns)
    start_ns = now_ns()
    tick = 0
    while (why := end.wait_until(start_ns + tick * period_ns)) is None:
        at_ns = now_ns()
        readings = [
            (reading.at_ns, reading.value) if pace.due(index, tick) and (reading := sensor.read()) else None
            for index, sensor in enumerate(sensors)
        ]
        os.write(out, encode(Tick(at_ns, time.process_time_ns(), readings)) + b"\n")
        tick = 1 + max(tick, (now_ns() - start_ns) // period_ns)
    os.write(out, encode(Footer(ended=why, at_ns=now_ns())) + b"\n")
    for sensor in sensors:
        sensor.close()


def leave_cpus_to(pid: int) -> None:
    """Move to CPUs that `pid` may not use, where there are any; else stay."""
    with contextlib.suppress(OSError):
        others = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(pid)
        if others:
            os.sched_setaffinity(0, others)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, then sample. Exit 2: not a process, not a period, not a file that can be written."""
    parser = argparse.ArgumentParser(prog="python -m kit.worker.sampler", description="Sample every sensor.")
    parser.add_argument("--pid", type=int, required=True, help="process to watch, with its children")
    parser.add_argument("--out", type=Path, required=True, help="file for the samples, one line a tick")
    parser.add_argument("--period-s", type=float, default=DEFAULT_PERIOD_S, help="seconds between ticks")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the process that holds the pipe")
    options = parser.parse_args(arguments)
    if not options.period_s >= MIN_PERIOD_S:
        parser.error(f"--period-s {options.period_s} is too short: give {MIN_PERIOD_S} or more")
    if not Path(f"/proc/{options.pid}").exists():
        parser.error(f"--pid {options.pid}: no such process")
    if options.until_stdin_closes:
        # A stopped process, as in the observer test, does not see its standard input close.
        die_with_parent()
    end = EndSignal(options.pid, options.until_stdin_closes)
    leave_cpus_to(options.pid)
    try:
        sample(options.pid, options.out, int(options.period_s * 1e9), end)
    except OSError as error:
        parser.error(f"--out {options.out} cannot be written: {error.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
