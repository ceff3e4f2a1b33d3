"""How a machine happened to be while a profile was taken: what was measured before, after, or grew between the two."""

from __future__ import annotations

from datetime import UTC, datetime

from kit.compare.fact import Fact, fact
from kit.profile.brief import AnyProfile, launches_of
from kit.profile.identity import AcceleratorState, State

NANOSECONDS_PER_S = 1e9
# By how much two profiles may differ in a quantity before it is called a difference.
NEGLIGIBLE = {
    "load before": 0.5,  # processes: half a CPU busy is what a quiet desktop or a finishing build shows
    "CPU frequency before": 100.0,  # MHz: one step of most processors' clocks
    "temperature before": 10.0,  # °C: less is the difference between two rooms
    "CPU time stolen": 1.0,  # percent of all CPU time: the host's own housekeeping stays below
    "waiting for CPUs": 10.0,  # percent of the time: a run's own threads and sampler make some
    "throttled launches": 0.0,  # percent of the launches: a single one matters
}
# Recorded by newer kits only: a profile without one says nothing of it.
ONLY_WHERE_KNOWN = frozenset({"power cap", "clock limit"})


def state_facts(profile: AnyProfile) -> list[Fact]:
    """Those that are known; an unknown state explains nothing."""
    before = profile.state.before
    found = [
        fact("frequency governor", before.governor),
        fact("turbo", None if before.turbo is None else "on" if before.turbo else "off"),
    ]
    if before.load_1min is not None:
        found.append(fact("load before", f"{before.load_1min:.3g}", before.load_1min))
    if before.frequency_mhz is not None:
        found.append(fact("CPU frequency before", f"{before.frequency_mhz:.0f} MHz", before.frequency_mhz))
    if before.temperature_c is not None:
        found.append(fact("temperature before", f"{before.temperature_c:.0f} °C", before.temperature_c))
    stolen = stolen_pct(profile)
    if stolen is not None:
        found.append(fact("CPU time stolen", f"{stolen:.1f} %", stolen))
    waiting = waiting_pct(profile)
    if waiting is not None:
        found.append(fact("waiting for CPUs", f"{waiting:.0f} % of the time", waiting))
    for accelerator in before.accelerators:
        found += _accelerator_facts(accelerator)
    throttled, launches = throttled_launches(profile)
    if launches:
        found.append(fact("throttled launches", f"{throttled} of {launches}", 100 * throttled / launches))
    return found


def _accelerator_facts(accelerator: AcceleratorState) -> list[Fact]:
    found = []
    cap_w, default_w, limit_mhz = accelerator.power_cap_w, accelerator.power_cap_default_w, accelerator.clock_limit_mhz
    if cap_w is not None:
        usual = "" if default_w is None or default_w == cap_w else f" (by default {default_w:.0f} W)"
        found.append(Fact("power cap", f"power cap of {accelerator.name}", f"{cap_w:.0f} W{usual}"))
    if limit_mhz is not None:
        found.append(Fact("clock limit", f"clock limit of {accelerator.name}", f"{limit_mhz:.0f} MHz"))
    return found


def throttled_launches(profile: AnyProfile) -> tuple[int, int]:
    """How many launches a CPU limit stopped or a GPU's limit slowed while steady, and of how many either is known."""
    throttled = launches = 0
    for result in profile.cells:
        own = launches_of(result)
        slowed_by = own.gpu_throttled_by
        launches += len({*own.throttling_known, *slowed_by})
        throttled += len({*own.throttled, *(number for number, reasons in slowed_by.items() if reasons)})
    return throttled, launches


def stolen_pct(profile: AnyProfile) -> float | None:
    """Share of all CPU time, from the first launch to the last, that the hypervisor gave to others; percent."""
    span, cpus = span_ns(profile), profile.identity.cpu.cores_logical
    stolen_ns = grown(profile, "steal_ns")
    return None if span is None or stolen_ns is None or cpus < 1 else 100 * stolen_ns / (span * cpus)


def waiting_pct(profile: AnyProfile) -> float | None:
    """Share of the time, from the first launch to the last, in which some task waited for a CPU; percent."""
    span, waited_ns = span_ns(profile), grown(profile, "pressure_cpu_some_ns")
    return None if span is None or waited_ns is None else 100 * waited_ns / span


def span_ns(profile: AnyProfile) -> float | None:
    """From the state before to the state after; null where there is no such span."""
    after = profile.state.after
    begin, end = moment(profile.state.before.taken), None if after is None else moment(after.taken)
    if begin is None or end is None or end <= begin:
        return None
    return (end - begin).total_seconds() * NANOSECONDS_PER_S


def moment(written: str) -> datetime | None:
    """A time as profiles write it (ISO 8601); UTC where none is named; null where it is not one."""
    try:
        found = datetime.fromisoformat(written)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def grown(profile: AnyProfile, counter: str) -> int | None:
    """By how much a counter of the state grew; null where it is not known, or began anew in between."""
    state: tuple[State, State | None] = (profile.state.before, profile.state.after)
    before, after = (None if one is None else getattr(one, counter) for one in state)
    return after - before if before is not None and after is not None and after >= before else None
