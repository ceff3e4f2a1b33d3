"""Rules on a device's sensors, as they responded to the loads of `kit selftest --device`: lag, freshness, cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from kit.audit.rule import Found, Outcome, rule, says
from kit.audit.subject import MeasuredRun, NotApplicableError, NotMeasuredError
from kit.profile.fields import Reason, Value, reason
from kit.profile.instruments import SensorReport, SensorResponse
from kit.sensors.sampler import PERIOD_NS

# A sensor may lag by one update, and by half of one more, as readings have a spacing; no energy block allows for more.
LAG_PERIODS = 1.5
# A period half as long again as the assumed one makes energy blocks too short; fewer changes show no period.
PERIOD_RATIO, FRESH_VALUES = 1.5, 10
# All sensors are read in one tick of the sampler; a tenth of its period leaves room for a slow one.
TICK_PCT = 10.0


def _responses(run: MeasuredRun, *quantities: str) -> Iterator[tuple[SensorReport, SensorResponse]]:
    """Yield the responses of the sensors of these quantities, with what the sensors say of themselves."""
    reports = {report.name: report for report in run.profile.sensors if report.quantity in quantities}
    known = [(reports[each.sensor], each) for each in run.profile.responses if each.sensor in reports]
    if not known:
        raise NotApplicableError
    yield from known


def _lacking(report: SensorReport, why: Reason) -> NotMeasuredError:
    return NotMeasuredError(Reason(code=why.code, values=why.values | {"sensor": report.name}))


@rule("bad", "use_measured_lag", on="accelerator", at_least=1.0)
@says("{board} shows a load {lag_ns} late ({delay_ns} delay, mean over {window_ns}); joules allow for {limit_ns}.")
def sensor_lag(run: MeasuredRun) -> Iterator[Outcome]:
    """Find energy and power sensors that lag further behind a load than joules allow for."""
    for report, response in _responses(run, "energy", "power"):
        if response.lag_ns is None:
            yield _lacking(report, response.reason or reason("no_number"))
            continue
        limit_ns = report.lag_max_ns or LAG_PERIODS * (report.update_period_ns or response.period_ns or 1)
        delays_ns = {"delay_ns": response.delay_ns or 0, "window_ns": response.window_ns or 0}
        values: dict[str, Value] = {"board": report.name, "lag_ns": response.lag_ns, "limit_ns": limit_ns, **delays_ns}
        yield Found(values, value=abs(response.lag_ns) / limit_ns)


@rule("warning", on="accelerator", at_least=PERIOD_RATIO)
@says("{board} has a fresh value every {period_ns}; Steadykit assumes {assumed_ns}.")
def sensor_period(run: MeasuredRun) -> Iterator[Outcome]:
    """Find sensors that are updated less often than Steadykit assumes."""
    for report, response in _responses(run, "energy", "power", "utilization"):
        read = [(at, value) for at, value in zip(response.at_ns, response.values, strict=True) if value is not None]
        fresh_ns = [later[0] for earlier, later in pairwise(read) if later[1] != earlier[1]]
        if len(fresh_ns) < FRESH_VALUES:
            span_s = (read[-1][0] - read[0][0]) / 1e9 if read else 0.0
            yield _lacking(report, reason("value_did_not_change", limit_s=span_s))
            continue
        period_ns = median(later - earlier for earlier, later in pairwise(fresh_ns))
        assumed_ns = report.update_period_ns or period_ns
        values: dict[str, Value] = {"board": report.name, "period_ns": period_ns, "assumed_ns": assumed_ns}
        yield Found(values, value=period_ns / assumed_ns)


@rule("warning", on="accelerator", at_least=TICK_PCT)
@says("reading all sensors takes {tick_ns}, {tick_pct:.1f} % of the sampler's period; {slowest} takes {slowest_ns}.")
def sensor_reads(run: MeasuredRun) -> Found:
    """Find devices whose sensors take a noticeable part of the sampler's period to read."""
    read_ns = {each.sensor: each.read_ns for each in run.profile.responses if each.read_ns is not None}
    if not read_ns:
        raise NotApplicableError
    tick_ns, slowest = sum(read_ns.values()), max(read_ns, key=lambda name: read_ns[name])
    tick_pct = 100 * tick_ns / PERIOD_NS
    values: dict[str, Value] = {
        "tick_ns": tick_ns,
        "tick_pct": tick_pct,
        "slowest": slowest,
        "slowest_ns": read_ns[slowest],
    }
    return Found(values, value=tick_pct)
