"""From profiles to a comparison: each cell beside its baseline, with a verdict where one can be had.

one profile        cell ── same work, other backend ──► the baseline backend's cell     paired by round
several profiles   cell ── same cell key ──────────────► the baseline profile's cell     Welch
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from kit.backends.catalog import CATALOG
from kit.compare.cell_differences import CellDifference, cell_differences
from kit.compare.differences import differences
from kit.compare.gate import LabelledProfile, Pairs, check_comparable, data_of, pairs_of, refusal, work_of
from kit.compare.graded import several as listed
from kit.compare.host_band import band_of
from kit.compare.notes import headline, notes
from kit.compare.rows import Comparison, Row, Versus
from kit.errors import KitError
from kit.profile.brief import AnyCell, launches_of
from kit.profile.cell import Cell
from kit.stats.difference import Difference, paired_differences, welch_differences
from kit.stats.false_discovery import adjusted_p
from kit.stats.verdict import Judgement, judge_all, noise_band

Medians = dict[int, dict[int, float]]  # id of a cell's result -> round -> launch median


class UnknownBaselineError(KitError):
    """A baseline that is not there; one line that lists those that are."""


class _Entry(NamedTuple):
    """A cell, and the cell it is measured against (null: it has none; itself: it is the baseline)."""

    label: str
    result: AnyCell
    baseline: AnyCell | None
    refused: str | None  # why the two may not be compared; null: they may, or `--force` compares them
    forced: str | None  # the same, where `--force` compares them


def compare(
    profiles: Sequence[LabelledProfile],
    baseline: str | None = None,
    host_band: float | None = None,
    *,
    force: bool = False,
) -> Comparison:
    """Compare the backends of one profile, or the same cells of several.

    Args:
        profiles: distinct labels with their profiles, at least one.
        baseline: a backend of the one profile, or the label of one of several; by default the first there is.
        host_band: the host's A/A band as a relative difference; by default the widest that the profiles carry.
        force: also compare cells that the gate would keep apart; their rows say what differs.

    Raises:
        UnknownBaselineError: `baseline` is not one of the choices, which the message lists.
        NotComparableError: several profiles without a comparable pair of cells.
    """
    several = len(profiles) > 1
    pairs: Pairs = {}
    if several:
        own = baseline_of(profiles, baseline)
        chosen: str | None = own[0]
        pairs = pairs_of(profiles, own)
        check_comparable(profiles, own, pairs, force=force)
        entries = _against_profile(profiles, own, pairs, force=force)
    else:
        chosen, entries = _against_backend(profiles, baseline, force=force)
    band = noise_band(band_of(profiles) if host_band is None else host_band)
    graded = differences(profiles, chosen, pairs) if chosen is not None and several else []
    rows = _rows(entries, paired=not several, band=band)
    return Comparison(
        kind="profiles" if several else "backends",
        baseline=chosen if rows else None,
        band=band,
        headline=headline(profiles),
        rows=rows,
        notes=notes(profiles, rows, chosen, band, graded),
        differences=graded,
    )


def _entry(
    label: str, result: AnyCell, baseline: AnyCell | None, found: Sequence[CellDifference], *, force: bool
) -> _Entry:
    blocked = refusal(found)
    return _Entry(label, result, baseline, None if force else blocked, blocked if force else None)


def baseline_of(profiles: Sequence[LabelledProfile], baseline: str | None) -> LabelledProfile:
    """The profile labelled `baseline`; by default the first.

    Raises:
        UnknownBaselineError: no profile is labelled so.
    """
    labels = [label for label, _ in profiles]
    if baseline is not None and baseline not in labels:
        raise UnknownBaselineError(f"unknown baseline {baseline!r}; choose one of: {listed(labels)}")
    return profiles[labels.index(baseline) if baseline is not None else 0]


def _against_profile(
    profiles: Sequence[LabelledProfile], own: LabelledProfile, pairs: Pairs, *, force: bool
) -> list[_Entry]:
    by_label = {label: {result.key: result for result in profile.cells} for label, profile in profiles}
    order = [own[0], *(label for label, _ in profiles if label != own[0])]
    any_of: dict[str, AnyCell] = {}
    for label in order:
        for key, result in by_label[label].items():
            any_of.setdefault(key, result)
    baselines = by_label[own[0]]
    return [
        _entry(
            label,
            by_label[label][result.key],
            baselines.get(result.key),
            pairs.get((label, result.key), ()),
            force=force,
        )
        for result in _in_table_order([*any_of.values()])
        for label in order
        if result.key in by_label[label]
    ]


def _against_backend(
    profiles: Sequence[LabelledProfile], baseline: str | None, *, force: bool
) -> tuple[str | None, list[_Entry]]:
    label, profile = profiles[0]
    backends = sorted({result.cell.backend for result in profile.cells}, key=_backend_order)
    if baseline is not None and baseline not in backends:
        choices = ", ".join(backends) or "none, the profile has no cells"
        raise UnknownBaselineError(f"unknown baseline {baseline!r}; choose one of: {choices}")
    chosen = baseline if baseline is not None else next(iter(backends), None)
    results = _in_table_order(profile.cells)
    baselines: dict[object, AnyCell] = {}
    for result in results:
        if result.cell.backend == chosen:
            baselines.setdefault(work_of(result.cell), result)
    entries = []
    for result in results:
        theirs = baselines.get(work_of(result.cell))
        found = []
        if theirs is not None and theirs is not result:
            found = cell_differences(launches_of(result), launches_of(theirs), like_hardware=True)
        entries.append(_entry(label, result, theirs, found, force=force))
    return chosen, entries


def _backend_order(backend: str) -> tuple[int, str]:
    names = list(CATALOG)
    return (names.index(backend) if backend in names else len(names), backend)


def _mode_order(cell: Cell) -> int:
    """The backend's default compile mode first."""
    modes = CATALOG[cell.backend].compile_modes if cell.backend in CATALOG else ()
    return modes.index(cell.compile_mode) if cell.compile_mode in modes else len(modes)


def _in_table_order(results: Sequence[AnyCell]) -> list[AnyCell]:
    """Workloads and tasks as the suite has them; backends and compile modes as the catalogue has them."""
    works = list(dict.fromkeys(work_of(result.cell) for result in results))
    workloads = {workload: place for place, workload in enumerate(dict.fromkeys(work[0] for work in works))}
    works.sort(key=lambda work: workloads[work[0]])  # stable: tasks stay in order within a workload
    places = {work: place for place, work in enumerate(works)}
    return sorted(
        results,
        key=lambda r: (places[work_of(r.cell)], _backend_order(r.cell.backend), _mode_order(r.cell)),
    )


def _rows(entries: Sequence[_Entry], *, paired: bool, band: float) -> list[Row]:
    """All rows together, as what their numbers cost is mostly paid once a table."""
    medians = {id(entry.result): medians_of(entry.result) for entry in entries}
    found = _differences(entries, medians, paired=paired)
    known = iter(adjusted_p([difference.p for difference in found if difference is not None]))
    adjusted = [None if difference is None else next(known) for difference in found]
    judgements = judge_all(found, adjusted, band)
    return [
        _row(entry, medians, _versus(difference, p, judgement, _per_launch(entry, difference), paired=paired))
        for entry, difference, p, judgement in zip(entries, found, adjusted, judgements, strict=True)
    ]


def _differences(entries: Sequence[_Entry], medians: Medians, *, paired: bool) -> list[Difference | None]:
    sides = [_sides(entry, medians) for entry in entries]
    if paired:
        return paired_differences(sides)
    return welch_differences([([*ours.values()], [*theirs.values()]) for ours, theirs in sides])


def _sides(entry: _Entry, medians: Medians) -> tuple[dict[int, float], dict[int, float]]:
    """The launch medians of the two; nothing where they are not to be compared."""
    if entry.baseline is None or entry.baseline is entry.result or entry.refused is not None:
        return {}, {}
    return medians[id(entry.result)], medians[id(entry.baseline)]


def medians_of(result: AnyCell) -> dict[int, float]:
    """Round -> launch median, of the launches that have one."""
    return {s.round: s.median_ns for s in result.launch_summaries if s.median_ns is not None and s.median_ns > 0}


def _per_launch(entry: _Entry, difference: Difference | None) -> float:
    """How many launches each side made for one that counted: not every one is steady, and pairs take two that are."""
    if difference is None or entry.baseline is None:
        return 1.0
    return max(launches_of(side).made for side in (entry.result, entry.baseline)) / difference.launches


def _versus(
    difference: Difference | None, p_adjusted: float | None, judgement: Judgement, per_launch: float, *, paired: bool
) -> Versus:
    if difference is None:
        return Versus(verdict=judgement.verdict, paired=paired)
    wanted = judgement.launches_to_settle
    return Versus(
        verdict=judgement.verdict,
        time_ratio=difference.ratio,
        time_ratio_low=difference.low,
        time_ratio_high=difference.high,
        p=difference.p,
        p_adjusted=p_adjusted,
        launches=difference.launches,
        paired=difference.paired,
        launches_to_settle=None if wanted is None else math.ceil(wanted * max(1.0, per_launch)),
    )


def _row(entry: _Entry, medians: Medians, versus: Versus) -> Row:
    label, result, baseline = entry.label, entry.result, entry.baseline
    is_baseline = baseline is result
    no_verdict = None if is_baseline else _no_verdict(entry, medians)
    launches = len(medians[id(result)])
    return Row(
        profile=label,
        cell=result.cell,
        status=result.status,
        problem=None if launches else _problem(result),
        summary=result.summary,
        launches=launches,
        launches_seen=launches_of(result).made,
        data=data_of(result),
        parity=result.parity,
        accuracy_updates=launches_of(result).accuracy_updates,
        is_baseline=is_baseline,
        versus=None if is_baseline or no_verdict is not None else versus,
        no_verdict=no_verdict,
        forced=entry.forced,
    )


def _no_verdict(entry: _Entry, medians: Medians) -> str | None:
    if entry.baseline is None:
        return "no baseline for this cell"
    if not medians[id(entry.result)]:
        return "no steady number"
    if not medians[id(entry.baseline)]:
        return "the baseline has no steady number"
    return None if entry.refused is None else f"not compared: {entry.refused}"


def _problem(result: AnyCell) -> str:
    """In place of a step time: why the cell has none."""
    if result.failures:
        return f"failed {result.failures[0].in_words}"
    if not launches_of(result).made:
        return "incomplete: no launch finished"
    return result.summary.reasons.get("step_ns", "no steady state")
