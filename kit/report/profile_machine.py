"""The machine's side of one profile, in lines: identity, state, clock, sensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.compare.counted import counted, gib
from kit.profile.clock import Certificate
from kit.profile.identity import AcceleratorState, Container, Identity, State
from kit.profile.schema import StateSpan
from kit.profile.sensor import SensorReport
from kit.report.grid import grid
from kit.report.plain import one_line
from kit.report.quantity import duration

# Counters, of which only the growth from before to after says something.
COUNTERS = ("context_switches", "steal_ns", "cgroup_throttled", "cgroup_throttled_ns", "pressure_cpu_some_ns")
GAUGES = ("load_1min", "governor", "turbo", "frequency_mhz", "temperature_c", "memory_available_b")


def machine_section(identity: Identity) -> list[str]:
    """Name and value, one line each; what could not be read with its reason."""
    cpu, software = identity.cpu, identity.software
    cores = counted(cpu.cores_logical, "logical core") + (
        f", {cpu.cores_physical} physical" if cpu.cores_physical else ""
    )
    facts = {
        "CPU": f"{cpu.model} · {cores} · {cpu.architecture}",
        "memory": gib(identity.memory_b),
        "hypervisor": identity.hypervisor or "none seen",
    }
    for index, accelerator in enumerate(identity.accelerators):
        facts[f"{accelerator.kind} {index}"] = f"{accelerator.model} · driver {accelerator.driver or 'unknown'}"
    variables = " · ".join(f"{name}={value}" for name, value in software.environment.items())
    facts |= {
        "container": container_in_words(identity.container),
        "system": f"{software.os} · kernel {software.kernel} · {software.libc or 'C library unknown'}",
        "software": " · ".join((f"Python {software.python}", *(f"{n} {v}" for n, v in software.packages.items()))),
        "environment": variables or "no variable set that is known to change numbers",
        "fingerprint": identity.hardware_sha256,
    }
    return _pairs(facts | {f"{name}, not known": reason for name, reason in identity.reasons.items()})


def state_section(span: StateSpan) -> list[str]:
    """Before and after; counters as what they grew by; what could not be read with its reason."""
    before, after = span.before, span.after
    facts = {name: f"{_value(before, name)} → {_value(after, name)}" for name in GAUGES if _known(before, name)}
    facts |= {accelerator.name: _accelerator_in_words(accelerator) for accelerator in before.accelerators}
    for name in COUNTERS:
        start, end = getattr(before, name), None if after is None else getattr(after, name)
        if start is not None and end is not None:
            facts[name] = f"+{duration(end - start) if name.endswith('_ns') and end > start else end - start}"
    return _pairs(facts | {f"{name}, not known": reason for name, reason in before.reasons.items()})


def clock_section(clock: Certificate | None) -> list[str]:
    """The certificate."""
    if clock is None:
        return ["no certificate: no launch finished"]
    null, path = clock.null_interval, clock.path_cost
    facts = {
        "source": f"{clock.source}: {clock.source_reason}",
        "resolution": f"{clock.resolution_ns:g} ns",
        "null interval": f"median {null.median_ns:g} ns, p99.9 {null.p999_ns:g} ns, of {null.count:,}",
        "stamp": f"median {path.median_ns:g} ns, p99.9 {path.p999_ns:g} ns, of {path.count:,}",
        "shortest step": f"{duration(clock.shortest_step_ns)}: 1000 null intervals",
    }
    if clock.drift_ppm is not None:
        facts["drift"] = f"{clock.drift_ppm:.3f} ppm between start and end"
    return _pairs(facts)


def sensors_section(sensors: Sequence[SensorReport]) -> list[str]:
    """One line a sensor; the unavailable with what stands in the way."""
    if not sensors:
        return ["none was probed"]
    rows = [
        [
            sensor.name,
            sensor.status,
            f"{sensor.quantity} in {sensor.unit}",
            sensor.scope,
            sensor.reason or _period(sensor),
        ]
        for sensor in sensors
    ]
    return grid([[one_line(cell) for cell in row] for row in rows], [False] * 5)


def _period(sensor: SensorReport) -> str:
    period = "" if sensor.update_period_ns is None else f", fresh every {duration(sensor.update_period_ns)}"
    return f"from {sensor.source}{period}"


def container_in_words(container: Container) -> str:
    """Engine, limits and image."""
    memory_b = container.memory_limit_b
    limits = [
        "no CPU limit" if container.cpu_limit is None else counted(container.cpu_limit, "CPU"),
        "no memory limit" if memory_b is None else gib(memory_b),
    ]
    return " · ".join((container.engine or "none seen", *limits, *([container.image] if container.image else [])))


def _accelerator_in_words(accelerator: AcceleratorState) -> str:
    """Before the first launch: what it was allowed, and how it was."""
    quantities = {
        "power cap {:.0f} W": accelerator.power_cap_w,
        "by default {:.0f} W": accelerator.power_cap_default_w,
        "clock limit {:.0f} MHz": accelerator.clock_limit_mhz,
        "clock {:.0f} MHz": accelerator.clock_mhz,
        "{:.0f} °C": accelerator.temperature_c,
    }
    return (
        " · ".join(words.format(value) for words, value in quantities.items() if value is not None) or "tells nothing"
    )


def _known(state: State, name: str) -> bool:
    return getattr(state, name) is not None


def _value(state: State | None, name: str) -> str:
    value = None if state is None else getattr(state, name)
    if value is None:
        return "unknown"
    if name.endswith("_b"):
        return gib(value)
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _pairs(facts: Mapping[str, str]) -> list[str]:
    return grid([[one_line(name), one_line(value)] for name, value in facts.items()], [False, False]) if facts else []
