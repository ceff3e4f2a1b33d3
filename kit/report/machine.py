"""The machine as a report: identity, state, clock, sensors; what `kit doctor`, `kit clock` and `kit data` print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kit.profile.clock import Certificate
from kit.profile.identity import STATE_COUNTERS, Container, Identity, Software
from kit.profile.reason import Reason
from kit.profile.schema import StateSpan
from kit.profile.sensor import SensorReport
from kit.report.quantity import by_name, counted, duration, size
from kit.report.sentences import sentence
from kit.report.table import Case, Report, Table, facts_table, plain_table

if TYPE_CHECKING:
    from kit.runner.examine import DataFinding, Examination, Finding

# Said otherwise, or no value.
NO_GAUGES = (*STATE_COUNTERS, "taken", "raw_ns", "raw_width_ns", "accelerators", "reasons")


def identity_facts(identity: Identity) -> dict[str, str]:
    """Return names and values; what could not be read with its reason."""
    cpu, software = identity.cpu, identity.software
    logical = counted(cpu.cores_logical, "CPU") if cpu.cores_logical else "CPUs unknown"
    physical = f", {cpu.cores_physical} physical cores" if cpu.cores_physical else ""
    accelerators = {
        f"{board.kind} {index}": f"{board.model} · driver {board.driver or 'unknown'}"
        + (f" · bus {board.device_id}" if board.device_id else "")
        for index, board in enumerate(identity.accelerators)
    }
    packages = (f"{name} {version}" for name, version in software.packages.items())
    facts = {
        "CPU": f"{cpu.model} · {logical}{physical} · {cpu.architecture}",
        "memory": "unknown" if identity.memory_b is None else size(identity.memory_b),
        "hypervisor": identity.hypervisor or "none detected",
        **accelerators,
        "container": _container(identity.container),
        "system": f"{software.os} · kernel {software.kernel} · {software.libc or 'C library unknown'}",
        "software": " · ".join((f"Python {software.python}", *packages)),
        "environment": " · ".join(_variable(software, name) for name in software.environment) or "none relevant",
        "fingerprint": identity.hardware_sha256,
    }
    return facts | _not_known(identity.reasons)


def _variable(software: Software, name: str) -> str:
    """Return a variable with its value, and who set it where that is known and not the user."""
    who = software.environment_set_by.get(name, "user")
    return f"{name}={software.environment[name]}" + ("" if who == "user" else f" (set by: {who})")


def state_facts(span: StateSpan) -> dict[str, str]:
    """Return before and after; counters as what they grew by; what could not be read with its reason."""
    before, after = span.before, span.after
    facts = {}
    for name in (name for name in before.__struct_fields__ if name not in NO_GAUGES):
        values = [None if moment is None else getattr(moment, name) for moment in (before, after)]
        if values[0] is not None:
            facts[_title(name)] = " → ".join(by_name(name, value) for value in values)
    for board in before.accelerators:
        # Of what grows since the driver was loaded only the growth says something, and launches have marks of it.
        known = {
            name: getattr(board, name)
            for name in board.__struct_fields__
            if name != "name" and not name.endswith("violation_ns")
        }
        gauges = [f"{_title(name)} {by_name(name, value)}" for name, value in known.items() if value is not None]
        facts[board.name] = " · ".join(gauges) or "reports no values"
    for name in STATE_COUNTERS:
        start, end = getattr(before, name), None if after is None else getattr(after, name)
        if start is not None and end is not None:
            facts[_title(name)] = f"+{by_name(name, end - start)}"
    return facts | _not_known(before.reasons)


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
    """Return a row a sensor, of energy and power first; the unavailable with what stands in the way."""
    rows = []
    for sensor in sorted(sensors, key=lambda sensor: sensor.quantity not in ("energy", "power")):
        period = "" if sensor.update_period_ns is None else f", updated every {duration(sensor.update_period_ns)}"
        why = f"from {sensor.source}{period}" if sensor.reason is None else sentence(sensor.reason)
        quantity = sensor.quantity if sensor.unit == "1" else f"{sensor.quantity} in {sensor.unit}"
        rows.append([sensor.name, sensor.status, quantity, f"{sensor.scope}: {why}"])
    return plain_table("Sensors", ("",) * 4, rows or [["no sensor was probed", "", "", ""]], left=4)


def clock_report(certificate: Certificate) -> Report:
    """Return what `kit clock` prints."""
    facts = clock_facts(certificate)
    record = {
        "source": certificate.source,
        "resolution_ns": certificate.resolution_ns,
        "null_interval_median_ns": certificate.null_interval.median_ns,
        "shortest_step_ns": certificate.shortest_step_ns,
    }
    case = Case(certificate.source, "clock", output="; ".join(f"{name}: {value}" for name, value in facts.items()))
    return Report(
        "kit clock", [], [facts_table("", facts)], records=[record], cases=[case], document=certificate, is_wide=True
    )


def data_report(findings: Sequence[DataFinding]) -> Report:
    """Return what `kit data` prints."""
    return _of_tables("kit data", [_findings("", findings)], findings)._replace(is_wide=True)


def examination_report(examination: Examination) -> Report:
    """Return what `kit doctor` found; in CSV and JUnit a record and a case for each subject."""
    cpus = f"{len(examination.cpus)} usable: {', '.join(map(str, examination.cpus))}"
    conditions = [
        [condition.subject, "ok" if condition.fine else "note", sentence(condition.what)]
        for condition in examination.conditions
    ]
    tables = [
        facts_table("Where", {"CPUs": cpus, "container": _container(examination.container)}),
        plain_table("Conditions", ("",) * 3, conditions, left=3),
        _findings("Frameworks", examination.backends),
        _findings("Data", examination.data),
        _findings("Clocks", examination.clocks),
        sensor_table(examination.sensors),
    ]
    return _of_tables("kit doctor", tables, examination)


def _findings(title: str, findings: Iterable[Finding]) -> Table:
    """Return a row each: the subject, whether it is here, and where or what would change that."""
    rows = [[finding.subject, "yes" if finding.here else "no", finding.detail] for finding in findings]
    return plain_table(title, ("",) * 3, rows, left=3)


def _of_tables(name: str, tables: Sequence[Table], document: object) -> Report:
    """Return the report of tables of a subject, its status and details; what is not here is a skipped case."""
    rows = [(table.title or "Data", [cell.words for cell in row]) for table in tables for row in table.rows]
    statuses = [(title, words[0], words[1] if len(words) > 2 else "", words[-1]) for title, words in rows]  # noqa: PLR2004
    return Report(
        name=name,
        headline=[],
        tables=tables,
        records=[dict(zip(("section", "subject", "status", "detail"), row, strict=True)) for row in statuses],
        cases=[
            Case(subject, title, "skipped", detail)
            if status in ("no", "unavailable")
            else Case(subject, title, output=detail)
            for title, subject, status, detail in statuses
        ],
        document=document,
    )


def _container(container: Container) -> str:
    """Return engine, limits and image."""
    cpus, memory_b = container.cpu_limit, container.memory_limit_b
    image = f", image {container.image}" if container.image else ""
    limits = ["all CPUs" if cpus is None else f"at most {cpus:g} CPUs"]
    limits.append("all memory" if memory_b is None else f"at most {size(memory_b)} of memory")
    return f"{container.engine or 'none detected'}{image}; {' and '.join(limits)}"


def _not_known(reasons: Mapping[str, Reason]) -> dict[str, str]:
    return {f"{name}, unknown": sentence(reason) for name, reason in reasons.items()}


def _title(name: str) -> str:
    """Return the name without the unit that its value is shown with."""
    base, _, unit = name.rpartition("_")
    return (base if unit in ("mhz", "c", "b", "ns", "w") else name).replace("_", " ")
