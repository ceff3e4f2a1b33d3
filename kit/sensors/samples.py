"""What a sampler read, reduced: mean and maximum in the windows of a launch, and the energy of its windows."""

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

# The sampler is a process of its own that starts without NumPy, so functions that need `kit.stats.energy` import it.
if TYPE_CHECKING:
    from kit.stats.energy import Joules, Refusal, Window

# Readings 0.1 s apart give a sound mean power if many updates of a counter lie between them, as with RAPL (not NVML).
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


class Samples(NamedTuple):
    """Everything one sampler read; `failure`: why it ended too early, or read nothing."""

    series: Sequence[Series]
    failure: Reason | None = None

    def for_devices(self, device_ids: Sequence[str]) -> Samples:
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
        from kit.stats.energy import Joules, block_energy, parts_energy

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
        from kit.stats.energy import IDLE_ERROR_SHARE_MAX, Joules, idle_power, parts_energy

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

    def _energy_series(self) -> list[Series]:
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
