"""What is said below the tables: findings of the machine, notes, what differs between runs, and the legend."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from kit.compare.comparison import Comparison, GroupRows, Mismatch, Note
from kit.compare.metrics import METRICS
from kit.profile.facts import fact_of, title_of
from kit.profile.fields import reason
from kit.report.audit import evidence, remedy
from kit.report.columns import LETTERS
from kit.report.plain import one_line
from kit.report.quantity import by_name, counted, several
from kit.report.sentences import ALWAYS, LOUD, NOTHING_DIFFERS, OF_COLUMNS, OF_MARKS, sentence
from kit.report.table import Loud, Table
from kit.workloads.device_operations import is_operation

# Findings about the machine, the container or the GPU: one line for all cells.
MACHINE_WIDE = ("throttled", "contention", "device_throttled", "device_shared")
# A note says it for all groups.
IN_NOTES = ("cycles_left_out",)
# More notes of one kind than these are a list nobody reads.
ALIKE_MAX = 6
# A reader of more lines than these looks them up.
WARNINGS_MAX = 3
GRADES = {"incompatible": "not comparable", "warns": "could explain a difference"}
# What makes a platform, and stands in its headline.
OF_A_PLATFORM = ("cpu.model", "cpu.cores_logical", "cpu.architecture", "device.model", "sensor.*")
# What a column shows, by its name, unless a note says it with this run's numbers.
MEANINGS = {
    "step_ns": "time per batch",
    "fit_total_ns": "training time without the first step",
    "compile_ns": "trace, compile and first step",
    "energy_per_sample_j": "joules per 1,000 samples",
    "injected_ratio": "delay that the self-test adds",
}
# What × is a ratio of, by the unit of the metric that is compared; of others it is their title.
RATIOS = {"ns": "times", "s": "times", "b": "memory", "per_1k": "joules", "s_per_1k": "CPU times"}


class Explanation(NamedTuple):
    """A finding in words."""

    evidence: str
    remedy: str | None  # what to try, without a full stop
    rule: str


def explanations(group: GroupRows) -> list[Explanation]:
    """Return what explains the group's numbers, gravest first, without a remedy that a row has tried."""
    names = {row.cell.key: row.name for row in group.rows} | {"": " · ".join(group.title)}
    variants, lines = {row.cell.variant for row in group.rows}, []
    for finding in group.findings:
        if finding.cell_key in names and finding.code not in (*MACHINE_WIDE, *IN_NOTES):
            # As `kit run --variant` takes it: NAME:env=…
            variant = "" if finding.remedy is None else str(finding.remedy.values.get("variant", ""))
            tried = None if variant.partition(":")[0] in variants else remedy(finding)
            who = one_line(names[finding.cell_key])
            lines.append(Explanation(evidence(finding, who), tried, finding.rule.replace("_", "-")))
    return lines


def machine_wide(comparison: Comparison) -> list[Explanation]:
    """Return findings about the machine, each once: how many cells have it, and the worst of them."""
    cells = {row.cell.key for row in comparison.rows}
    lines = []
    for code in MACHINE_WIDE:
        findings = [finding for group in comparison.groups for finding in group.findings if finding.code == code]
        if findings:
            who = f"{len({finding.cell_key for finding in findings})} of {counted(len(cells), 'cell')}"
            worst = max(findings, key=lambda finding: finding.rank)
            lines.append(Explanation(evidence(worst, who), remedy(worst), worst.rule.replace("_", "-")))
    return lines


def note_line(note: Note) -> str:
    """Return a note, with its reason."""
    line = ": ".join(sentence(part) for part in (note.what, note.because) if part is not None)
    return Loud(line) if note.what.code in LOUD else line


def note_lines(comparison: Comparison, marks: Set[str], *, wide: bool) -> list[str]:
    """Return the notes that are shown: those on letters whose `marks` are, and by their codes; several runs have none.

    `marks`: names of the metrics whose letters stand behind values.
    """
    letters = {
        code: f"{LETTERS[mark].strip()}  " for mark, codes in OF_MARKS.items() if mark in marks for code in codes
    }
    always = {*ALWAYS, *OF_MARKS["is_disturbed"], *letters}
    elsewhere = {code for codes in (*OF_MARKS.values(), *OF_COLUMNS.values()) for code in codes}
    by_code: dict[str, list[str]] = {}
    for note in comparison.notes:
        code = note.what.code
        if code in always or (wide and code not in elsewhere):
            by_code.setdefault(code, []).append(f"{letters.get(code, '')}{note_line(note)}")
    # Several runs have no such notes of their own.
    for mark in sorted(marks & letters.keys()):
        by_code.setdefault(mark, [f"{letters[mark]}{sentence(reason(mark))}"])
    lines = []
    for alike in by_code.values():
        rest = len(alike) - ALIKE_MAX
        lines += alike if rest <= 1 else [*alike[:ALIKE_MAX], f"{rest:,} more notes of this kind: --json lists them"]
    return lines


def legend(comparison: Comparison, tables: Sequence[Table]) -> list[tuple[str, str]]:
    """Return what explains each column, by its title, and signs, by none; a note may explain a column."""
    are_operations = all(is_operation(group.rows[0].cell) for group in comparison.groups)
    meanings = MEANINGS | ({"step_ns": "time per operation"} if are_operations else {})
    parts = []
    for name, title in {column.name: column.title for table in tables for column in table.columns}.items():
        noted = [note_line(note) for note in comparison.notes if note.what.code in OF_COLUMNS.get(name, {})]
        parts += [(title, f"{title}: {words}") for words in noted or ([meanings[name]] if name in meanings else [])]
    answers = [row[-1].words for table in tables for row in table.rows]
    metric = METRICS[comparison.by]
    paired = ", paired within rounds" if comparison.kind == "cells" else ""
    ratio = [("", f"×: ratio of {RATIOS.get(metric.unit, metric.title)}{paired}")]
    signs = [sign for sign, begin in (("±", "±"), ("[ ]", "[")) if any(begin in words for words in answers)]
    interval = [("", f"{', '.join(signs)}: 95 % confidence interval")] if signs else []
    return [*parts[:1], *(ratio if any(" × " in words for words in answers) else []), *interval, *parts[1:]]


def mismatch_lines(comparison: Comparison, *, wide: bool) -> list[str]:
    """Return what differs between runs, a line each; with `wide` also what explains nothing by itself."""
    lines, noted, warning = [], [], []
    for mismatch in comparison.mismatches:
        words = mismatch_words(mismatch)
        if mismatch.grade not in GRADES:
            noted.append(words)
        elif comparison.kind != "platforms" or mismatch.kind not in OF_A_PLATFORM:
            lines.append(f"{GRADES[mismatch.grade]}: {words}")
            warning += lines[-1:] if mismatch.grade == "warns" else []
    if len(warning) > WARNINGS_MAX and not wide:
        lines = [line for line in lines if line not in warning]
        lines.append(f"{len(warning)} facts {GRADES['warns']}: --why lists them")
    if noted and wide:
        lines.append(f"also differs: {several(noted, '; ')}")
    if not lines and comparison.kind == "runs" and wide:
        lines.append(NOTHING_DIFFERS)
    return lines


def mismatch_words(mismatch: Mismatch) -> str:
    """Return ``kernel: 6.1.0 (a), 6.6.0 (b, c)``."""
    kind, values = mismatch.kind, mismatch.values
    shown = title_of(mismatch.name) + (" before" if fact_of(mismatch.name).form == "gauge" else "")
    if kind == "cpu.flags":
        if min(len(str(value).split()) for value, _ in values) <= 1:  # not known, or the hash of a list
            return f"{shown}: not the same, and not all profiles name them"
        # In place of whole lists of CPU features, those of each that not all have.
        features = [set(str(value).split()) for value, _ in values]
        common = set.intersection(*features)
        values = [
            (f"only {several(sorted(known - common))}" if known - common else "none of these", labels)
            for known, (_, labels) in zip(features, values, strict=True)
        ]
    return one_line(f"{shown}: {several([f'{by_name(kind, value)} ({several(labels)})' for value, labels in values])}")
