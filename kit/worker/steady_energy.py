"""Energy over the steady phase, per sensor, or why there is none.

               begin                                        end
    counter  ───┼──┐     ┌─────┐     ┌─────┐     ┌─────┐      ┼───
                   └─────┘     └─────┘     └─────┘     └──────┼
                   first change                   last change
                   ├──────────── window ───────────┤            joules = counter there - counter here

The counter holds still between updates, so the window runs from one update to another. Entries overlap (a counter and
the integral of power of one board; psys and the packages within it): they stand beside each other and are never added.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from kit.profile.launch import Energy
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import Reading
from kit.worker.samples import Samples
from kit.worker.steady_utilization import utilization

# An unaligned end costs up to one update: of a hundred, 1 %. And boards average over up to a second, which leaks in
# at both ends: ten seconds keep that small. (docs/sensors.md, "Energy")
UPDATES_MIN = 100
WINDOW_MIN_NS = 10_000_000_000
# Alignment gives up a tick at either end; a sensor that answered for less of the phase than this says little of it.
COVERAGE_MIN = 0.9
# Fewer changes than this do not show a period.
CHANGES_MIN = 3


def energies(samples: Samples, begin_ns: int, end_ns: int) -> list[Energy]:
    """One entry per sensor of energy or power, the unavailable energy sensors with their reason."""
    if not samples.reports:
        return [_none("sampler", samples.ended)]
    entries = []
    for report in samples.reports:
        if report.quantity == "energy":
            entries.append(_of_counter(samples, report, begin_ns, end_ns))
        elif report.quantity == "power" and report.status != "unavailable":
            entries.append(_of_power(samples, report, begin_ns, end_ns))
    return entries


def _of_counter(samples: Samples, report: SensorReport, begin_ns: int, end_ns: int) -> Energy:
    if report.status == "unavailable":
        return _none(report.name, report.reason or "unavailable")
    gap = samples.gap(begin_ns, end_ns)
    if gap is not None:
        return _none(report.name, gap)
    series = without_dips(samples.series(report.name))
    changes = [
        later
        for earlier, later in pairwise(series)
        if later.value != earlier.value and begin_ns <= later.at_ns <= end_ns
    ]
    refusal = (
        _stands_still(samples, changes, begin_ns, end_ns)
        or _fell(changes)
        or too_short(end_ns - begin_ns, update_period_ns(report, changes))
        or _covers_little(changes, begin_ns, end_ns)
    )
    if refusal is not None:
        return _none(report.name, refusal)
    first, last = changes[0], changes[-1]
    return _entry(report.name, (last.value or 0.0) - (first.value or 0.0), last.at_ns - first.at_ns)


def _of_power(samples: Samples, report: SensorReport, begin_ns: int, end_ns: int) -> Energy:
    """Power integrated by trapezoids between the readings inside the window."""
    gap = samples.gap(begin_ns, end_ns)
    if gap is not None:
        return _none(report.name, gap)
    inside = [reading for reading in samples.series(report.name) if begin_ns <= reading.at_ns <= end_ns]
    refusal = too_short(end_ns - begin_ns, report.update_period_ns) or _covers_little(inside, begin_ns, end_ns)
    if refusal is not None:
        return _none(report.name, refusal)
    joules = sum(
        ((earlier.value or 0.0) + (later.value or 0.0)) / 2 * (later.at_ns - earlier.at_ns) / 1e9
        for earlier, later in pairwise(inside)
    )
    if joules <= 0:
        return _none(report.name, "every reading of power was 0 W: a board that runs draws power")
    return _entry(report.name, joules, inside[-1].at_ns - inside[0].at_ns)


def without_dips(series: list[Reading]) -> list[Reading]:
    """Drop readings that fall below the one before and are made good by the one after: a known driver glitch."""
    kept = series[:1]
    for reading, after in pairwise(series[1:]):
        before = kept[-1].value or 0.0
        if not (reading.value or 0.0) < before <= (after.value or 0.0):
            kept.append(reading)
    return kept + series[1:][-1:]


def update_period_ns(report: SensorReport, changes: list[Reading]) -> int | None:
    """The sensor's own period, or the one seen if that is longer: a sampler cannot see a shorter one than its own."""
    if len(changes) < CHANGES_MIN:
        return report.update_period_ns
    seen_ns = int(median(later.at_ns - earlier.at_ns for earlier, later in pairwise(changes)))
    return seen_ns if report.update_period_ns is None else max(seen_ns, report.update_period_ns)


def too_short(window_ns: int, period_ns: int | None) -> str | None:
    """Why a window is too short for a joule; None when it is long enough."""
    needed_ns = max(WINDOW_MIN_NS, UPDATES_MIN * (period_ns or 0))
    if window_ns >= needed_ns:
        return None
    updates = f"updates every {period_ns / 1e6:.3g} ms" if period_ns else "update period not known"
    return (
        f"the steady phase of {window_ns / 1e9:.3g} s is too short for this sensor ({updates}): "
        f"{needed_ns / 1e9:.3g} s are needed"
    )


def _stands_still(samples: Samples, changes: list[Reading], begin_ns: int, end_ns: int) -> str | None:
    """Zero joules are never an answer: a part that is switched on draws power."""
    if changes:
        return None
    busy_pct = utilization(samples, begin_ns, end_ns).machine_cpu_pct
    busy = "" if busy_pct is None else f" while the machine's CPUs were {busy_pct:.0f} % busy"
    return f"the counter did not move in {(end_ns - begin_ns) / 1e9:.3g} s{busy}: it is stuck, or every read failed"


def _fell(changes: list[Reading]) -> str | None:
    for earlier, later in pairwise(changes):
        if (later.value or 0.0) < (earlier.value or 0.0):
            return "the counter fell during the steady phase: it was reset, what it held is lost"
    return None


def _covers_little(readings: list[Reading], begin_ns: int, end_ns: int) -> str | None:
    covered_ns = readings[-1].at_ns - readings[0].at_ns if readings else 0
    share = covered_ns / (end_ns - begin_ns)
    if share >= COVERAGE_MIN:
        return None
    return f"the sensor answered for {100 * share:.0f} % of the steady phase, {100 * COVERAGE_MIN:.0f} % are needed"


def _entry(sensor: str, joules: float, window_ns: int) -> Energy:
    return Energy(sensor=sensor, joules_j=joules, window_ns=window_ns, reason=None)


def _none(sensor: str, reason: str) -> Energy:
    return Energy(sensor=sensor, joules_j=None, window_ns=None, reason=reason)
