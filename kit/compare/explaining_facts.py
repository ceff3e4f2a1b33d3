"""What could explain a difference between two profiles: facts of machine, software, state and run, by kind.

To add a fact, write its line in FACTS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from kit.compare.rows import Grade
from kit.fingerprint.software import OF_MAKE
from kit.profile.launch import Fit, Launch
from kit.profile.reason import Value
from kit.profile.schema import Profile

# A hash is compared, never read: eight digits do.
HASH_DIGITS = 8
NONE = "none"
# What no measured step runs through: the kit's profiles, sensors and statistics.
OF_THE_KIT = frozenset({"cffi", "msgspec", "psutil", "scipy", "nvidia-ml-py"})

# (kind, name) -> value; the name is the kind where there is only one. A kind says its unit as fields do.
Facts = dict[tuple[str, str], Value | None]
# What a profile says of a kind: its value, or one by name where there are several. None: not recorded.
Reading = Value | dict[str, Value | None] | None


class Fact(NamedTuple):
    """A kind of fact: how grave a difference in it is, how it is read, and what people are told of it."""

    grade: Grade
    read: Callable[[Profile], Reading] | None = None  # None: of a cell, a field of `CellFacts`
    title: str = ""  # where the kind does not say it by itself
    effect: str = ""  # what a difference may do to the numbers, where it does not explain itself
    negligible: float = 0  # by how much two profiles may differ before it is called a difference
    is_optional: bool = False  # known of some machines only: where it is not, nothing is said
    option: str = ""  # of `kit run`, that would make two runs alike


class CellFacts(NamedTuple):
    """What keeps one cell apart from another's: what its launches ran on and with; empty: not recorded."""

    data: str
    threads: str
    epochs: str  # of fits
    losses: tuple[float, ...]
    start: str  # hashes of the first weights and batches: losses from others do not compare
    of_run: dict[str, str]  # by kind: the incompatible facts that are read from its profile


def facts_of(profile: Profile) -> Facts:
    """Return what is so in one profile, but for what keeps its cells apart: they have that."""
    facts: Facts = {}
    for kind, fact in FACTS.items():
        reading = fact.read(profile) if fact.read is not None and fact.grade != INCOMPATIBLE else {}
        values = reading if isinstance(reading, dict) else {kind: reading}
        facts |= {(kind, name): value for name, value in values.items() if value is not None or not fact.is_optional}
    return facts


def cell_facts(launches: Iterable[Launch], profile: Profile) -> CellFacts:
    """Return them of all launches of a cell of the profile; losses of the first that has them."""
    known = list(launches)
    parity = next((launch.parity for launch in known if launch.parity is not None), None)
    return CellFacts(
        data=_joined(
            f"{launch.data.name} {launch.data.sha256[:HASH_DIGITS]}" for launch in known if launch.data is not None
        ),
        threads=_joined(str(launch.threads.requested) for launch in known if launch.threads is not None),
        epochs=_joined(_epochs(launch.fit) for launch in known if launch.fit is not None),
        losses=tuple(parity.losses) if parity is not None else (),
        start=f"{parity.weights_sha256} {parity.batches_sha256}" if parity is not None else "",
        of_run={
            kind: _as_one(fact.read(profile))
            for kind, fact in FACTS.items()
            if fact.read is not None and fact.grade == INCOMPATIBLE
        },
    )


def _as_one(reading: Reading) -> str:
    """Return what was read of one kind as one value; empty: nothing."""
    if isinstance(reading, dict):
        return ", ".join(f"{name} {value}" for name, value in sorted(reading.items()) if value is not None)
    return "" if reading is None else str(reading)


def _epochs(fit: Fit) -> str:
    return f"{fit.updates} of {fit.all_updates} updates" if fit.is_part else str(fit.epochs)


def _joined(values: Iterable[str]) -> str:
    return " and ".join(sorted(set(values)))


def _cpu(profile: Profile) -> str:
    cpu = profile.identity.cpu
    return f"{cpu.model}, {cpu.cores_logical} CPUs, {cpu.architecture}"


def _boards(profile: Profile, prefix: str, field: str) -> dict[str, Value | None]:
    boards = enumerate(profile.identity.accelerators)
    return {f"{prefix}{board.kind} {index}": getattr(board, field) for index, board in boards}


def _limits(profile: Profile, prefix: str, field: str) -> dict[str, Value | None]:
    """Return what each GPU was allowed before the run; an unknown limit explains nothing."""
    return {f"{prefix}{board.name}": getattr(board, field) for board in profile.state.before.accelerators}


def _or_none(value: Value | None) -> Value:
    return NONE if value is None else value


def _host(profile: Profile) -> str | None:
    """Return the host; of a container nothing, as its name is drawn anew for each."""
    return None if profile.identity.container.engine else _short(profile.identity.hostname_sha256)


def _turbo(profile: Profile) -> str | None:
    turbo = profile.state.before.turbo
    return None if turbo is None else "on" if turbo else "off"


def _plan(profile: Profile) -> str:
    suite, plan = profile.suite, profile.suite.plan
    shared = f", processes shared over {', '.join(suite.share)}" if suite.share else ""
    return f"{plan.cycles} blocks of {plan.block_s:g} s after {plan.warmup_s:g} s of warm-up{shared}"


def _rounds(profile: Profile) -> Value:
    suite = profile.suite
    return suite.rounds if suite.precision_pct is None else f"to ±{suite.precision_pct:g} %"


def _share_pct(profile: Profile, counter: str, cpus: int | None) -> float | None:
    """Return by how much a time counter grew, in percent of the run's time; null where that is not known."""
    before, after = profile.state.before, profile.state.after
    if after is None:
        return None
    first, last = getattr(before, counter), getattr(after, counter)
    try:
        span_s = (datetime.fromisoformat(after.taken) - datetime.fromisoformat(before.taken)).total_seconds()
    except (ValueError, TypeError):  # no times, or one without its zone
        return None
    if first is None or last is None or last < first or span_s <= 0 or not cpus:
        return None
    return float(100 * (last - first) / (1e9 * span_s * cpus))


def _short(sha256: str | None) -> str | None:
    return sha256[:HASH_DIGITS] if sha256 else None


INCOMPATIBLE: Grade = "incompatible"
WARNS: Grade = "warns"
NOTED: Grade = "noted"

# In the order in which differences are listed. A kind's name ends in its unit.
FACTS: dict[str, Fact] = {
    "data": Fact(
        INCOMPATIBLE,
        effect="Steps used other samples, so accuracy and losses are not comparable.",
        option="one --data, and one --seed",
    ),
    "arithmetic": Fact(
        INCOMPATIBLE,
        effect="From the same weights and batches they compute different losses, so they are different programs.",
    ),
    "threads": Fact(
        INCOMPATIBLE,
        effect="Another number of threads divides the work differently.",
        option="--threads {value} (in a container: on as many CPUs, kit launch --cpus)",
    ),
    "epochs": Fact(INCOMPATIBLE, effect="A fit takes as long as its epochs.", option="one suite, --quick or not"),
    "cpu": Fact(WARNS, _cpu, title="CPU"),
    "accelerator": Fact(WARNS, lambda profile: _boards(profile, "", "model")),
    # kernels keep some for themselves, each another amount
    "memory_b": Fact(
        WARNS,
        lambda profile: profile.identity.memory_b,
        title="memory",
        effect="A different size usually means different modules or channels, and so a different bandwidth.",
        negligible=1 << 29,
        is_optional=True,
    ),
    "hypervisor": Fact(
        WARNS,
        lambda profile: _or_none(profile.identity.hypervisor),
        effect="A hypervisor takes time for itself and other guests, and hides clocks and power.",
    ),
    "cpu_flags": Fact(
        WARNS,
        lambda profile: " ".join(profile.identity.cpu.flags) or _short(profile.identity.cpu.flags_sha256),
        title="CPU features",
        effect="Libraries choose kernels by the instructions they find.",
    ),
    "microcode": Fact(
        WARNS,
        lambda profile: profile.identity.cpu.microcode,
        effect="Microcode brings mitigations, some of which cost time.",
    ),
    "cpu_limit": Fact(
        WARNS,
        lambda profile: _or_none(profile.identity.container.cpu_limit),
        title="CPU limit",
        effect="The kernel throttles a process beyond its quota, so steps get longer and vary more.",
    ),
    "memory_limit_b": Fact(
        WARNS,
        lambda profile: _or_none(profile.identity.container.memory_limit_b),
        title="memory limit",
        effect="Near its limit a container reclaims page cache, or the kernel kills it.",
    ),
    "hosts": Fact(
        WARNS,
        lambda profile: profile.suite.hosts,
        effect="Gradients cross a network between hosts.",
    ),
    "container": Fact(
        WARNS,
        lambda profile: _or_none(profile.identity.container.engine),
        effect="Another engine may mean other limits, file systems and security filters.",
    ),
    "kernel": Fact(
        WARNS,
        lambda profile: profile.identity.software.kernel,
        effect="The kernel decides scheduling, memory management and mitigations.",
    ),
    "driver": Fact(WARNS, lambda profile: _boards(profile, "driver of ", "driver"), is_optional=True),
    "package": Fact(
        WARNS,
        lambda profile: {
            name: version for name, version in profile.identity.software.packages.items() if name not in OF_THE_KIT
        },
        effect="It is the measured framework, or a library that it computes with.",
    ),
    "python": Fact(
        WARNS,
        lambda profile: profile.identity.software.python,
        effect="A framework's work between kernels runs in Python, which matters most for short steps.",
    ),
    "environment": Fact(
        WARNS,
        lambda profile: {
            name: value for name, value in profile.identity.software.environment.items() if name not in OF_MAKE
        },
        effect="Libraries read it to choose kernels, threads or allocators.",
    ),
    "program": Fact(
        WARNS,
        lambda profile: {f"program {name}": _short(source.sha256) for name, source in profile.suite.programs.items()},
        effect="The file of the user program differs, so it may compute something else.",
    ),
    "kit": Fact(WARNS, lambda profile: profile.kit.version),
    "plan": Fact(
        WARNS, _plan, title="step plan", effect="Shorter rounds vary more, and a shorter warm-up may not be enough."
    ),
    "governor": Fact(
        WARNS,
        lambda profile: profile.state.before.governor,
        title="frequency governor",
        effect="It decides how fast clocks rise and how high.",
        is_optional=True,
    ),
    "turbo": Fact(WARNS, _turbo, effect="With turbo, clocks follow temperature and load.", is_optional=True),
    "power_cap_w": Fact(
        WARNS,
        lambda profile: _limits(profile, "power cap of ", "power_cap_w"),
        effect="A lower cap lowers the clocks as soon as the load reaches it.",
        is_optional=True,
    ),
    "clock_limit_mhz": Fact(
        WARNS, lambda profile: _limits(profile, "clock limit of ", "clock_limit_mhz"), is_optional=True
    ),
    "compute_mode": Fact(WARNS, lambda profile: _limits(profile, "compute mode of ", "compute_mode"), is_optional=True),
    "mig": Fact(
        WARNS,
        lambda profile: _limits(profile, "MIG of ", "mig"),
        effect="A slice has only a part of the GPU's processors and memory.",
        is_optional=True,
    ),
    "ecc": Fact(WARNS, lambda profile: _limits(profile, "ECC of ", "ecc"), is_optional=True),
    # half a CPU busy is what a quiet desktop or a finishing build shows
    "load_1min": Fact(
        WARNS,
        lambda profile: profile.state.before.load_1min,
        title="load before",
        effect="Other programs took CPUs, caches and memory bandwidth.",
        negligible=0.5,
        is_optional=True,
    ),
    # one step of most processors' clocks
    "frequency_mhz": Fact(
        WARNS,
        lambda profile: profile.state.before.frequency_mhz,
        title="CPU frequency before",
        negligible=100.0,
        is_optional=True,
    ),
    # less is the difference between two rooms
    "temperature_c": Fact(
        WARNS,
        lambda profile: profile.state.before.temperature_c,
        title="temperature before",
        effect="A warm processor reaches its thermal limit sooner.",
        negligible=10.0,
        is_optional=True,
    ),
    # of all CPU time: the host's own housekeeping stays below
    "stolen_pct": Fact(
        WARNS,
        lambda profile: _share_pct(profile, "steal_ns", profile.identity.cpu.cores_logical),
        title="CPU time stolen by the hypervisor",
        effect="The hypervisor gave that time to other guests.",
        negligible=1.0,
        is_optional=True,
    ),
    # of the time: a run's own threads make some
    "waiting_pct": Fact(
        WARNS,
        lambda profile: _share_pct(profile, "pressure_cpu_some_ns", 1),
        title="time in which a task waited for a CPU",
        effect="Tasks were ready and found no free CPU.",
        negligible=10.0,
        is_optional=True,
    ),
    "host": Fact(NOTED, _host, is_optional=True),
    "image": Fact(NOTED, lambda profile: _or_none(profile.identity.container.image)),
    "image_digest": Fact(NOTED, lambda profile: _or_none(profile.identity.container.image_digest)),
    "libc": Fact(NOTED, lambda profile: profile.identity.software.libc, title="C library"),
    "os": Fact(NOTED, lambda profile: profile.identity.software.os, title="operating system"),
    "clock": Fact(NOTED, lambda profile: None if profile.clock is None else profile.clock.source),
    "sensor": Fact(NOTED, lambda profile: {f"sensor {sensor.name}": sensor.status for sensor in profile.sensors}),
    "seed": Fact(NOTED, lambda profile: profile.suite.seed),
    "suite": Fact(NOTED, lambda profile: f"{profile.suite.name} {_short(profile.suite.sha256)}"),
    "rounds": Fact(NOTED, _rounds, title="requested rounds"),
    "schema": Fact(NOTED, lambda profile: profile.schema),
}
