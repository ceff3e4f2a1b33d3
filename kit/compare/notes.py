"""What has to be said beside a table so that nobody reads more into it than it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kit.compare.counted import counted, percent
from kit.compare.differences import machines
from kit.compare.gate import LabelledProfile
from kit.compare.graded import GradedDifference, several
from kit.compare.host_band import band_notes
from kit.compare.marks import marks_of
from kit.compare.precision_note import precision_notes
from kit.compare.rows import Row
from kit.compare.unpaired import paired_rows, unpaired_notes
from kit.profile.brief import AnyCell, AnyProfile, launches_of
from kit.stats.verdict import LAUNCHES_FOR_VERDICT, NOISE_BAND_MIN

# More notes of one kind than these are a list nobody reads.
NOTES_ALIKE_MAX = 6


def headline(profiles: Sequence[LabelledProfile]) -> list[str]:
    """One line a profile: label, suite, machine, when."""
    return [
        " · ".join((f"{label}: suite {profile.suite.name}", *_machine(profile), profile.created))
        for label, profile in profiles
    ]


def notes(
    profiles: Sequence[LabelledProfile],
    rows: Sequence[Row],
    baseline: str | None,
    band: float,
    differences: Sequence[GradedDifference] = (),
) -> list[str]:
    """Sentences to print below the table, most important first."""
    many = len(profiles) > 1
    shown = paired_rows(rows) if many else rows
    return [
        *_no_cells(rows),
        *_few(_unfinished(profiles)),
        *_few(_failed_launches(profiles)),
        *_forced(rows),
        *(unpaired_notes(rows) if many else []),
        *_data_note(shown),
        *_launches_note(shown),
        *_few(precision_notes(profiles)),
        *_marks_note(profiles),
        *_parity_note(rows),
        *_accuracy_note(shown),
        *_few(_skipped(profiles)),
        *(_differences_note(profiles, differences) if many else []),
        *_machines_note(profiles),
        *(band_notes(profiles) if rows else []),
        *(_reading_note(baseline, band, several=many) if rows else []),
    ]


def _few(notes: list[str]) -> list[str]:
    """Of notes that every one of thousands of profiles may have, the first and how many more."""
    rest = len(notes) - NOTES_ALIKE_MAX
    return notes if rest <= 1 else [*notes[:NOTES_ALIKE_MAX], f"… and {rest:,} more notes like the one above."]


def _machine(profile: AnyProfile) -> list[str]:
    return [profile.identity.cpu.model, *(accelerator.model for accelerator in profile.identity.accelerators)]


def _no_cells(rows: Sequence[Row]) -> list[str]:
    return [] if rows else ["There are no cells to show."]


def _unfinished(profiles: Sequence[LabelledProfile]) -> list[str]:
    return [
        f"{label} is not complete, some launches are missing: `kit run --resume --out` that file goes on with it."
        for label, profile in profiles
        if profile.interrupted
    ]


def _forced(rows: Sequence[Row]) -> list[str]:
    """One line for each difference that `--force` passed over."""
    keys_of: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.forced is not None:
            keys_of.setdefault(row.forced, {})[f"{row.profile}: {row.cell.key}"] = None
    return [
        f"FORCED: {words} ({several(list(keys))}). The gate would not compare these." for words, keys in keys_of.items()
    ]


def _failed_launches(profiles: Sequence[LabelledProfile]) -> list[str]:
    """Of cells that have a number all the same; a cell without one carries its failure in its row."""
    return [
        f"{label}: {len(result.failures)} of {counted(launches_of(result).made, 'launch')} of {result.key} "
        f"failed {result.failures[0].in_words}"
        for label, profile in profiles
        for result in profile.cells
        if result.failures and result.summary.step_ns is not None
    ]


def _data_note(rows: Sequence[Row]) -> list[str]:
    names = {row.data for row in rows if row.data is not None}
    if names == {"mnist"}:
        return ["Data: MNIST."]
    if names == {"synthetic"}:
        return ["SYNTHETIC DATA: same shapes as MNIST, made up. Times count; accuracy does not exist."]
    if names:
        kept_apart = "" if any(row.forced is not None for row in rows) else " The two are not compared."
        return [f"MIXED DATA: some rows ran on SYNTHETIC data, others on MNIST.{kept_apart}"]
    return []


def _launches_note(rows: Sequence[Row]) -> list[str]:
    counts = [row.launches for row in rows if row.launches]
    if not counts:
        return []
    count = _range(counts)
    if min(counts) < LAUNCHES_FOR_VERDICT:
        return [f"{count} a cell: fewer than {LAUNCHES_FOR_VERDICT} is a look, not a verdict."]
    said = [f"{count} a cell, each a fresh process."]
    # Launches of rounds in which only one of two cells reached a steady state make no pair.
    pairs = [row.versus.launches for row in rows if row.versus is not None and row.versus.paired]
    few = sum(pair < LAUNCHES_FOR_VERDICT for pair in pairs)
    if few:
        said.append(
            f"{counted(few, 'verdict')} from fewer than {LAUNCHES_FOR_VERDICT} common rounds: a look, not a verdict."
        )
    return said


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return counted(low, "launch") if low == high else f"{low} to {counted(high, 'launch')}"


def _marks_note(profiles: Sequence[LabelledProfile]) -> list[str]:
    results: list[AnyCell] = [result for _, profile in profiles for result in profile.cells]
    marked = [marks for result in results for marks in marks_of(result).values()]
    counts = Counter(mark for marks in marked for mark in marks)
    if not counts:
        return []
    finished = sum(len(launches_of(result).finished) for result in results)
    kinds = ", ".join(f"{mark} {count}" for mark, count in counts.most_common())
    return [f"Marked launches: {len(marked)} of {finished} ({kinds}); `kit show` says which."]


def _parity_note(rows: Sequence[Row]) -> list[str]:
    judged = [row.parity for row in rows if row.parity is not None and row.parity.agrees is not None]
    apart = [row for row in rows if row.parity is not None and row.parity.agrees is False]
    if apart:
        keys = ", ".join(dict.fromkeys(row.cell.key for row in apart))
        return [f"PARITY FAILED: these cells did not compute the losses that most of the others did: {keys}."]
    if not judged:
        return ["Parity was not shown: no two backends recorded losses for the same work."] if rows else []
    largest = max((p.max_relative_difference for p in judged if p.max_relative_difference is not None), default=0.0)
    not_judged = len(rows) - len(judged)
    rest = f" {not_judged} had nothing to agree with." if not_judged else ""
    return [
        f"Parity: the first {judged[0].steps} losses of {counted(len(judged), 'cell')} agree across backends within "
        f"{judged[0].tolerance:g}; largest relative difference {largest:.1g}.{rest}"
    ]


def _accuracy_note(rows: Sequence[Row]) -> list[str]:
    """Accuracies compare only after the same amount of training."""
    scored = [row for row in rows if row.summary.accuracy is not None]
    if not scored:
        return []
    if any(row.accuracy_updates is None for row in scored):
        return ["Accuracies are after unequal or unknown amounts of training: do not compare them."]
    counts = sorted({row.accuracy_updates for row in scored if row.accuracy_updates is not None})
    if len(counts) == 1:
        return [f"Accuracy after {counted(counts[0], 'update')}."]
    return [f"Accuracies are after {counts[0]:,} to {counts[-1]:,} updates: do not compare them."]


def _skipped(profiles: Sequence[LabelledProfile]) -> list[str]:
    return [
        f"{label}: {skipped.backend} was skipped: {skipped.reason}"
        for label, profile in profiles
        for skipped in profile.suite.skipped
    ]


def _differences_note(profiles: Sequence[LabelledProfile], differences: Sequence[GradedDifference]) -> list[str]:
    """What warns in a line each, what is only noted in one line together; what blocks is in its rows."""
    ids = {profile.id for _, profile in profiles}
    same = ["The same run was given more than once."] if len(ids) < len(profiles) else []
    if not differences:
        return [*same, "As far as recorded, machine, software and settings are the same in all profiles."]
    warns = [f"Could explain a difference: {one.in_words}." for one in differences if one.grade == "warns"]
    noted = [one.in_words for one in differences if one.grade == "noted"]
    return [*same, *warns, *([f"Also differs: {'; '.join(noted)}."] if noted else [])]


def _machines_note(profiles: Sequence[LabelledProfile]) -> list[str]:
    count = machines(profiles)
    if count == 1:
        return []
    return [f"{count} machines are n = 1 each: intervals cover launches on these machines, not the kind of machine."]


def _same(band: float) -> str:
    if band <= NOISE_BAND_MIN:
        return f"Same: surely within {100 * NOISE_BAND_MIN:g} %."
    return f"What lies within the band of {percent(100 * band)} is unresolved, however narrow its interval."


def _reading_note(baseline: str | None, band: float, *, several: bool) -> list[str]:
    how = "two independent runs (Welch)" if several else "launches of the same round (paired)"
    return [
        "Brackets are 95 % intervals over launches. "
        f"Verdicts are on step time against {baseline}, from {how}, adjusted for the number of rows. "
        f"{_same(band)} Unresolved (needs ~n): about n launches a side would tell."
    ]
