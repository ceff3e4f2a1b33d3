"""The gate: which cells of two runs may be compared, and what else differs between the runs.

incompatible   the numbers answer different questions: not compared, unless by force
warns          could explain a difference between the numbers: compared, and said
noted          explains nothing by itself: compared, and listed

A cell's own coordinates are not graded: another batch or precision is another cell. Hardware and software are what
people compare, so they never block. `kit.profile.facts` has the grades; the settings of a run are read here. So are
losses: programs that should compute the same thing do where these agree, step by step.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, combinations
from typing import NamedTuple

from kit.compare.bound_threads import A_CPU_EACH, words_of
from kit.compare.naming import axes_of
from kit.compare.rows import BOUND_THREADS, OTHER_LOSSES, Mismatch
from kit.errors import KitError
from kit.profile.cell import AXES, OWN, Cell
from kit.profile.facts import FACTS, Grade, fact_of, kind_of, title_of
from kit.profile.fields import Value
from kit.profile.program_source import ProgramSource
from kit.profile.schema import CellResult, Launch, Profile
from kit.workloads.parity_proof import parity_tolerance

# A hash is compared, never read: eight digits do.
HASH_DIGITS = 8
# The value of a fact that a machine does not have, such as a quota.
NONE = "none"
# What is read of the launches of a cell; every other incompatible fact keeps all cells of two runs apart.
OF_A_CELL = ("data", OTHER_LOSSES, "threads", BOUND_THREADS, "epochs")
# Axis of a cell -> option of `kit run` that chooses its values.
OPTIONS = {
    "workload": "--workload", "backend": "--backend", "device": "--device", "task": "--task", "batch": "--batch",
    "precision": "--dtype", "compile_mode": "--compile-mode", "feed": "--feed", "threads": "--threads",
    "devices": "--devices",
}  # fmt: skip
# A user program is a workload that `--program NAME=FILE.py` names.
WORKLOAD_OF_PROGRAM = "program"
# In more axes than these two cells do not ask the same question at all.
AXES_APART_MAX = 2

RunFacts = dict[str, Value | None]  # dotted name -> value; null: it cannot be read on that machine


class NotComparableError(KitError):
    """Profiles that have nothing to compare; one line that says why."""

    exit_code = 4


class CellFacts(NamedTuple):
    """What keeps one cell apart from another: what its launches ran on and with; empty: not recorded."""

    data: str
    threads: str
    bound_threads: str  # whether threads have a CPU each
    epochs: str  # of fits
    losses: tuple[float, ...]
    start: str  # hashes of the first weights and batches: losses from others do not compare
    run_facts: dict[str, str]  # by kind: the incompatible facts of its whole run


def facts_of(profile: Profile) -> tuple[RunFacts, dict[str, str]]:
    """Return the facts of a profile that are compared, and by their kind those that keep all of its cells apart."""
    identity, suite, before = profile.identity, profile.suite, profile.state.before
    shared = f", processes shared over {', '.join(suite.process_axes)}" if suite.process_axes else ""
    steps = suite.plan
    least = "" if steps.warmup_least_s is None else f"{min(steps.warmup_least_s, steps.warmup_s):g} to "
    launches = (launch for result in profile.cells for launch in result.launches)
    took_short_turns = any(launch.blocks.turn_count[:1] > [1] for launch in launches)
    turns = f" in turns of {steps.turn_s:g} s" if took_short_turns else ""
    warm_up = f"after {least}{steps.warmup_s:g} s of warm-up"
    plan = f"{steps.cycles} blocks of {steps.block_s:g} s{turns} {warm_up}{shared}"
    recorded: RunFacts = {
        **identity.facts,
        "hostname_sha256": identity.host or None,
        **before.facts,
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
    unknown, facts, by_kind = identity.reasons.keys() | before.reasons.keys(), RunFacts(), dict[str, list[str]]()
    for name, value in recorded.items():
        fact = fact_of(name)
        if fact.grade == "incompatible":
            kind, part = kind_of(name)
            if value is not None and kind not in OF_A_CELL:
                by_kind.setdefault(kind, []).append(str(value) if name == kind else f"{part} {value}")
        elif fact.grade is not None and not (value is None and fact.is_optional):
            known = NONE if value is None and name not in unknown else value
            facts[name] = known[:HASH_DIGITS] if name.endswith("_sha256") and isinstance(known, str) else known
    return facts, {kind: ", ".join(sorted(values)) for kind, values in by_kind.items()}


def _time_pct(profile: Profile, counter: str, cpus: int | None) -> float | None:
    """Return by how much a time counter grew, in percent of the run's time; null where that is not known."""
    before, after = profile.state.before, profile.state.after
    first, last = (None if state is None else state.integer(counter) for state in (before, after))
    if after is None or first is None or last is None or last < first or not cpus:
        return None
    try:
        span_s = (datetime.fromisoformat(after.taken) - datetime.fromisoformat(before.taken)).total_seconds()
    except (ValueError, TypeError):  # no times, or one without its zone
        return None
    return 100 * (last - first) / (1e9 * span_s * cpus) if span_s > 0 else None


def cell_facts(launches: Sequence[Launch], run_facts: dict[str, str]) -> CellFacts:
    """Return them of all launches of a cell, given those of its run; losses of the first launch that has them."""
    data: set[tuple[str, str]] = set()
    threads: set[int] = set()
    bound: set[str] = set()
    epochs: set[str] = set()
    for launch in launches:
        if launch.data is not None:
            data.add((launch.data.name, launch.data.sha256))
        if launch.threads is not None:
            threads.add(launch.threads.requested)
            bound.add(words_of(launch.threads))
        if (fit := launch.fit) is not None:
            epochs.add(f"{fit.updates} of {fit.all_updates} updates" if fit.is_part else str(fit.epochs))
    parity = next((launch.parity for launch in launches if launch.parity is not None), None)
    return CellFacts(
        data=_joined({f"{name} {sha256[:HASH_DIGITS]}" for name, sha256 in data}),
        threads=_joined(map(str, threads)),
        bound_threads=_joined(bound - {""}),
        epochs=_joined(epochs),
        losses=tuple(parity.losses) if parity is not None else (),
        # Cells of a thousand runs begin alike.
        start=sys.intern(f"{parity.weights_sha256} {parity.batches_sha256}") if parity is not None else "",
        run_facts=run_facts,
    )


def _joined(values: Iterable[str]) -> str:
    return " and ".join(sorted(values))


class Programs(NamedTuple):
    """Cells of one side, and where its user programs are."""

    label: str
    cells: Sequence[Cell]
    programs: Mapping[str, ProgramSource]


def nothing_common(base_side: Programs, side: Programs) -> KitError:
    """Return the error that says in which axes the cells of two sides differ, and what would make one common."""
    (base_label, base_cells, _), (label, cells, _) = base_side, side
    known_axes = [axis for axis in axes_of([*base_cells, *cells]) if axis != "device"]
    for axes in chain.from_iterable(combinations(known_axes, count) for count in range(1, AXES_APART_MAX + 1)):
        known = {cell.key_without(("device", *axes)): cell for cell in reversed(base_cells)}
        pairs = ((known.get(cell.key_without(("device", *axes))), cell) for cell in cells)
        for base, cell in pairs:
            if base is None or any(base.value(axis) == cell.value(axis) for axis in axes):
                continue
            values = [[cell.value(axis), base.value(axis)] for axis in axes]
            shown = [["by default" if value is None else value for value in pair] for pair in values]
            are_programs = base.precision == cell.precision == OWN
            titles = [WORKLOAD_OF_PROGRAM if are_programs and axis == "workload" else axis for axis in axes]
            apart = ", ".join(
                f"{title.replace('_', ' ')} {base_value} in {base_label}, {value} in {label}"
                for title, (value, base_value) in zip(titles, shown, strict=True)
            )
            options = [(OPTIONS[axis], base.value(axis)) for axis in titles if axis in OPTIONS]
            options += _renamed(base_side, side) if WORKLOAD_OF_PROGRAM in titles else []
            options += [("--parameter", f"{axis}={base.value(axis)}") for axis in axes if axis not in AXES]
            given = " ".join(f"{option} {value}" for option, value in options if value is not None)
            left_out = " ".join(option for option, value in options if value is None)
            words = [f"with {given}" if given else "", f"without {left_out}" if left_out else ""]
            remedy = f"measure {label} {' and '.join(filter(None, words))}" if options else "measure both alike"
            return NotComparableError(f"no cell is in both: {apart}; {remedy}")
    has = [f"{side} has {here[0].key if here else 'none'}" for side, here in ((base_label, base_cells), (label, cells))]
    return NotComparableError(f"no cell is in both: {'; '.join(has)}; compare runs of the same suite")


def _renamed(base_side: Programs, side: Programs) -> list[tuple[str, str]]:
    """Return the options that give the programs of a side the names of the baseline's: of like functions, in order."""
    left = dict(side.programs)
    options = []
    for name, base in base_side.programs.items():
        alike = [other for other, source in left.items() if source.function == base.function]
        source = left.pop(next(iter(alike or left))) if left else None
        if source is not None:
            options.append((source.words(name)[0], source.words(name)[1]))
    return options or [("--program", f"{base_side.cells[0].workload}=FILE.py")]


def refusal(mismatch: Mismatch) -> KitError:
    """Return the error of cells that are all kept apart; it says in what, and which option would make them alike."""
    (base_value, others), (value, labels) = mismatch.values[0], mismatch.values[-1]
    option = FACTS[mismatch.kind].option.format(value=base_value)
    return NotComparableError(
        f"no common cell can be compared: {title_of(mismatch.kind)} is {value} in {labels[0]} and {base_value} in "
        f"{others[0]}; measure both {f'with {option}' if option else 'alike'}, or compare them anyway with --force"
    )


def cell_mismatches(cells: Iterable[tuple[str, CellFacts]], precision: str, *, like_hardware: bool) -> list[Mismatch]:
    """Return in what one cell is not alike in several runs. What one of them did not record is no difference.

    Args:
        cells: label of a run, and the cell's facts in it; the baseline's first.
        precision: of the cell; it decides how far losses may differ that are called equal.
        like_hardware: all ran on the same hardware, as far as recorded.
    """
    kinds = [kind for kind, fact in FACTS.items() if fact.grade == "incompatible"]
    holders: dict[str, dict[Value | None, list[str]]] = {kind: {} for kind in kinds}
    tolerance = parity_tolerance(precision, like_hardware=like_hardware)
    first = before = None
    alike: list[list[str]] = []  # of each kind, the labels of the runs that have its value
    for label, facts in cells:
        first = first or facts
        if facts != before:  # those of a thousand runs are alike
            same = facts == first or _same_losses(facts, first, tolerance)
            values = facts._asdict() | facts.run_facts | {OTHER_LOSSES: "its losses" if same else "other losses"}
            known = [(kind, value) for kind in kinds if (value := values.get(kind))]
            before, alike = facts, [holders[kind].setdefault(value, []) for kind, value in known]
        for labels in alike:
            labels.append(label)
    # The number of threads is a choice on one machine; another machine has what it has.
    return [
        _mismatch(kind, kind, values, "warns" if kind == "threads" and not like_hardware else "incompatible")
        for kind, values in holders.items()
        if len(values) > 1
    ]


def apart_in_threads(cells: Sequence[tuple[str, CellFacts]]) -> list[Mismatch]:
    """Return why two cells of one run are kept apart: the threads of one have fewer CPUs than they could use."""
    values: dict[Value | None, list[str]] = {facts.bound_threads: [name] for name, facts in cells}
    is_apart = len(values) > 1 and "" not in values
    return [_mismatch(BOUND_THREADS, BOUND_THREADS, values, "incompatible")] if is_apart else []


def apart_in_losses(cells: Sequence[tuple[str, CellFacts]], precision: str) -> list[Mismatch]:
    """Return why two cells of one run are kept apart: from the same weights and batches they compute other losses."""
    (first, base), (name, facts) = cells
    if _same_losses(facts, base, parity_tolerance(precision)):
        return []
    return [_mismatch(OTHER_LOSSES, OTHER_LOSSES, {"its losses": [first], "other losses": [name]}, "incompatible")]


def is_bound(facts: CellFacts) -> bool:
    """Return whether the threads of a cell have fewer CPUs than they could use."""
    return facts.bound_threads not in ("", A_CPU_EACH)


def _same_losses(facts: CellFacts, base: CellFacts, tolerance: float) -> bool:
    """Return true, too, where losses from other data, weights or batches, or of another number, do not compare."""
    if not facts.start or (facts.start, facts.data, len(facts.losses)) != (base.start, base.data, len(base.losses)):
        return True
    difference = max_relative_difference(facts.losses, base.losses)
    return difference is not None and difference <= tolerance


def run_mismatches(runs: Sequence[tuple[str, RunFacts]]) -> list[Mismatch]:
    """Return which of the runs' facts are not the same in all, gravest first."""
    holders: dict[str, dict[Value | None, list[str]]] = defaultdict(lambda: defaultdict(list))
    for label, facts in runs:
        for name, value in facts.items():
            holders[name][value].append(label)
    mismatches = []
    for name, values in holders.items():
        fact = fact_of(name)
        if not fact.is_optional and sum(map(len, values.values())) < len(runs):
            values.setdefault(NONE, []).extend(label for label, facts in runs if name not in facts)
        numbers = [value for value in values if isinstance(value, int | float)]
        is_negligible = len(numbers) == len(values) and max(numbers) - min(numbers) <= fact.negligible
        if len(values) > 1 and not is_negligible:
            mismatches.append(_mismatch(kind_of(name)[0], name, values, fact.grade or "noted"))
    order = {kind: index for index, kind in enumerate(FACTS)}
    return sorted(mismatches, key=lambda mismatch: order.get(mismatch.kind, len(order)))


def blocking(mismatches: Iterable[Mismatch]) -> list[Mismatch]:
    """Return those for which the gate keeps two cells apart."""
    return [mismatch for mismatch in mismatches if mismatch.grade == "incompatible"]


def merged(mismatches: Iterable[Mismatch]) -> list[Mismatch]:
    """Return each kind of difference between cells once, whichever cells it is in."""
    kinds: dict[tuple[str, Grade], dict[Value | None, dict[str, None]]] = {}
    for mismatch in mismatches:
        for value, labels in mismatch.values:
            kinds.setdefault((mismatch.kind, mismatch.grade), {}).setdefault(value, {}).update(dict.fromkeys(labels))
    return [_mismatch(kind, kind, values, grade) for (kind, grade), values in kinds.items()]


def _mismatch(kind: str, name: str, holders: Mapping[Value | None, Iterable[str]], grade: Grade) -> Mismatch:
    values = [(value, list(labels)) for value, labels in holders.items()]
    return Mismatch(kind=kind, name=name, grade=grade, values=values)


class Agreement(NamedTuple):
    """What the others' losses say of one program's."""

    agrees: bool | None  # None: there is no other
    max_relative_difference: float | None  # to those it agrees with, else to all; None: none, or a loss is not finite


def max_relative_difference(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return the largest |a - b| / max(|a|, |b|) over the steps, as many of both; None if a loss is not finite."""
    if not all(map(math.isfinite, (*a, *b))):
        return None
    pairs = zip(a, b, strict=True)
    return max((abs(x - y) / max(abs(x), abs(y)) for x, y in pairs if x != y), default=0.0)


def agreeing(losses_by_key: Mapping[str, Sequence[float]], tolerance: float) -> dict[str, Agreement]:
    """Judge each program against the others: it agrees if more than half of all, itself counted, have its losses.

    Args:
        losses_by_key: as many losses of each program, from the same weights and batches.
        tolerance: largest relative difference of losses that are called equal.
    """
    judged = {}
    for key, losses in losses_by_key.items():
        apart = [max_relative_difference(losses, other) for name, other in losses_by_key.items() if name != key]
        equal = [value for value in apart if value is not None and value <= tolerance]
        if apart and 2 * (len(equal) + 1) > len(losses_by_key):
            judged[key] = Agreement(True, max(equal))
        else:
            largest = None if None in apart else max(filter(None, apart), default=0.0)
            judged[key] = Agreement(False, largest) if apart else Agreement(None, None)
    return judged


def agreements(cells: Iterable[CellResult]) -> dict[str, Agreement]:
    """Return, by key, whether a cell computes what others of its work do; of those whose losses were recorded."""
    works: dict[tuple[object, ...], dict[str, list[float]]] = {}
    for result in cells:
        parity = next((launch.parity for launch in result.launches if launch.parity is not None), None)
        if parity is not None and parity.losses:
            start = (parity.weights_sha256, parity.batches_sha256, len(parity.losses))
            work = result.cell.key_without(("backend", "compile_mode", "feed", "devices", "threads", "variant"))
            works.setdefault((*start, work, result.cell.precision), {})[result.key] = parity.losses
    judged: dict[str, Agreement] = {}
    for (*_, precision), alike in works.items():
        judged |= agreeing(alike, parity_tolerance(str(precision)))
    return judged
