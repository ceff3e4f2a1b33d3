"""What could explain a difference between two profiles: facts of machine, software, state and run, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from kit.fingerprint.software import OF_MAKE
from kit.profile.identity import Identity
from kit.profile.launch import Fit, Launch
from kit.profile.reason import Value
from kit.profile.schema import Profile, StateSpan

# A hash is only told apart, never read: eight digits do.
HASH_DIGITS = 8
NONE = "none"
# What no measured step runs through: the kit's profiles, sensors and statistics.
OF_THE_KIT = frozenset({"cffi", "msgspec", "psutil", "scipy", "nvidia-ml-py"})

# (kind, name) -> value; the name is the kind where there is only one. A kind says its unit as fields do.
Facts = dict[tuple[str, str], Value | None]


class CellFacts(NamedTuple):
    """What the launches of one cell ran on and with; empty: not recorded."""

    data: str
    threads: str
    epochs: str  # of fits
    losses: tuple[float, ...]
    start: str  # hashes of the first weights and batches: losses from others do not compare


def facts_of(profile: Profile) -> Facts:
    """Return what is so in one profile."""
    return {**_hardware(profile.identity), **_software(profile.identity), **_state(profile), **_run(profile)}


def cell_facts(launches: Iterable[Launch]) -> CellFacts:
    """Return them of all launches of a cell; losses of the first that has them."""
    own = list(launches)
    parity = next((one.parity for one in own if one.parity is not None), None)
    return CellFacts(
        data=_joined(f"{one.data.name} {one.data.sha256[:HASH_DIGITS]}" for one in own if one.data is not None),
        threads=_joined(str(one.threads.requested) for one in own if one.threads is not None),
        epochs=_joined(_epochs(one.fit) for one in own if one.fit is not None),
        losses=tuple(parity.losses) if parity is not None else (),
        start=f"{parity.weights_sha256} {parity.batches_sha256}" if parity is not None else "",
    )


def _epochs(fit: Fit) -> str:
    return f"{fit.updates} of {fit.all_updates} updates" if fit.is_part else str(fit.epochs)


def _joined(values: Iterable[str]) -> str:
    return " and ".join(sorted(set(values)))


def _only(**values: Value | None) -> Facts:
    return {(kind, kind): value for kind, value in values.items()}


def _hardware(identity: Identity) -> Facts:
    cpu, container = identity.cpu, identity.container
    found = _only(
        cpu=f"{cpu.model}, {cpu.cores_logical} CPUs, {cpu.architecture}",
        cpu_flags=_short(cpu.flags_sha256),
        microcode=cpu.microcode,
        memory_b=identity.memory_b,
        hypervisor=identity.hypervisor or NONE,
        container=container.engine or NONE,
        image=container.image or NONE,
        image_digest=container.image_digest or NONE,
        cpu_limit=NONE if container.cpu_limit is None else container.cpu_limit,
        memory_limit_b=NONE if container.memory_limit_b is None else container.memory_limit_b,
    )
    if container.engine is None:  # a container's host name is drawn anew for each
        found |= _only(host=_short(identity.hostname_sha256))
    for index, one in enumerate(identity.accelerators):
        found["accelerator", f"{one.kind} {index}"] = one.model
        found["driver", f"driver of {one.kind} {index}"] = one.driver
    return found


def _software(identity: Identity) -> Facts:
    software = identity.software
    found = _only(os=software.os, kernel=software.kernel, libc=software.libc, python=software.python)
    found |= {("package", name): one for name, one in software.packages.items() if name not in OF_THE_KIT}
    return found | {("environment", name): value for name, value in software.environment.items() if name not in OF_MAKE}


def _state(profile: Profile) -> Facts:
    """Return what is known; an unknown state explains nothing."""
    before = profile.state.before
    found = _only(
        governor=before.governor,
        turbo=None if before.turbo is None else "on" if before.turbo else "off",
        load_1min=before.load_1min,
        frequency_mhz=before.frequency_mhz,
        temperature_c=before.temperature_c,
        stolen_pct=_share_pct(profile.state, "steal_ns", profile.identity.cpu.cores_logical),
        waiting_pct=_share_pct(profile.state, "pressure_cpu_some_ns", 1),
    )
    for one in before.accelerators:
        found["power_cap_w", f"power cap of {one.name}"] = one.power_cap_w
        found["clock_limit_mhz", f"clock limit of {one.name}"] = one.clock_limit_mhz
    return {key: value for key, value in found.items() if value is not None}


def _share_pct(span: StateSpan, counter: str, cpus: int | None) -> float | None:
    """Return by how much a time counter grew, in percent of the run's time; null where that is not known."""
    if span.after is None:
        return None
    first, last = getattr(span.before, counter), getattr(span.after, counter)
    try:
        span_s = (datetime.fromisoformat(span.after.taken) - datetime.fromisoformat(span.before.taken)).total_seconds()
    except (ValueError, TypeError):  # no times, or one without its zone
        return None
    if first is None or last is None or last < first or span_s <= 0 or not cpus:
        return None
    return float(100 * (last - first) / (1e9 * span_s * cpus))


def _run(profile: Profile) -> Facts:
    suite, plan = profile.suite, profile.suite.plan
    energy = f", {plan.energy_s:g} s for energy" if plan.energy_s else ""
    shared = f", processes shared over {', '.join(suite.share)}" if suite.share else ""
    found = _only(
        plan=f"{plan.cycles} blocks of {plan.block_s:g} s after {plan.warmup_s:g} s of warm-up{energy}{shared}",
        clock=None if profile.clock is None else profile.clock.source,
        seed=suite.seed,
        suite=f"{suite.name} {_short(suite.sha256)}",
        rounds=suite.rounds if suite.precision_pct is None else f"to ±{suite.precision_pct:g} %",
        kit=profile.kit.version,
        schema=profile.schema,
    )
    found |= {("program", f"program {name}"): _short(one.sha256) for name, one in suite.programs.items()}
    return found | {("sensor", f"sensor {one.name}"): one.status for one in profile.sensors}


def _short(sha256: str | None) -> str | None:
    return sha256[:HASH_DIGITS] if sha256 else None
