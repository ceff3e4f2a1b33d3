"""What could explain a difference between two profiles: facts of machine, software, state and run, by their names.

`kit.profile.facts.FACTS` says what each of them means; here the settings of a run are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from kit.profile.facts import fact_of, kind_of
from kit.profile.launch import Launch
from kit.profile.reason import Value
from kit.profile.schema import Profile

# A hash is compared, never read: eight digits do.
HASH_DIGITS = 8
# The value of a fact that a machine does not have, such as a quota.
NONE = "none"
# What is read of the launches of a cell; every other incompatible fact keeps all cells of two runs apart.
OF_A_CELL = ("data", "arithmetic", "threads", "epochs")

Facts = dict[str, Value | None]  # dotted name -> value; null: it cannot be read on that machine


class CellFacts(NamedTuple):
    """What keeps one cell apart from another: what its launches ran on and with; empty: not recorded."""

    data: str
    threads: str
    epochs: str  # of fits
    losses: tuple[float, ...]
    start: str  # hashes of the first weights and batches: losses from others do not compare
    of_run: dict[str, str]  # by kind: the incompatible facts of its whole run


def facts_of(profile: Profile) -> tuple[Facts, dict[str, str]]:
    """Return the facts of a profile that are compared, and by their kind those that keep all of its cells apart."""
    unknown = profile.identity.reasons.keys() | profile.state.before.reasons.keys()
    facts, by_kind = Facts(), dict[str, list[str]]()
    for name, value in _recorded(profile).items():
        fact, (kind, part) = fact_of(name), kind_of(name)
        if fact.grade == "incompatible":
            if value is not None and kind not in OF_A_CELL:
                by_kind.setdefault(kind, []).append(str(value) if name == kind else f"{part} {value}")
        elif fact.grade is not None and not (value is None and fact.is_optional):
            known = NONE if value is None and name not in unknown else value
            facts[name] = known[:HASH_DIGITS] if name.endswith("_sha256") and isinstance(known, str) else known
    return facts, {kind: ", ".join(sorted(values)) for kind, values in by_kind.items()}


def cell_facts(launches: Sequence[Launch], of_run: dict[str, str]) -> CellFacts:
    """Return them of all launches of a cell, given those of its run; losses of the first launch that has them."""
    parity = next((launch.parity for launch in launches if launch.parity is not None), None)
    fits = [launch.fit for launch in launches if launch.fit is not None]
    data = (launch.data for launch in launches if launch.data is not None)
    return CellFacts(
        data=_joined(f"{used.name} {used.sha256[:HASH_DIGITS]}" for used in data),
        threads=_joined(str(launch.threads.requested) for launch in launches if launch.threads is not None),
        epochs=_joined(
            f"{fit.updates} of {fit.all_updates} updates" if fit.is_part else str(fit.epochs) for fit in fits
        ),
        losses=tuple(parity.losses) if parity is not None else (),
        start=f"{parity.weights_sha256} {parity.batches_sha256}" if parity is not None else "",
        of_run=of_run,
    )


def _recorded(profile: Profile) -> Facts:
    """Return all facts of a profile: of machine and software, of the state before the run, of its settings."""
    identity, suite = profile.identity, profile.suite
    shared = f", processes shared over {', '.join(suite.process_axes)}" if suite.process_axes else ""
    plan = f"{suite.plan.cycles} blocks of {suite.plan.block_s:g} s after {suite.plan.warmup_s:g} s of warm-up{shared}"
    return {
        **identity.facts,
        "hostname_sha256": identity.host or None,
        **profile.state.before.facts,
        "hosts": suite.hosts,
        **{f"program.{name}": source.sha256[:HASH_DIGITS] for name, source in suite.programs.items()},
        "kit": profile.kit.version,
        "plan": plan,
        "stolen_pct": _time_pct(profile, "steal_ns", identity.integer("cpu.cores_logical")),
        "waiting_pct": _time_pct(profile, "pressure_cpu_some_ns", 1),
        "clock": None if profile.clock is None else profile.clock.source,
        **{f"sensor.{sensor.name}": sensor.status for sensor in profile.sensors},
        "seed": suite.seed,
        "suite": f"{suite.name} {suite.sha256[:HASH_DIGITS]}",
        "rounds": suite.rounds if suite.precision_pct is None else f"to ±{suite.precision_pct:g} %",
        "schema": profile.schema,
    }


def _joined(values: Iterable[str]) -> str:
    return " and ".join(sorted(set(values)))


def _time_pct(profile: Profile, counter: str, cpus: int | None) -> float | None:
    """Return by how much a time counter grew, in percent of the run's time; null where that is not known."""
    before, after = profile.state.before, profile.state.after
    if after is None:
        return None
    first, last = before.integer(counter), after.integer(counter)
    try:
        span_s = (datetime.fromisoformat(after.taken) - datetime.fromisoformat(before.taken)).total_seconds()
    except (ValueError, TypeError):  # no times, or one without its zone
        return None
    if first is None or last is None or last < first or span_s <= 0 or not cpus:
        return None
    return 100 * (last - first) / (1e9 * span_s * cpus)
