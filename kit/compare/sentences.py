"""A difference between two profiles as a sentence that says what it was, where a list of values would not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kit.compare.counted import counted, percent
from kit.compare.gate import LabelledProfile
from kit.compare.graded import GradedDifference, several
from kit.compare.state_facts import stolen_pct, throttled_launches, waiting_pct
from kit.profile.brief import AnyProfile, ProfileBrief, launches_of

PHASE = "steady"
BEGINNINGS = ("in ", "the load ", "during ")


def sentence(found: GradedDifference, pair: Sequence[LabelledProfile]) -> str:
    """What differs between the two, with their labels."""
    own = _OWN.get(found.kind)
    clauses = [own(label, profile) for label, profile in pair] if own is not None else []
    if clauses:
        return f"{_begun('; '.join(clauses))}."
    if found.kind == "arithmetic":
        return "The first losses of a cell are not the other's, from the same weights and batches."
    values = [f"{value} in {several(labels)}" for value, labels in found.values.items()]
    # A package, a variable or a device is written as it is.
    name = found.name if found.name != found.kind else f"{found.name[0].upper()}{found.name[1:]}"
    return f"{name}: {', '.join(values)}."


def _begun(clauses: str) -> str:
    """As a sentence begins; a label is written as it is."""
    return f"{clauses[0].upper()}{clauses[1:]}" if clauses.startswith(BEGINNINGS) else clauses


def _cpu_limit(label: str, profile: AnyProfile) -> str:
    limit, cpus = profile.identity.container.cpu_limit, profile.identity.cpu.cores_logical
    if limit is None:
        return f"{label} has no CPU limit"
    return f"{label} may use {limit:g} of its {counted(cpus, 'CPU')}"


def _threads(label: str, profile: AnyProfile) -> str:
    requested = sorted({count for result in profile.cells for count in launches_of(result).threads})
    return f"{label} computed with {' and '.join(counted(count, 'thread') for count in requested) or 'unknown threads'}"


def _load(label: str, profile: AnyProfile) -> str:
    cpus = profile.identity.cpu.cores_logical
    return f"the load was {profile.state.before.load_1min:.3g} on {counted(cpus, 'CPU')} before {label}"


def _stolen(label: str, profile: AnyProfile) -> str:
    return f"during {label} the hypervisor took {percent(stolen_pct(profile) or 0)} of all CPU time"


def _waiting(label: str, profile: AnyProfile) -> str:
    return f"during {label} some task waited for a CPU {percent(waiting_pct(profile) or 0)} of the time"


def _throttled(label: str, profile: AnyProfile) -> str:
    throttled, launches = throttled_launches(profile)
    if not throttled:
        return f"in {label} none of {counted(launches, 'launch')} was throttled"
    verb = "was" if throttled == 1 else "were"
    how = f"{_for_how_long(profile)}{_by_gpu(profile)}"
    return f"in {label} {throttled} of {counted(launches, 'launch')} {verb} throttled{how}"


def _for_how_long(profile: AnyProfile) -> str:
    """Of the throttled launches' steady time; a limit stops all CPUs of a group, and each counts."""
    if isinstance(profile, ProfileBrief):  # without the launches' phases
        return ""
    stopped_ns = steady_ns = 0
    for result in profile.cells:
        for launch in result.launches:
            throttled_ns = launch.utilization.throttled_ns if launch.utilization is not None else None
            if throttled_ns:
                stopped_ns += throttled_ns
                steady_ns += sum(phase.duration_ns for phase in launch.phases if phase.name == PHASE)
    if steady_ns <= 0:
        return ""
    return f", their CPUs stopped for {stopped_ns / steady_ns:.2g} s in every steady second"


def _by_gpu(profile: AnyProfile) -> str:
    """What slowed the GPUs of launches that computed on one, and in how many of them."""
    slowed = Counter(
        words
        for result in profile.cells
        for slowed_by in launches_of(result).gpu_throttled_by.values()
        for words in set(slowed_by)
    )
    said = [f"{words} in {counted(slowed[words], 'launch')}" for words in sorted(slowed)]
    return f", the GPU's clock lowered by {several(said)}" if said else ""


_OWN = {
    "CPU limit": _cpu_limit,
    "threads": _threads,
    "load before": _load,
    "CPU time stolen": _stolen,
    "waiting for CPUs": _waiting,
    "throttled launches": _throttled,
}
