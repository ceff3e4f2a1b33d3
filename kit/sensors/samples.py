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

# The sampler is a process of its own, and starts without NumPy: what needs `kit.stats.energy` imports it when called.
if TYPE_CHECKING:
    from kit.stats.energy import Joules, Refusal, Window

# Mean power from a counter's readings 0.1 s apart is sound where many updates lie between them: RAPL's, not NVML's.
POWER_UPDATE_MAX_NS = 10_000_000
# The first value of a gauge in a window belongs to what ran before the window, so the window has to hold one more.
PERIODS_LEAST = 2


class Series(NamedTuple):
    """Successful readings of one sensor, by time."""

    report: SensorReport
    at_ns: list[int]
    values: list[float]

    @property
    def memory_ns(self) -> int:
        """How far back a value of a gauge reaches: its update period, or the time that it is a mean over."""
        report = self.report
        return 0 if report.counter else max(report.update_period_ns or 0, report.mean_over_ns or 0)

    @property
    def lag_max_ns(self) -> int:
        """How far joules can lag behind the work."""
        return self.report.lag_max_ns or 0

    def within(self, windows: Sequence[Window]) -> Iterator[slice]:
        """Yield where the readings of each window are, for windows that are long enough for this sensor.

        Readings of a gauge that come sooner after the begin than its memory belong to what ran before.
        """
        for begin_ns, end_ns in windows:
            if end_ns - begin_ns >= PERIODS_LEAST * self.memory_ns:
                yield slice(bisect_left(self.at_ns, begin_ns + self.memory_ns), bisect_right(self.at_ns, end_ns))

    def rates(self, windows: Sequence[Window]) -> dict[str, SensorSummary]:
        """Return how fast a counter rose, over all readings in the windows and between two at most.

        Nanoseconds give the percentage of the time for which they rose. Joules give the power, if they are updated
        often enough. A counter that fell was reset, and joules that stood still are a broken reading, not free work.
        """
        name, is_time = self.report.name, self.report.unit == "ns"
        updates = (self.report.update_period_ns or POWER_UPDATE_MAX_NS + 1) <= POWER_UPDATE_MAX_NS
        rises = [
            (after - before, later - earlier)
            for inside in self.within(windows)
            for (earlier, later), (before, after) in zip(
                pairwise(self.at_ns[inside]), pairwise(self.values[inside]), strict=True
            )
        ]
        risen, span_ns = sum(rise for rise, _ in rises), sum(span for _, span in rises)
        is_broken = not rises or min(rise for rise, _ in rises) < 0
        if is_broken or not (is_time or (self.report.quantity == "energy" and updates and risen)):
            return {}
        factor, unit = (100, "%") if is_time else (1e9, "W")
        highest = max(factor * rise / span for rise, span in rises)
        summary = SensorSummary(mean=factor * risen / span_ns, max=highest, unit=unit, samples=len(rises))
        return {name if is_time else f"{name}.power": summary}


class Samples(NamedTuple):
    """Everything one sampler saw; `failure`: why it ended too early, or gave nothing."""

    series: Sequence[Series]
    failure: Reason | None = None

    def for_devices(self, device_ids: Sequence[str]) -> Samples:
        """Return the sensors of these devices, and those of no device."""
        return Samples(
            [series for series in self.series if series.report.device_id in (None, *device_ids)], self.failure
        )

    def gauges_needing_longer_windows(self, windows: Sequence[Window]) -> dict[str, Reason]:
        """Return the gauges for which all windows are too short, with what they would need."""
        longest_ns = max((end_ns - begin_ns for begin_ns, end_ns in windows), default=0)
        return {
            series.report.name: reason(
                "gauge_window_too_short", window_ns=longest_ns, needed_ns=PERIODS_LEAST * series.memory_ns
            )
            for series in self.series
            if longest_ns < PERIODS_LEAST * series.memory_ns
        }

    def summaries(self, windows: Sequence[Window]) -> dict[str, SensorSummary]:
        """Return mean and largest of the readings within the windows; a sensor without a reading there is left out.

        A counter gives its rate: `<sensor>.power` of joules, a percentage of nanoseconds. A mask of clocks event
        reasons gives the percentage of readings in which the GPU was slowed (0 if it never was), and by which reason.
        """
        summaries: dict[str, SensorSummary] = {}
        for series in self.series:
            name, unit = series.report.name, series.report.unit
            values = [value for inside in series.within(windows) for value in series.values[inside]]
            if series.report.counter:
                summaries |= series.rates(windows)
                continue
            shown = {name: values}
            if unit == nvml.MASK:
                unit, slowed = "%", [nvml.slowing(int(mask)) for mask in values]
                shown = {name: [100.0 * bool(causes) for causes in slowed]}
                for cause in sorted({cause for causes in slowed for cause in causes}):
                    shown[f"{name}.{cause}"] = [100.0 * (cause in causes) for causes in slowed]
            for about, numbers in shown.items():
                if numbers:
                    mean, highest = fmean(numbers), max(numbers)
                    summaries[about] = SensorSummary(mean=mean, max=highest, unit=unit, samples=len(numbers))
        return summaries

    def energy(self, begin_ns: int, end_ns: int, samples: int, steps: int) -> list[Energy]:
        """Return the energy of one long block, of so many `samples`, by every sampled sensor of energy or power.

        The entries overlap (a counter and the integral of power of one GPU; psys and the packages within it), and are
        never added.
        """
        from kit.stats.energy import block_energy

        entries = []
        for series in self._energy_series():
            report, at_ns, values = series
            energy = block_energy(
                at_ns, values, begin_ns, end_ns, report.update_period_ns,
                is_counter=report.counter, memory_ns=series.memory_ns, lag_max_ns=series.lag_max_ns,
            )  # fmt: skip
            method = "counter_between_updates" if report.counter else "power_trapezoids"
            entry = self._entry(report, energy, method, "steady", [(begin_ns, end_ns)], samples, steps)
            entries.append(replace(entry, warming_c_per_s=self._warming_c_per_s(report.device_id, begin_ns, end_ns)))
        return entries

    def energy_of_parts(self, kind: EnergyKind, windows: Sequence[Window], samples: int, steps: int) -> list[Energy]:
        """Return the energy of stretches that are as long as what ran in them, by the same sensors."""
        from kit.stats.energy import parts_energy

        entries = []
        for series in self._energy_series():
            report, at_ns, values = series
            period_ns = report.update_period_ns if report.counter else series.memory_ns or None
            energy = parts_energy(
                at_ns, values, windows, period_ns, is_counter=report.counter, lag_max_ns=series.lag_max_ns
            )
            entries.append(self._entry(report, energy, "between_readings", kind, windows, samples, steps))
        return entries

    def idle_w(self, window: Window) -> dict[str, Joules | Reason]:
        """Return what each of these sensors showed while no worker was alive, or why that is not known."""
        from kit.stats.energy import IDLE_ERROR_SHARE_MAX, Joules, idle_power, parts_energy

        shown: dict[str, Joules | Reason] = {}
        for series in self._energy_series():
            report, at_ns, values = series
            begin_ns, end_ns = window[0] + max(series.memory_ns, series.lag_max_ns), window[1]
            if report.counter:
                idle = parts_energy(
                    at_ns, values, [(begin_ns, end_ns)], report.update_period_ns,
                    is_counter=True, error_share_max=IDLE_ERROR_SHARE_MAX,
                )  # fmt: skip
            else:
                idle = idle_power(at_ns, values, begin_ns, end_ns)
            shown[report.name] = idle if isinstance(idle, Joules) else self._why(idle)
        return shown

    def _warming_c_per_s(self, device_id: str | None, begin_ns: int, end_ns: int) -> float | None:
        """Return the slope of a device's temperature from begin to end; None where no sensor shows it."""
        for report, at_ns, degrees_c in self.series:
            if device_id is not None and (report.device_id, report.quantity) == (device_id, "temperature"):
                inside = slice(bisect_left(at_ns, begin_ns), bisect_right(at_ns, end_ns))
                seconds = [(at - begin_ns) / 1e9 for at in at_ns[inside]]
                return linear_regression(seconds, degrees_c[inside]).slope if len(seconds) > 1 else None
        return None

    def _energy_series(self) -> list[Series]:
        return [series for series in self.series if series.report.quantity in ("energy", "power")]

    def _entry(  # noqa: PLR0917 - what an entry is made of
        self,
        report: SensorReport,
        energy: Joules | Refusal,
        method: str,
        kind: EnergyKind,
        windows: Sequence[Window],
        samples: int,
        steps: int,
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
            kind=kind,
            tier="modelled" if report.status == "modelled" else tier,
            method=method,
            begin_ns=windows[0][0],
            steps=steps,
        )
        if isinstance(energy, Joules):
            return replace(entry, **energy._asdict())
        return replace(entry, reason=self._why(energy))

    def _why(self, refusal: Refusal) -> Reason:
        return self.failure or Reason(code=refusal.code, values={**refusal.values})
