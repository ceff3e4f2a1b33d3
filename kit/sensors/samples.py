"""What a sampler saw, summed up: mean and largest in the windows of a launch, and the energy of a long block."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, linear_regression
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kit.profile.reason import Reason, reason
from kit.profile.sensor import Energy, EnergyKind, SensorReport, SensorSummary, Tier
from kit.sensors import nvml

if TYPE_CHECKING:
    from kit.stats.energy import Joules, Refusal, Window

# Mean power from a counter's readings 0.1 s apart is sound where many updates lie between them: RAPL's, not NVML's.
POWER_UPDATE_MAX_NS = 10_000_000
# A gauge's first value in a window is of what ran before it: a window has to hold one more.
PERIODS_LEAST = 2


class Series(NamedTuple):
    """Successful readings of one sensor, by time."""

    report: SensorReport
    at_ns: list[int]
    values: list[float]

    @property
    def memory_ns(self) -> int:
        """How long before it a value of a gauge is still of: its update period, or what it is a mean over."""
        of_report = self.report
        return 0 if of_report.counter else max(of_report.update_period_ns or 0, of_report.mean_over_ns or 0)

    @property
    def lag_max_ns(self) -> int:
        """How long at most joules are of what ran before."""
        return self.report.lag_max_ns or 0

    def within(self, windows: Sequence[Window]) -> Iterator[slice]:
        """Yield the place of each window's readings, of windows that are long enough for it.

        Readings of a gauge sooner after the begin than its memory are of what ran before.
        """
        for begin_ns, end_ns in windows:
            if end_ns - begin_ns >= PERIODS_LEAST * self.memory_ns:
                yield slice(bisect_left(self.at_ns, begin_ns + self.memory_ns), bisect_right(self.at_ns, end_ns))


class Samples(NamedTuple):
    """Everything one sampler saw; `failure`: why it ended before it was told to, or gave nothing."""

    series: Sequence[Series]
    failure: Reason | None = None

    def of_boards(self, device_ids: Sequence[str]) -> Samples:
        """Return what is of these boards, or of no board."""
        kept = [of_sensor for of_sensor in self.series if of_sensor.report.device_id in (None, *device_ids)]
        return Samples(kept, self.failure)

    def too_slow(self, windows: Sequence[Window]) -> dict[str, Reason]:
        """Return the gauges for which all windows are too short, with what they would need."""
        longest_ns = max((end_ns - begin_ns for begin_ns, end_ns in windows), default=0)
        return {
            of_sensor.report.name: reason(
                "gauge_window_too_short", window_ns=longest_ns, needed_ns=PERIODS_LEAST * of_sensor.memory_ns
            )
            for of_sensor in self.series
            if longest_ns < PERIODS_LEAST * of_sensor.memory_ns
        }

    def summaries(self, windows: Sequence[Window]) -> dict[str, SensorSummary]:
        """Return mean and largest of the readings within the windows; a sensor without a reading there is left out.

        A counter of energy gives the mean power between its readings, `<sensor>.power`, where it is updated often
        enough; one of nanoseconds the share of the time for which it rose. A mask of clocks event reasons gives the
        share of readings in which the GPU was slowed, and by what.
        """
        summaries: dict[str, SensorSummary] = {}
        for series in self.series:
            name, unit = series.report.name, series.report.unit
            values = [value for inside in series.within(windows) for value in series.values[inside]]
            if series.report.counter:
                summaries |= _risen(series, windows) if unit == "ns" else _mean_power(series, windows)
            elif values and unit == nvml.MASK:
                summaries |= _slowed(name, [nvml.slowing(int(value)) for value in values])
            elif values:
                summaries[name] = SensorSummary(mean=fmean(values), max=max(values), unit=unit, samples=len(values))
        return summaries

    def energy(self, begin_ns: int, end_ns: int, samples: int, steps: int) -> list[Energy]:
        """Return the energy of one long block, of so many `samples`, by every sampled sensor of energy or power.

        The entries overlap (a counter and the integral of power of one board; psys and the packages within it): they
        stand beside each other and are never added.
        """
        # Not above: the sampler is a process of its own, and starts without NumPy.
        from kit.stats.energy import block_energy

        entries = []
        for series in self._of_energy():
            report, at_ns, values = series
            energy = block_energy(
                at_ns, values, begin_ns, end_ns, report.update_period_ns,
                is_counter=report.counter, memory_ns=series.memory_ns, lag_max_ns=series.lag_max_ns,
            )  # fmt: skip
            method = "counter_between_updates" if report.counter else "power_trapezoids"
            entry = self._entry(report, energy, method, [(begin_ns, end_ns)], samples, steps, "steady")
            entries.append(replace(entry, warming_c_per_s=self._warming_c_per_s(report.device_id, begin_ns, end_ns)))
        return entries

    def energy_of_parts(self, of: EnergyKind, windows: Sequence[Window], samples: int, steps: int) -> list[Energy]:
        """Return the energy of stretches that are as long as what ran in them, by the same sensors."""
        from kit.stats.energy import parts_energy

        entries = []
        for series in self._of_energy():
            report, at_ns, values = series
            period_ns = report.update_period_ns if report.counter else series.memory_ns or None
            energy = parts_energy(
                at_ns, values, windows, period_ns, is_counter=report.counter, lag_max_ns=series.lag_max_ns
            )
            entries.append(self._entry(report, energy, "between_readings", windows, samples, steps, of))
        return entries

    def idle_w(self, window: Window) -> dict[str, Joules | Reason]:
        """Return what each of these sensors showed while nothing of this run was alive, or why that is not known."""
        from kit.stats.energy import IDLE_ERROR_SHARE_MAX, Joules, idle_power, parts_energy

        begin_ns, end_ns = window
        shown: dict[str, Joules | Reason] = {}
        for series in self._of_energy():
            report, at_ns, values = series
            counts_from_ns = begin_ns + max(series.memory_ns, series.lag_max_ns)
            if report.counter:
                idle = parts_energy(
                    at_ns, values, [(counts_from_ns, end_ns)], report.update_period_ns,
                    is_counter=True, error_share_max=IDLE_ERROR_SHARE_MAX,
                )  # fmt: skip
            else:
                idle = idle_power(at_ns, values, counts_from_ns, end_ns)
            shown[report.name] = idle if isinstance(idle, Joules) else self.failure or _as_reason(idle)
        return shown

    def _warming_c_per_s(self, device_id: str | None, begin_ns: int, end_ns: int) -> float | None:
        """Return the slope of the temperature of a board from begin to end; None where no sensor tells it."""
        for series in self.series:
            report = series.report
            if device_id is not None and (report.device_id, report.quantity) == (device_id, "temperature"):
                inside = slice(bisect_left(series.at_ns, begin_ns), bisect_right(series.at_ns, end_ns))
                seconds = [(at_ns - begin_ns) / 1e9 for at_ns in series.at_ns[inside]]
                return linear_regression(seconds, series.values[inside]).slope if len(seconds) > 1 else None
        return None

    def _of_energy(self) -> list[Series]:
        return [of_sensor for of_sensor in self.series if of_sensor.report.quantity in ("energy", "power")]

    def _entry(  # noqa: PLR0917 - what an entry is made of
        self,
        report: SensorReport,
        energy: Joules | Refusal,
        method: str,
        windows: Sequence[Window],
        samples: int,
        steps: int,
        of: EnergyKind,
    ) -> Energy:
        from kit.stats.energy import Joules

        tier: Tier = "device_counter" if report.counter else "integrated_power"
        entry = Energy(
            sensor=report.name,
            joules_j=None,
            window_ns=None,
            samples=samples,
            block_ns=sum(end_ns - begin_ns for begin_ns, end_ns in windows),
            device_id=report.device_id,
            kind=of,
            tier="modelled" if report.status == "modelled" else tier,
            method=method,
            begin_ns=windows[0][0],
            steps=steps,
        )
        if isinstance(energy, Joules):
            return replace(entry, **energy._asdict())
        return replace(entry, reason=self.failure or _as_reason(energy))


def _as_reason(refusal: Refusal) -> Reason:
    return Reason(code=refusal.code, values={**refusal.values})


def _risen(series: Series, windows: Sequence[Window]) -> dict[str, SensorSummary]:
    """Share of the time for which a counter of nanoseconds rose, over all readings and between two at most."""
    spans = [
        (after - before, later - earlier)
        for inside in series.within(windows)
        for (earlier, later), (before, after) in zip(
            pairwise(series.at_ns[inside]), pairwise(series.values[inside]), strict=True
        )
    ]
    if not spans or min(risen for risen, _ in spans) < 0:
        return {}  # a counter that fell was reset: what it held is lost
    mean = 100 * sum(risen for risen, _ in spans) / sum(span_ns for _, span_ns in spans)
    highest = max(100 * risen / span_ns for risen, span_ns in spans)
    return {series.report.name: SensorSummary(mean=mean, max=highest, unit="%", samples=len(spans))}


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
    if not joules_j or any(rise < 0 for rise, _ in spans):
        return {}  # a counter that stood still or was reset: a broken reading, not free work
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
