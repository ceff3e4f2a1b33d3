"""The machine as a report: identity, state, clock, sensors; what `kit doctor`, `kit clock` and `kit data` print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from kit.profile.facts import FACTS, Facts, Identity, fact_of, kind_of, title_of
from kit.profile.instruments import Certificate, SensorReport
from kit.report.reasons_in_words import sentence
from kit.report.report_table import Report, Table, words_table
from kit.report.values_in_words import by_name, duration

if TYPE_CHECKING:
    from kit.devices.device import Condition
    from kit.workloads.datasets import Split

NONE_DETECTED = "none detected"
# Who set an environment variable is said unless it is the user.
USER = "user"


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a measurement needs, whether it is here, and what would change that."""

    subject: str
    here: bool
    detail: str


class ExaminedBackend(Examined, frozen=True, kw_only=True):
    """One framework."""

    devices: dict[str, int] | None = None  # kind -> how many it sees


class ExaminedData(Examined, frozen=True, kw_only=True):
    """One data set."""

    folder: str  # where it is, or would be
    samples: dict[Split, int] | None = None  # None: not here, or not usable
    checksum_known: bool | None = None


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `kit doctor` looks at."""

    cpus: list[int]
    processor: Facts  # `cpu.…`, hypervisor
    container: Facts  # `container.…`
    conditions: list[Condition]
    backends: list[ExaminedBackend]
    data: list[ExaminedData]
    clocks: list[Examined]
    sensors: list[SensorReport]


def machine_lines(before: Facts, after: Facts | None = None) -> dict[str, str]:
    """Return the facts that `FACTS` gives a line, in its order, by the title of the line.

    Args:
        before: the facts.
        after: those after a run; then gauges show both values, and counters their growth.
    """
    lines: dict[str, list[str]] = {}
    order = {kind: index for index, kind in enumerate(FACTS)}
    for name in sorted(before.facts, key=lambda name: order.get(kind_of(name)[0], len(order))):
        (kind, part), fact, value = kind_of(name), fact_of(name), before.facts[name]
        row = fact.title if fact.row is None else fact.row
        if not row or name in before.reasons:
            continue
        shown = by_name(name, value)
        later = None if after is None else after.facts.get(name)
        if fact.form == "counter":
            # A counter that fell began anew, and what it had grown by until then is not known.
            if not isinstance(value, int) or not isinstance(later, int) or later < value:
                continue
            shown = f"+{by_name(name, later - value)}"
        elif fact.form == "gauge" and not kind.startswith("device."):
            shown = f"{shown} → {by_name(name, later)}"
        line = lines.setdefault(row.format(part), [])
        if value is not None:
            who = before.text(f"environment_set_by.{part}") or USER
            line.append(fact.shown.format(part, value=shown) + ("" if who == USER else f" (set by: {who})"))
    return {row: " · ".join(words) or NONE_DETECTED for row, words in lines.items()}


def facts_of(before: Facts, after: Facts | None = None) -> dict[str, str]:
    """Return the lines of `machine_lines`, and those that say what could not be read, and why."""
    lines = machine_lines(before, after)
    if isinstance(before, Identity):
        lines["fingerprint"] = before.hardware_sha256
    return lines | {f"{title_of(name)}, unknown": sentence(reason) for name, reason in before.reasons.items()}


def clock_facts(clock: Certificate | None) -> dict[str, str]:
    """Return the certificate."""
    if clock is None:
        return {"certificate": "none, because no launch finished"}
    null, path = clock.null_interval, clock.path_cost
    facts = {
        "source": f"{clock.source}: {clock.source_reason}",
        "resolution": f"{clock.resolution_ns:g} ns",
        "null interval": f"median {duration(null.median_ns)}, p99.9 {duration(null.p999_ns)}, {null.count:,} samples",
        "stamp": f"median {duration(path.median_ns)}, p99.9 {duration(path.p999_ns)}, {path.count:,} samples",
        "shortest step": f"{duration(clock.shortest_step_ns)}, 1000 times the null interval",
    }
    if clock.drift_ppm is not None:
        facts["drift"] = f"{clock.drift_ppm:.3f} ppm between start and end"
    return facts


def sensor_table(sensors: Sequence[SensorReport]) -> Table:
    """Return a row for each sensor, energy and power first; an unavailable one has the obstacle."""
    rows = []
    for sensor in sorted(sensors, key=lambda sensor: sensor.quantity not in ("energy", "power")):
        period = "" if sensor.update_period_ns is None else f", updated every {duration(sensor.update_period_ns)}"
        why = f"from {sensor.source}{period}" if sensor.reason is None else sentence(sensor.reason)
        quantity = sensor.quantity if sensor.unit == "1" else f"{sensor.quantity} in {sensor.unit}"
        rows.append([sensor.name, sensor.status, quantity, f"{sensor.scope}: {why}"])
    return words_table("Sensors", rows or [["no sensor was probed", "", "", ""]])


def clock_report(certificate: Certificate) -> Report:
    """Return what `kit clock` prints."""
    record = {
        "source": certificate.source,
        "resolution_ns": certificate.resolution_ns,
        "null_interval_median_ns": certificate.null_interval.median_ns,
        "shortest_step_ns": certificate.shortest_step_ns,
    }
    tables = [words_table("", clock_facts(certificate).items())]
    return Report("kit clock", [], tables, records=[record], document=certificate, is_wide=True)


def data_report(findings: Sequence[ExaminedData]) -> Report:
    """Return what `kit data` prints."""
    return _report("kit data", [_findings("", findings)], findings)._replace(is_wide=True)


def examination_report(examination: Examination) -> Report:
    """Return what `kit doctor` found; in CSV a record for each subject."""
    cpus = f"{len(examination.cpus)} CPUs: {', '.join(map(str, examination.cpus))}"
    inside = machine_lines(examination.container)
    conditions = [
        [condition.subject, "ok" if condition.fine else "note", sentence(condition.what)]
        for condition in examination.conditions
    ]
    tables = [
        words_table("Where", {**facts_of(examination.processor), "usable": cpus, **inside}.items()),
        words_table("Conditions", conditions),
        _findings("Frameworks", examination.backends),
        _findings("Data", examination.data),
        _findings("Clocks", examination.clocks),
        sensor_table(examination.sensors),
    ]
    return _report("kit doctor", tables, examination)


def _findings(title: str, findings: Iterable[Examined]) -> Table:
    """Return a row each: the subject, whether it is here, and where or what would change that."""
    rows = [[finding.subject, "yes" if finding.here else "no", finding.detail] for finding in findings]
    return words_table(title, rows)


def _report(name: str, tables: Sequence[Table], document: object) -> Report:
    """Return the report of tables of a subject, its status and details."""
    rows = [(table.title or "Data", [cell.words for cell in row]) for table in tables for row in table.rows]
    statuses = [(title, words[0], words[1] if len(words) > 2 else "", words[-1]) for title, words in rows]  # noqa: PLR2004
    records = [dict(zip(("section", "subject", "status", "detail"), row, strict=True)) for row in statuses]
    return Report(name=name, headline=[], tables=tables, records=records, document=document)
