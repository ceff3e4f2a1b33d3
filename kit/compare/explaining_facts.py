"""What could explain a difference between two profiles: facts of machine, software, state and run, by kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from kit.compare.rows import Grade
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


class Fact(NamedTuple):
    """A kind of fact: how grave a difference in it is, and what people are told of it."""

    grade: Grade
    title: str = ""  # where the kind does not say it by itself
    effect: str = ""  # what a difference may do to the numbers, where it does not explain itself
    negligible: float = 0  # by how much two profiles may differ before it is called a difference
    is_optional: bool = False  # known of some machines only: where it is not, nothing is said


INCOMPATIBLE: Grade = "incompatible"
WARNS: Grade = "warns"
NOTED: Grade = "noted"

# In the order in which differences are listed. A kind's name ends in its unit. To add one, write its line here, and
# read it below.
FACTS: dict[str, Fact] = {
    "data": Fact(
        INCOMPATIBLE, effect="Steps were fed with other samples: accuracy and losses are another experiment's."
    ),
    "arithmetic": Fact(
        INCOMPATIBLE,
        effect="From the same weights and batches they compute other losses: they are not the same program.",
    ),
    "threads": Fact(INCOMPATIBLE, effect="Work is divided otherwise: one number of threads says little of another."),
    "epochs": Fact(INCOMPATIBLE, effect="The time of a fit is that of its epochs."),
    "cpu": Fact(WARNS, title="CPU"),
    "accelerator": Fact(WARNS),
    # kernels keep some for themselves, each another amount
    "memory_b": Fact(
        WARNS,
        "memory",
        "Another size usually means other modules or channels, and so other bandwidth.",
        negligible=1 << 29,
        is_optional=True,
    ),
    "hypervisor": Fact(
        WARNS, effect="A hypervisor takes time for itself and other guests, and hides clocks and power."
    ),
    "cpu_flags": Fact(WARNS, "CPU features", "Libraries choose kernels by the instructions they find."),
    "microcode": Fact(WARNS, effect="Microcode brings mitigations, some of which cost time."),
    "cpu_limit": Fact(WARNS, "CPU limit", "Beyond its quota a process is throttled: steps stretch and scatter."),
    "memory_limit_b": Fact(WARNS, "memory limit", "Near its limit a container reclaims page cache or is killed."),
    "container": Fact(WARNS, effect="Another engine may mean other limits, file systems and security filters."),
    "kernel": Fact(WARNS, effect="Scheduling, memory management and mitigations are the kernel's."),
    "driver": Fact(WARNS),
    "package": Fact(WARNS, effect="What is measured, or what its arithmetic runs through."),
    "python": Fact(WARNS, effect="What a framework does between kernels it does in Python: short steps feel it most."),
    "environment": Fact(WARNS, effect="Libraries read it to choose kernels, threads or allocators."),
    "program": Fact(WARNS, effect="The file of a user's own program was another: it may compute something else."),
    "kit": Fact(WARNS),
    "plan": Fact(WARNS, "step plan", "Shorter rounds scatter more; a shorter warm-up may not be enough."),
    "governor": Fact(WARNS, "frequency governor", "It decides how fast clocks rise and how high.", is_optional=True),
    "turbo": Fact(WARNS, effect="With turbo, clocks follow temperature and load.", is_optional=True),
    "power_cap_w": Fact(
        WARNS, effect="A lower cap lowers the clocks as soon as the load reaches it.", is_optional=True
    ),
    "clock_limit_mhz": Fact(WARNS, is_optional=True),
    # half a CPU busy is what a quiet desktop or a finishing build shows
    "load_1min": Fact(
        WARNS, "load before", "What else ran took CPUs, caches and memory bandwidth.", negligible=0.5, is_optional=True
    ),
    # one step of most processors' clocks
    "frequency_mhz": Fact(WARNS, title="CPU frequency before", negligible=100.0, is_optional=True),
    # less is the difference between two rooms
    "temperature_c": Fact(
        WARNS,
        "temperature before",
        "A warm processor reaches its thermal limit sooner.",
        negligible=10.0,
        is_optional=True,
    ),
    # of all CPU time: the host's own housekeeping stays below
    "stolen_pct": Fact(
        WARNS,
        "CPU time stolen by the hypervisor",
        "The hypervisor gave that time to others.",
        negligible=1.0,
        is_optional=True,
    ),
    # of the time: a run's own threads make some
    "waiting_pct": Fact(
        WARNS,
        "time in which a task waited for a CPU",
        "Tasks were ready and found no free CPU.",
        negligible=10.0,
        is_optional=True,
    ),
    "host": Fact(NOTED, is_optional=True),
    "image": Fact(NOTED),
    "image_digest": Fact(NOTED),
    "libc": Fact(NOTED, title="C library"),
    "os": Fact(NOTED, title="operating system"),
    "clock": Fact(NOTED),
    "sensor": Fact(NOTED),
    "seed": Fact(NOTED),
    "suite": Fact(NOTED),
    "rounds": Fact(NOTED, title="rounds asked for"),
    "schema": Fact(NOTED),
}


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


def cell_facts(launches: Collection[Launch]) -> CellFacts:
    """Return them of all launches of a cell; losses of the first that has them."""
    parity = next((launch.parity for launch in launches if launch.parity is not None), None)
    return CellFacts(
        data=_joined(
            f"{launch.data.name} {launch.data.sha256[:HASH_DIGITS]}" for launch in launches if launch.data is not None
        ),
        threads=_joined(str(launch.threads.requested) for launch in launches if launch.threads is not None),
        epochs=_joined(_epochs(launch.fit) for launch in launches if launch.fit is not None),
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
    facts = _only(
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
        facts |= _only(host=_short(identity.hostname_sha256))
    for index, board in enumerate(identity.accelerators):
        facts["accelerator", f"{board.kind} {index}"] = board.model
        facts["driver", f"driver of {board.kind} {index}"] = board.driver
    return facts


def _software(identity: Identity) -> Facts:
    software = identity.software
    facts = _only(os=software.os, kernel=software.kernel, libc=software.libc, python=software.python)
    facts |= {("package", name): version for name, version in software.packages.items() if name not in OF_THE_KIT}
    return facts | {("environment", name): value for name, value in software.environment.items() if name not in OF_MAKE}


def _state(profile: Profile) -> Facts:
    """Return what is known; an unknown state explains nothing."""
    before = profile.state.before
    facts = _only(
        governor=before.governor,
        turbo=None if before.turbo is None else "on" if before.turbo else "off",
        load_1min=before.load_1min,
        frequency_mhz=before.frequency_mhz,
        temperature_c=before.temperature_c,
        stolen_pct=_share_pct(profile.state, "steal_ns", profile.identity.cpu.cores_logical),
        waiting_pct=_share_pct(profile.state, "pressure_cpu_some_ns", 1),
    )
    for board in before.accelerators:
        facts["power_cap_w", f"power cap of {board.name}"] = board.power_cap_w
        facts["clock_limit_mhz", f"clock limit of {board.name}"] = board.clock_limit_mhz
    return {key: value for key, value in facts.items() if value is not None}


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
    facts = _only(
        plan=f"{plan.cycles} blocks of {plan.block_s:g} s after {plan.warmup_s:g} s of warm-up{energy}{shared}",
        clock=None if profile.clock is None else profile.clock.source,
        seed=suite.seed,
        suite=f"{suite.name} {_short(suite.sha256)}",
        rounds=suite.rounds if suite.precision_pct is None else f"to ±{suite.precision_pct:g} %",
        kit=profile.kit.version,
        schema=profile.schema,
    )
    facts |= {("program", f"program {name}"): _short(source.sha256) for name, source in suite.programs.items()}
    return facts | {("sensor", f"sensor {sensor.name}"): sensor.status for sensor in profile.sensors}


def _short(sha256: str | None) -> str | None:
    return sha256[:HASH_DIGITS] if sha256 else None
