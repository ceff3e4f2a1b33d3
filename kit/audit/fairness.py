"""Whether a group compares equals: what one framework was given, or obeyed, and another was not.

    variable in the environment ──► read by torch: 1 thread    ╮ the comparison is of settings,
                              └──► not read by jax: 2 threads  ╯ not of frameworks

What variants of one run differ in is what they are there for: members of one variant are held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch

from kit.audit.finding import Finding, Severity
from kit.audit.rule import Member, Outcome, rule
from kit.profile.cell import FRAMEWORKS_OWN
from kit.profile.launch import Threads
from kit.profile.reason import Reason, Value, reason

# Of variables' names: those that give memory to an allocator, and those that set threads.
ALLOCATORS = ("LD_PRELOAD", "GLIBC_TUNABLES", "*MALLOC*", "*ALLOC*", "*MEM_FRACTION", "*PREALLOCATE", "*ALLOW_GROWTH")
OF_THREADS = ("*NUM*THREADS", "*THREAD_LIMIT", "NPROC")
# Whose module keeps to itself what it reads.
OWN_PROGRAM = "program"
# Times as many threads as the one that obeys: pools differ by a thread or two that wait and hand over.
HELD_BACK = 2
# Of `Launch.settings`: the framework's switch of float32's multiplication -> values under which it is a full one.
# JAX' None is its default, on GPUs since Ampere TensorFloat-32 and on TPUs bfloat16.
FULL_FLOAT32 = {
    "float32_matmul_precision": ("highest",),
    "tensor_float_32": ("False",),
    "jax_default_matmul_precision": ("highest", "float32"),
}
# As `kit.backends.defaults` writes it behind a switch.
TF32_FORBIDDEN = "(NVIDIA_TF32_OVERRIDE=0)"


@rule("group", worst="warning")
def variable_binds_one(group: Sequence[Member]) -> Outcome:
    """Find environment variables that one framework of a group obeys and another does not read."""
    findings: list[Finding] = []
    missing: Reason | None = None
    for alike in _alike(group, lambda member: member.cell.variant):
        environments = [_environment(member) for member in alike]
        if any(member.cell.backend == OWN_PROGRAM for member in alike):
            missing = reason("own_programs_read_what_they_like")
        elif None in environments:
            missing = reason("not_recorded", what="environment")
        else:
            known = [environment or {} for environment in environments]
            for name in dict.fromkeys(name for environment in known for name in environment):
                if any(fnmatch(name, pattern) for pattern in ALLOCATORS):
                    continue
                obeys = [name in environment for environment in known]
                if not all(obeys):
                    findings.append(_bound(name, alike, obeys, known))
    return [*findings, *([missing] if missing else [])]


def _bound(name: str, alike: Sequence[Member], obeys: Sequence[bool], known: Sequence[dict[str, str]]) -> Finding:
    bound = [member for member, reads in zip(alike, obeys, strict=True) if reads]
    free = [member for member, reads in zip(alike, obeys, strict=True) if not reads]
    value = next(environment[name] for environment, reads in zip(known, obeys, strict=True) if reads)
    counts = [_threads_seen(member) for member in (*bound, *free)]
    of_bound, of_free = max(counts[: len(bound)]), min(counts[len(bound) :])
    # What is known to have held one back, beside what may have.
    held_back = any(fnmatch(name, pattern) for pattern in OF_THREADS) and 0 < HELD_BACK * of_bound <= of_free
    severity: Severity = "warning" if held_back else "note"
    values: dict[str, Value] = {
        "variable": name,
        "value": value,
        "set_by": _set_by(bound[0], name, value),
        "obeys": _named(bound),
        "ignores": _named(free),
        "threads": ", ".join(
            f"{member.cell.backend} {count or 'not known'}"
            for member, count in zip((*bound, *free), counts, strict=True)
        ),
    }
    rank = 100 * (1 - of_bound / of_free) if held_back else 0.0
    explains = ("threads_differ", "cpus_idle") if held_back else ()
    return bound[0].finding("variable_binds_one", severity, values, rank, reason("set_for_all", name=name), explains)


@rule("group", worst="warning", on="cpu")
def threads_differ(group: Sequence[Member]) -> Outcome:
    """Find groups whose cells computed with different numbers of threads."""
    findings: list[Finding] = []
    missing: Reason | None = None
    for alike in _alike(group, lambda member: (member.cell.variant, member.cell.threads)):
        threads = [_threads(member) for member in alike]
        reported = [of and of.reported for of in threads]
        used = [of and of.used for of in threads]
        severity: Severity = "warning"
        remedy: Reason | None = reason("equal_threads")
        # Pools differ in how many threads wait and hand over: but one alone is no pool, unless one was asked for.
        busy = [count or 0 for count in used]
        one_alone = None not in used and min(busy) == 1 < max(busy) and max(of.requested for of in threads if of) > 1
        if None not in reported:
            counts = [count or 0 for count in reported]
            differ = min(counts) != max(counts)
            if not differ and one_alone:
                # Small steps may be one thread's by nature: true, no warning, and equal numbers were given already.
                counts, differ, severity, remedy = busy, True, "note", None
        elif None not in used:
            counts, differ = busy, one_alone
        else:
            missing = reason("not_recorded", what="threads.used")
            continue
        if differ:
            fewest = min(zip(counts, alike, strict=True), key=lambda pair: pair[0])[1]
            listed = ", ".join(f"{member.cell.backend} {count}" for member, count in zip(alike, counts, strict=True))
            rank = 100 * (1 - min(counts) / max(counts))
            findings.append(fewest.finding("threads_differ", severity, {"threads": listed}, rank, remedy))
    return [*findings, *([missing] if missing else [])]


@rule("group", worst="warning", on="accelerator")
def precision_differs(group: Sequence[Member]) -> Outcome:
    """Find groups in which one framework multiplies float32 at full precision and another does not."""
    findings: list[Finding] = []
    missing: Reason | None = None
    for alike in _alike(group, lambda member: (member.cell.variant, member.cell.precision)):
        if alike[0].cell.precision not in ("float32", FRAMEWORKS_OWN):
            continue
        switches = [_switch(member) for member in alike]
        if None in switches:
            missing = reason("not_recorded", what="settings")
            continue
        named = [switch for switch in switches if switch is not None]
        full = [_is_full(switch, value) for switch, value in named]
        if len(set(full)) > 1:
            listed = ", ".join(
                f"{member.cell.backend} {value}" for member, (_, value) in zip(alike, named, strict=True)
            )
            of_less = alike[full.index(False)]
            findings.append(
                of_less.finding("precision_differs", "warning", {"settings": listed}, 100.0, reason("same_precision"))
            )
    return [*findings, *([missing] if missing else [])]


@rule("group", worst="warning")
def allocator_differs(group: Sequence[Member]) -> Outcome:
    """Find groups in which one framework runs with allocator settings that another lacks."""
    if len({member.cell.backend for member in group}) < 2:  # noqa: PLR2004
        return None
    settings: dict[str, set[str]] = {}
    for member in group:
        environment = _environment(member)
        if environment is None:
            return reason("not_recorded", what="environment")
        named = (name for name in environment if any(fnmatch(name, pattern) for pattern in ALLOCATORS))
        settings.setdefault(member.cell.backend, set()).update(f"{name}={environment[name]}" for name in named)
    common = set.intersection(*settings.values())
    return [
        next(member for member in group if member.cell.backend == backend).finding(
            "allocator_differs",
            "warning",
            {
                "settings": ", ".join(sorted(of_backend - common)),
                "others": ", ".join(other for other in settings if other != backend),
            },
            remedy=reason("same_allocator"),
        )
        for backend, of_backend in settings.items()
        if of_backend > common
    ]


def _alike(group: Sequence[Member], key: Callable[[Member], object]) -> Iterator[list[Member]]:
    """Yield members with one key, where they are of several frameworks or programs."""
    sets: dict[object, list[Member]] = {}
    for member in group:
        sets.setdefault(key(member), []).append(member)
    for alike in sets.values():
        if len({(member.cell.backend, member.cell.workload) for member in alike}) > 1:
            yield alike


def _environment(member: Member) -> dict[str, str] | None:
    recorded = (launch.environment for launch in member.launches.values() if launch.environment is not None)
    return next(recorded, None)


def _threads(member: Member) -> Threads | None:
    return next((launch.threads for launch in member.launches.values() if launch.threads is not None), None)


def _threads_seen(member: Member) -> int:
    """Return the threads that computed, else those that the framework reports; 0: neither is known."""
    threads = _threads(member)
    return 0 if threads is None else threads.used or threads.reported or 0


def _named(members: Sequence[Member]) -> str:
    return ", ".join(dict.fromkeys(member.cell.backend for member in members))


def _set_by(member: Member, name: str, value: str) -> str:
    identity, variant = member.profile.identity, member.variant
    if variant is not None and variant.env.get(name) == value:
        return f"variant {variant.name}"
    if identity.text(f"environment.{name}") == value:
        return identity.text(f"environment_set_by.{name}") or "not recorded"
    return "image" if variant is not None and variant.image is not None else "not recorded"


def _switch(member: Member) -> tuple[str, str] | None:
    """Return the framework's switch of float32 as it held."""
    settings = next((launch.settings for launch in member.launches.values() if launch.settings), {})
    return next(((name, settings[name]) for name in FULL_FLOAT32 if name in settings), None)


def _is_full(switch: str, value: str) -> bool:
    return value.endswith(TF32_FORBIDDEN) or value.split(" ", maxsplit=1)[0] in FULL_FLOAT32[switch]
