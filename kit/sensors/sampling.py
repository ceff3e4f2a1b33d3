"""The runner's handle on its sampler: start, stop, and what it saw in the windows of a launch.

A sampler that dies costs a round its sampled numbers, with the reason, and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from kit.profile.reason import Reason, reason
from kit.profile.sensor import Energy, SensorReport, SensorSummary
from kit.sensors import nvml
from kit.sensors.protocol import Reading

# It ends within one read; what takes longer hangs in a driver.
STOP_TIMEOUT_S = 3.0
# Mean power from a counter's readings 0.1 s apart is sound where many updates lie between them: RAPL's, not NVML's.
POWER_UPDATE_MAX_NS = 10_000_000

Window = tuple[int, int]  # begin and end, on CLOCK_MONOTONIC_RAW


class Series(NamedTuple):
    """Successful readings of one sensor, by time."""

    report: SensorReport
    at_ns: list[int]
    values: list[float]

    def within(self, windows: Sequence[Window]) -> Iterator[slice]:
        """Yield the place of each window's readings.

        A gauge shows what was in its last update period: with a known one, readings sooner after the begin are of what
        ran before.
        """
        settle_ns = 0 if self.report.counter else self.report.update_period_ns or 0
        for begin_ns, end_ns in windows:
            yield slice(bisect_left(self.at_ns, begin_ns + settle_ns), bisect_right(self.at_ns, end_ns))


class Samples:
    """Everything one sampler saw.

    Args:
        series: one for each sensor that it read.
        failure: why it ended before it was told to, or gave nothing.
    """

    def __init__(self, series: Sequence[Series], failure: Reason | None = None) -> None:
        self.series = series
        self.failure = failure

    def summaries(self, windows: Sequence[Window]) -> dict[str, SensorSummary]:
        """Return mean and largest of the readings within the windows; a sensor without a reading there is left out.

        A counter of energy gives the mean power between its readings, `<sensor>.power`, where it is updated often
        enough. A mask of clocks event reasons gives the share of readings in which the GPU was slowed, and by what.
        """
        summaries: dict[str, SensorSummary] = {}
        for series in self.series:
            name, unit = series.report.name, series.report.unit
            values = [value for inside in series.within(windows) for value in series.values[inside]]
            if series.report.counter:
                summaries |= _mean_power(series, windows)
            elif values and unit == nvml.MASK:
                summaries |= _slowed(name, [nvml.slowing(int(value)) for value in values])
            elif values:
                summaries[name] = SensorSummary(mean=fmean(values), max=max(values), unit=unit, samples=len(values))
        return summaries

    def energy(self, begin_ns: int, end_ns: int, samples: int) -> list[Energy]:
        """Return the energy of one long block by every sensor of energy or power that was sampled.

        The entries overlap (a counter and the integral of power of one board; psys and the packages within it): they
        stand beside each other and are never added.

        Args:
            begin_ns: of the block.
            end_ns: of the block.
            samples: trained or inferred in the block.
        """
        from kit.stats.energy import Joules, counter_energy, power_energy

        entries = []
        for report, at_ns, values in self.series:
            if report.quantity not in ("energy", "power"):
                continue
            measure = counter_energy if report.counter else power_energy
            energy = measure(at_ns, values, begin_ns, end_ns, report.update_period_ns)
            entry = Energy(
                sensor=report.name,
                joules_j=None,
                window_ns=None,
                samples=samples,
                block_ns=end_ns - begin_ns,
                device_id=report.device_id,
            )
            if isinstance(energy, Joules):
                entries.append(replace(entry, joules_j=energy.joules_j, window_ns=energy.window_ns))
            else:
                why = self.failure or Reason(code=energy.code, values={**energy.values})
                entries.append(replace(entry, reason=why))
        return entries


class Sampling:
    """One sampler process, from `start` to `stop`."""

    def __init__(self, reports: Sequence[SensorReport]) -> None:
        self._nothing = [Series(report, [], []) for report in reports]
        self._out, self._error = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kit.sensors.sampler"],
            stdin=subprocess.PIPE,
            stdout=self._out,
            stderr=self._error,
        )

    @classmethod
    def start(cls, reports: Sequence[SensorReport]) -> Self | None:
        """Start a sampler; None where there is nothing to sample. `reports`: of `probe_all`, asked once a run."""
        sampled = [report for report in reports if report.sampled and report.status != "unavailable"]
        return cls(sampled) if sampled else None

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
            series, words = read_series(self._out.read()), self._error.read().decode(errors="replace")
        if series and self._process.returncode == 0:
            return Samples(series)
        last = ["", *words.splitlines()][-1]
        return Samples(
            series or self._nothing, reason("sampler_failed", exit_code=self._process.returncode, error=last)
        )


def read_series(written: bytes) -> list[Series]:
    """Return what a sampler wrote, whole or cut off; empty where it wrote nothing that can be read."""
    series: list[Series] = []
    try:
        head, *lines = written.splitlines()
        series = [Series(report, [], []) for report in msgspec.json.decode(head, type=list[SensorReport])]
        decode = msgspec.json.Decoder(list[Reading | None]).decode
        for line in lines:
            for of_sensor, reading in zip(series, decode(line), strict=False):
                if reading is not None and reading.value is not None:
                    of_sensor.at_ns.append(reading.at_ns)
                    of_sensor.values.append(reading.value)
    except ValueError:  # killed while it wrote
        pass
    return series


def _mean_power(series: Series, windows: Sequence[Window]) -> dict[str, SensorSummary]:
    report, at_ns, values = series
    if report.quantity != "energy" or (report.update_period_ns or POWER_UPDATE_MAX_NS + 1) > POWER_UPDATE_MAX_NS:
        return {}
    spans = [
        (after - before, (later - earlier) / 1e9)
        for inside in series.within(windows)
        for (earlier, later), (before, after) in zip(pairwise(at_ns[inside]), pairwise(values[inside]), strict=True)
    ]
    joules_j, seconds = sum(rise for rise, _ in spans), sum(duration for _, duration in spans)
    if not joules_j:
        return {}  # a counter that stood still: a broken reading, not free work
    highest = max(rise / duration for rise, duration in spans)
    power = SensorSummary(mean=joules_j / seconds, max=highest, unit="W", samples=len(spans))
    return {f"{report.name}.power": power}


def _slowed(name: str, reasons: Sequence[Sequence[str]]) -> dict[str, SensorSummary]:
    """Share of readings in which a GPU was slowed by anything (0 where it never was), and by each reason seen."""
    hits = {name: [bool(words) for words in reasons]}
    for seen in sorted({word for words in reasons for word in words}):
        hits[f"{name}.{seen}"] = [seen in words for words in reasons]
    return {
        about: SensorSummary(mean=100 * fmean(count), max=100.0 * any(count), unit="%", samples=len(count))
        for about, count in hits.items()
    }
