"""From profiles to a comparison: each cell beside its baseline, with a verdict where one can be had.

one profile        cell ── same work, other backend ──► the baseline backend's cell     paired by round
several profiles   cell ── same cell key ──────────────► the baseline profile's cell     Welch
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kit.backends.catalog import CATALOG
from kit.compare.gate import LabelledProfile, check_comparable, data_of, refusal, work_of
from kit.compare.notes import headline, notes
from kit.compare.rows import Comparison, Row, Versus
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.schema import CellResult
from kit.stats.difference import Difference, paired_difference, welch_difference
from kit.stats.false_discovery import adjusted_p
from kit.stats.verdict import judge, noise_band


class UnknownBaselineError(KitError):
    """A baseline that is not there; one line that lists those that are."""


class _Entry(NamedTuple):
    """A cell, and the cell it is measured against (null: it has none; itself: it is the baseline)."""

    label: str
    result: CellResult
    baseline: CellResult | None


def compare(
    profiles: Sequence[LabelledProfile], baseline: str | None = None, host_band: float | None = None
) -> Comparison:
    """Compare the backends of one profile, or the same cells of several.

    Args:
        profiles: distinct labels with their profiles, at least one.
        baseline: a backend of the one profile, or the label of one of several; by default the first there is.
        host_band: the host's A/A band as a relative difference, where it is known.

    Raises:
        UnknownBaselineError: `baseline` is not one of the choices, which the message lists.
        NotComparableError: several profiles without a comparable pair of cells.
    """
    several = len(profiles) > 1
    choose = _against_profile if several else _against_backend
    chosen, entries = choose(profiles, baseline)
    band = noise_band(host_band)
    rows = _rows(entries, paired=not several, band=band)
    return Comparison(
        kind="profiles" if several else "backends",
        baseline=chosen if rows else None,
        band=band,
        headline=headline(profiles),
        rows=rows,
        notes=notes(profiles, rows, chosen, band),
    )


def _against_profile(profiles: Sequence[LabelledProfile], baseline: str | None) -> tuple[str, list[_Entry]]:
    labels = [label for label, _ in profiles]
    if baseline is not None and baseline not in labels:
        raise UnknownBaselineError(f"unknown baseline {baseline!r}; choose one of: {', '.join(labels)}")
    chosen = baseline if baseline is not None else labels[0]
    check_comparable(profiles, profiles[labels.index(chosen)])
    by_label = {label: {result.key: result for result in profile.cells} for label, profile in profiles}
    order = [chosen, *(label for label in labels if label != chosen)]
    any_of: dict[str, CellResult] = {}
    for label in order:
        any_of = by_label[label] | any_of
    entries = [
        _Entry(label, by_label[label][result.key], by_label[chosen].get(result.key))
        for result in _in_table_order([*any_of.values()])
        for label in order
        if result.key in by_label[label]
    ]
    return chosen, entries


def _against_backend(profiles: Sequence[LabelledProfile], baseline: str | None) -> tuple[str | None, list[_Entry]]:
    label, profile = profiles[0]
    backends = sorted({result.cell.backend for result in profile.cells}, key=_backend_order)
    if baseline is not None and baseline not in backends:
        choices = ", ".join(backends) or "none, the profile has no cells"
        raise UnknownBaselineError(f"unknown baseline {baseline!r}; choose one of: {choices}")
    chosen = baseline if baseline is not None else next(iter(backends), None)
    results = _in_table_order(profile.cells)
    baselines: dict[object, CellResult] = {}
    for result in results:
        if result.cell.backend == chosen:
            baselines.setdefault(work_of(result.cell), result)
    return chosen, [_Entry(label, result, baselines.get(work_of(result.cell))) for result in results]


def _backend_order(backend: str) -> tuple[int, str]:
    names = list(CATALOG)
    return (names.index(backend) if backend in names else len(names), backend)


def _mode_order(cell: Cell) -> int:
    """The backend's default compile mode first."""
    modes = CATALOG[cell.backend].compile_modes if cell.backend in CATALOG else ()
    return modes.index(cell.compile_mode) if cell.compile_mode in modes else len(modes)


def _in_table_order(results: Sequence[CellResult]) -> list[CellResult]:
    """Workloads and tasks as the suite has them; backends and compile modes as the catalogue has them."""
    works = list(dict.fromkeys(work_of(result.cell) for result in results))
    workloads = list(dict.fromkeys(work[0] for work in works))
    works.sort(key=lambda work: workloads.index(work[0]))  # stable: tasks stay in order within a workload
    return sorted(
        results,
        key=lambda r: (works.index(work_of(r.cell)), _backend_order(r.cell.backend), _mode_order(r.cell)),
    )


def _rows(entries: Sequence[_Entry], *, paired: bool, band: float) -> list[Row]:
    differences = [_difference(entry, paired=paired) for entry in entries]
    known = [difference for difference in differences if difference is not None]
    adjusted = iter(adjusted_p([difference.p for difference in known]))
    return [
        _row(entry, _versus(difference, next(adjusted) if difference is not None else None, band))
        for entry, difference in zip(entries, differences, strict=True)
    ]


def _difference(entry: _Entry, *, paired: bool) -> Difference | None:
    if entry.baseline is None or entry.baseline is entry.result or refusal(entry.result, entry.baseline):
        return None
    ours, theirs = _medians(entry.result), _medians(entry.baseline)
    return paired_difference(ours, theirs) if paired else welch_difference([*ours.values()], [*theirs.values()])


def _medians(result: CellResult) -> dict[int, float]:
    """Round -> launch median, of the launches that have one."""
    return {s.round: s.median_ns for s in result.launch_summaries if s.median_ns is not None and s.median_ns > 0}


def _versus(difference: Difference | None, p_adjusted: float | None, band: float) -> Versus:
    judgement = judge(difference, p_adjusted, band)
    if difference is None:
        return Versus(verdict=judgement.verdict)
    return Versus(
        verdict=judgement.verdict,
        time_ratio=difference.ratio,
        time_ratio_low=difference.low,
        time_ratio_high=difference.high,
        p=difference.p,
        p_adjusted=p_adjusted,
        launches=difference.launches,
        paired=difference.paired,
        launches_to_settle=judgement.launches_to_settle,
    )


def _row(entry: _Entry, versus: Versus) -> Row:
    label, result, baseline = entry
    is_baseline = baseline is result
    no_verdict = None if is_baseline else _no_verdict(result, baseline)
    return Row(
        profile=label,
        cell=result.cell,
        status=result.status,
        problem=_problem(result),
        summary=result.summary,
        launches=len(_medians(result)),
        launches_seen=len(result.launches),
        data=data_of(result),
        parity=result.parity,
        accuracy_updates=_accuracy_updates(result),
        is_baseline=is_baseline,
        versus=None if is_baseline or no_verdict is not None else versus,
        no_verdict=no_verdict,
    )


def _accuracy_updates(result: CellResult) -> int | None:
    evaluations = [launch.evaluation for launch in result.launches if launch.evaluation is not None]
    counts = {evaluation.updates for evaluation in evaluations if evaluation.accuracy is not None}
    return counts.pop() if len(counts) == 1 else None


def _no_verdict(result: CellResult, baseline: CellResult | None) -> str | None:
    if baseline is None:
        return "no baseline for this cell"
    if not _medians(result):
        return "no steady number"
    if not _medians(baseline):
        return "the baseline has no steady number"
    refused = refusal(result, baseline)
    return None if refused is None else f"not compared: {refused}"


def _problem(result: CellResult) -> str | None:
    """In place of a step time: why the cell has none."""
    if _medians(result):
        return None
    if result.failures:
        return f"failed {result.failures[0].in_words}"
    if not result.launches:
        return "incomplete: no launch finished"
    return result.summary.reasons.get("step_ns", "no steady state")
