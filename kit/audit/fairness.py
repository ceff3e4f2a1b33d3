"""Rules on fairness: what one framework was given, and another was not; `kit.audit.variables` has what variables set.

Variants of one run differ on purpose: only cells of one variant are compared with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch

from kit.audit.remedies import TCMALLOC, again
from kit.audit.rule import Found, Outcome, rule, says
from kit.audit.subject import MeasuredCell, NotApplicableError, not_recorded
from kit.compare.contradictions import FULL_FLOAT32, is_full
from kit.compare.same_code import same_code as code_in_common
from kit.profile.cell import FRAMEWORKS_OWN
from kit.profile.schema import WhatRan

# Names of variables that give memory to an allocator.
ALLOCATORS = ("LD_PRELOAD", "GLIBC_TUNABLES", "*MALLOC*", "*ALLOC*", "*MEM_FRACTION", "*PREALLOCATE", "*ALLOW_GROWTH")


def alike_but_frameworks(
    group: Sequence[MeasuredCell], key: Callable[[MeasuredCell], object]
) -> Iterator[list[MeasuredCell]]:
    """Yield the cells with one key, where they are of several frameworks or programs."""
    sets: dict[object, list[MeasuredCell]] = {}
    for cell in group:
        sets.setdefault(key(cell), []).append(cell)
    for alike in sets.values():
        if len({(cell.cell.backend, cell.cell.workload) for cell in alike}) > 1:
            yield alike


def is_any(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a name fits one of some patterns."""
    return any(fnmatch(name, pattern) for pattern in patterns)


def listed(cells: Sequence[MeasuredCell], values: Sequence[object]) -> str:
    """Return the value of each cell, by the name of its row."""
    return ", ".join(f"{cell.sample.name}: {value}" for cell, value in zip(cells, values, strict=True))


@rule("bad", "other_code")
@says("{who}: it was to differ from the baseline by {by}, but loaded the same code (files of yours: {files}).")
def same_code(group: Sequence[MeasuredCell]) -> Iterator[Outcome]:
    """Find variants and programs that were to differ in code and loaded the same."""
    suite = group[0].run.profile.suite
    base = next((cell for cell in group if cell.sample.baseline is cell.sample), None)
    others = [cell for cell in group if cell is not base and base is not None]
    known = {cell.key: code_in_common(suite, cell.sample, base.sample) for cell in others if base is not None}
    if not any(known.values()):
        raise NotApplicableError
    for cell in others:
        common = known[cell.key]
        if common is not None and common.files is not None:
            values = {"by": common.by, "files": common.files}
            yield Found(values, 100.0, cell_key=cell.key)
        elif common is not None:
            yield not_recorded("imported")


@rule("warning", on="cpu")
@says("{who}: the compared cells use different numbers of threads: {threads}.")
def threads_differ(group: Sequence[MeasuredCell]) -> Iterator[Outcome]:
    """Find groups whose cells computed with different numbers of threads."""
    for alike in alike_but_frameworks(group, lambda cell: (cell.cell.variant, cell.cell.threads)):
        threads = [known for cell in alike if (known := cell.threads) is not None]
        reported = [known.reported for known in threads if known.reported is not None]
        used = [known.used for known in threads if known.used is not None]
        # Pools differ in how many threads wait and hand over: but one alone is no pool, unless one was requested.
        one_alone = len(used) == len(alike) and min(used) == 1 < max(used)
        one_alone = one_alone and max(known.requested for known in threads) > 1
        # One thread may be enough for small steps: that is a fact where equal numbers were given already.
        is_note = len(reported) == len(alike) and min(reported) == max(reported)
        if len(reported) < len(alike) and len(used) < len(alike):
            yield not_recorded("threads.used")
        elif one_alone or (len(reported) == len(alike) and not is_note):
            counts = reported if len(reported) == len(alike) and not is_note else used
            yield Found(
                {"threads": listed(alike, counts)},
                100 * (1 - min(counts) / max(counts)),
                severity="note" if is_note else "warning",
                remedy=None if is_note else again("equal_threads", alike, {"threads": [max(counts)]}),
                cell_key=alike[counts.index(min(counts))].key,
            )


@rule("warning", on="accelerator")
@says("{who}: the compared cells multiply float32 at different precision: {settings}.")
def precision_differs(group: Sequence[MeasuredCell]) -> Iterator[Outcome]:
    """Find groups in which one framework multiplies float32 at full precision and another does not."""
    for alike in alike_but_frameworks(group, lambda cell: (cell.cell.variant, cell.cell.precision)):
        recorded = [next((record.settings for record in cell.records if record.settings), {}) for cell in alike]
        switches = [
            next(((name, settings[name]) for name in FULL_FLOAT32 if name in settings), None) for settings in recorded
        ]
        known = [switch for switch in switches if switch is not None]
        full = [is_full(name, value, alike[0].cell.device) for name, value in known]
        if alike[0].cell.precision in ("float32", FRAMEWORKS_OWN):
            if len(known) < len(alike):
                yield not_recorded("settings")
            elif len(set(full)) > 1:
                values = {"settings": listed(alike, [value for _, value in known])}
                remedy = again("same_precision", alike, {"precision": ["float32"]})
                yield Found(values, 100.0, cell_key=alike[full.index(False)].key, remedy=remedy)


@rule("warning", "same_graphs", on="accelerator")
@says("{who}: CUDA graphs are replayed by {replaying} and not by {launching}; launches in a step: {launches}.")
def cuda_graphs_differ(group: Sequence[MeasuredCell]) -> Iterator[Outcome]:
    """Find groups in which one framework replays captured CUDA graphs and another launches each kernel."""
    for alike in alike_but_frameworks(group, lambda cell: (cell.cell.variant, cell.cell.device)):
        if alike[0].cell.device != "gpu":
            raise NotApplicableError
        ran = [next((record.ran for record in cell.records if record.ran), WhatRan()) for cell in alike]
        with_graphs = [None if known.graphs is None else known.graphs > 0 for known in ran]
        if None in with_graphs:
            yield not_recorded("ran.graphs")
        elif len(set(with_graphs)) > 1:
            names = {
                is_replayed: ", ".join(
                    cell.sample.name for cell, has in zip(alike, with_graphs, strict=True) if has is is_replayed
                )
                for is_replayed in (True, False)
            }
            launches = listed(alike, [f"{known.launches:,}" for known in ran])
            values = {"replaying": names[True], "launching": names[False], "launches": launches}
            yield Found(values, 100.0, cell_key=alike[with_graphs.index(False)].key)


@rule("warning")
@says("{who}: the allocator differs: {settings} here, but not for {others}.")
def allocator_differs(group: Sequence[MeasuredCell]) -> Iterator[Outcome]:
    """Find groups in which one framework runs with allocator settings that another lacks."""
    settings: dict[str, set[str]] = {}  # of each framework
    first = {cell.cell.backend: cell.key for cell in reversed(group)}
    for cell in group if len(first) > 1 else ():
        if cell.environment is None:
            raise not_recorded("environment")
        named = (f"{name}={value}" for name, value in cell.environment.items() if is_any(name, ALLOCATORS))
        settings.setdefault(cell.cell.backend, set()).update(named)
    for backend, known in settings.items():
        more = known - set[str].intersection(*settings.values())
        if more:
            others = ", ".join(other for other in settings if other != backend)
            values = {"settings": ", ".join(sorted(more)), "others": others}
            remedy = again("same_allocator", group, {}, **TCMALLOC)
            yield Found(values, cell_key=first[backend], remedy=remedy)
