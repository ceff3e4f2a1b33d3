"""The machine in lines: identity, state, clock, sensors; and what `kit doctor` found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from kit.profile.clock import Certificate
from kit.profile.identity import STATE_COUNTERS, Container, Identity
from kit.profile.reason import Reason
from kit.profile.schema import StateSpan
from kit.profile.sensor import SensorReport
from kit.report.quantity import by_name, counted, duration, size
from kit.report.reasons import sentence
from kit.report.sections import GAP, UNLIMITED, facts, grid, render, width_of

if TYPE_CHECKING:
    from kit.runner.examine import Examination, Finding

# Said otherwise, or no value.
NO_GAUGES = (*STATE_COUNTERS, "taken", "accelerators", "reasons")


def identity_lines(identity: Identity) -> list[str]:
    """Return name and value, a line each; what could not be read with its reason."""
    cpu, software = identity.cpu, identity.software
    logical = counted(cpu.cores_logical, "CPU") if cpu.cores_logical else "CPUs not known"
    physical = f", {cpu.cores_physical} physical cores" if cpu.cores_physical else ""
    accelerators = {
        f"{one.kind} {index}": f"{one.model} · driver {one.driver or 'unknown'}"
        for index, one in enumerate(identity.accelerators)
    }
    packages = (f"{name} {version}" for name, version in software.packages.items())
    found = {
        "CPU": f"{cpu.model} · {logical}{physical} · {cpu.architecture}",
        "memory": "not known" if identity.memory_b is None else size(identity.memory_b),
        "hypervisor": identity.hypervisor or "none seen",
        **accelerators,
        "container": _container(identity.container),
        "system": f"{software.os} · kernel {software.kernel} · {software.libc or 'C library unknown'}",
        "software": " · ".join((f"Python {software.python}", *packages)),
        "environment": " · ".join(f"{name}={value}" for name, value in software.environment.items()) or "none of note",
        "fingerprint": identity.hardware_sha256,
    }
    return facts(found | _not_known(identity.reasons))


def state_lines(span: StateSpan) -> list[str]:
    """Return before and after; counters as what they grew by; what could not be read with its reason."""
    before, after = span.before, span.after
    found = {}
    for name in (name for name in before.__struct_fields__ if name not in NO_GAUGES):
        values = [None if one is None else getattr(one, name) for one in (before, after)]
        if values[0] is not None:
            found[_title(name)] = " → ".join(by_name(name, value) for value in values)
    for one in before.accelerators:
        known = {name: getattr(one, name) for name in one.__struct_fields__ if name != "name"}
        said = [f"{_title(name)} {by_name(name, value)}" for name, value in known.items() if value is not None]
        found[one.name] = " · ".join(said) or "tells nothing"
    for name in STATE_COUNTERS:
        start, end = getattr(before, name), None if after is None else getattr(after, name)
        if start is not None and end is not None:
            found[_title(name)] = f"+{by_name(name, end - start)}"
    return facts(found | _not_known(before.reasons))


def clock_lines(clock: Certificate | None) -> list[str]:
    """Return the certificate."""
    if clock is None:
        return ["no certificate: no launch finished"]
    null, path = clock.null_interval, clock.path_cost
    found = {
        "source": f"{clock.source}: {clock.source_reason}",
        "resolution": f"{clock.resolution_ns:g} ns",
        "null interval": f"median {duration(null.median_ns)}, p99.9 {duration(null.p999_ns)}, of {null.count:,}",
        "stamp": f"median {duration(path.median_ns)}, p99.9 {duration(path.p999_ns)}, of {path.count:,}",
        "shortest step": f"{duration(clock.shortest_step_ns)}: 1000 null intervals",
    }
    if clock.drift_ppm is not None:
        found["drift"] = f"{clock.drift_ppm:.3f} ppm between start and end"
    return facts(found)


def sensor_lines(sensors: Sequence[SensorReport], width: int = UNLIMITED) -> list[str]:
    """Return a line a sensor, of energy and power first; the unavailable with what stands in the way."""
    rows = []
    for one in sorted(sensors, key=lambda one: one.quantity not in ("energy", "power")):
        period = "" if one.update_period_ns is None else f", fresh every {duration(one.update_period_ns)}"
        why = f"from {one.source}{period}" if one.reason is None else sentence(one.reason)
        quantity = one.quantity if one.unit == "1" else f"{one.quantity} in {one.unit}"
        rows.append([one.name, one.status, quantity, f"{one.scope}: {why}"])
    return grid(rows, width=width) or ["none was probed"]


def render_examination(found: Examination, stream: IO[str]) -> str:
    """Return what `kit doctor` found, in sections."""
    cpus = f"{len(found.cpus)} usable: {', '.join(map(str, found.cpus))}"
    width = width_of(stream) - len(GAP)
    sections = {
        "Where": facts({"CPUs": cpus, "container": _container(found.container)}, width),
        "Conditions": grid(
            [[one.subject, "ok" if one.fine else "note", sentence(one.what)] for one in found.conditions], width=width
        ),
        "Frameworks": [
            *finding_lines(found.backends, width),
            *(sentence(clash) for one in found.backends for clash in one.clashes),
        ],
        "Data": finding_lines(found.data, width),
        "Clocks": finding_lines(found.clocks, width),
        "Sensors": sensor_lines(found.sensors, width),
    }
    return render(sections, stream)


def finding_lines(findings: Sequence[Finding], width: int = UNLIMITED) -> list[str]:
    """Return a line each: the subject, whether it is here, and where or what would mend it."""
    return grid([[one.subject, "yes" if one.here else "no", one.detail] for one in findings], width=width)


def _container(container: Container) -> str:
    """Return engine, limits and image."""
    cpus, memory_b = container.cpu_limit, container.memory_limit_b
    image = f", image {container.image}" if container.image else ""
    limits = ["all CPUs" if cpus is None else f"at most {cpus:g} CPUs"]
    limits.append("all memory" if memory_b is None else f"at most {size(memory_b)} of memory")
    return f"{container.engine or 'none seen'}{image}; {' and '.join(limits)}"


def _not_known(reasons: Mapping[str, Reason]) -> dict[str, str]:
    return {f"{name}, not known": sentence(reason) for name, reason in reasons.items()}


def _title(name: str) -> str:
    """Return the name without the unit that its value is shown with."""
    base, _, unit = name.rpartition("_")
    return (base if unit in ("mhz", "c", "b", "ns", "w") else name).replace("_", " ")
