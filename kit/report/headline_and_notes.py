"""The lines above and below the tables of a comparison.

headline    what was compared, and where it ran
notes       findings of the machine, what a number means, what differs between runs
legend      what columns, letters and signs mean
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from kit.compare.contradictions import COMPILED_MODES
from kit.compare.metrics import METRICS
from kit.compare.rows import Comparison, GroupRows, Headline, Mismatch, Note
from kit.profile.cell import OWN
from kit.profile.facts import BARE_METAL, fact_of, title_of
from kit.profile.fields import reason
from kit.report.audit_report import evidence, remedy
from kit.report.comparison_columns import sides_of
from kit.report.reasons_in_words import ALWAYS, LETTERS, LOUD, NOTHING_DIFFERS, OF_COLUMNS, OF_MARKS, sentence
from kit.report.report_table import Loud, Table
from kit.report.values_in_words import by_name, counted, moment, one_line, several
from kit.report.verdicts_in_words import FAILED
from kit.workloads.device_operations import OPERATIONS

# A list with more sizes is nothing to read.
SIZES_MAX = 6
PLATFORMS_LISTED_MAX = 12
DATA_NAMES = {"mnist": "MNIST", "uci_har": "UCI-HAR"}
# What platforms may differ in apart from the device. The headline names it where it differs from the baseline's.
NAMED_ABOVE = {"workload": "", "task": "", "batch": "batch ", "precision": "", "feed": "feed "}
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
PLATFORM_FACTS = ("cpu.model", "cpu.cores_logical", "cpu.architecture", "device.model", "sensor.*")
# What a column shows, by its name, unless a note says it with this run's numbers.
MEANINGS = {
    "step_ns": "time per batch",
    "sustained_ns": "time per batch in the long energy block: seconds of one program",
    "sustained_clock_mhz": "of the device in the long energy block",
    "fit_total_ns": "training time without the first step",
    "compile_ns": "trace, compile and first step",
    "energy_per_sample_j": "joules per 1,000 samples",
    "injected_ratio": "delay that the self-test adds",
}
# What × is a ratio of, by the unit of the metric that is compared; of others it is their title.
RATIOS = {"ns": "times", "s": "times", "b": "memory", "per_1k": "joules", "s_per_1k": "CPU times"}


def headline(comparison: Comparison, titles: Mapping[str, str], *, wide: bool = False) -> list[str]:
    """Return what was compared: two lines for one run, a line a side for several; with `wide` the rule, too."""
    rule, heads = f" (rule {comparison.rule})" if wide else "", comparison.headlines
    if comparison.kind == "runs" or (comparison.sides and len(heads) > 1):
        short = sides_of(comparison)[1] if comparison.kind == "runs" else {}
        names = [f"{short[head.label]}  {head.label}" if head.label in short else head.label for head in heads]
        ran = [" · ".join([head.suite, *_ran(head), f"kit {head.kit}"]) for head in heads[:SIZES_MAX]]
        lines = [f"{one_line(f'{name}: {words}')}{rule}" for name, words in zip(names, ran, strict=False)]
        more = len(heads) - len(lines)
        return [*lines, f"and {more} more"] if more else lines
    axes = {axis: list(dict.fromkeys(value for head in heads for value in head.axes[axis])) for axis in heads[0].axes}
    are_programs = axes["precision"] == [OWN]
    are_operations = not are_programs and {*axes["workload"]} <= OPERATIONS.keys()
    noun = "program" if are_programs else "operation" if are_operations else "network"
    crossed = [_counted_or_named(axes["workload"], noun)]
    if not are_programs:
        crossed.append(_counted_or_named([titles.get(name, name) for name in axes["backend"]], "framework"))
    # A program that takes no task is planned as one that trains, whatever it does.
    crossed += [] if are_operations or (are_programs and axes["task"] == ["train"]) else ["+".join(axes["task"])]
    data = dict.fromkeys(name for head in heads for name in head.data)
    what = [
        " × ".join(crossed) + ("" if heads[1:] else f" on {'+'.join(axes['device'])}"),
        "" if axes["devices"] == ["1"] else f"{_sizes(axes['devices'])} devices",
        "" if are_operations or (are_programs and axes["batch"] == ["1"]) else f"batch {_sizes(axes['batch'])}",
        ", ".join(precision for precision in axes["precision"] if precision != OWN),
        _modes(axes["compile_mode"]) if "gpu" in axes["device"] and not are_operations and not are_programs else "",
        ", ".join(DATA_NAMES.get(name, name) for name in data),
        counted(len(heads), "platform") if heads[1:] else counted(heads[0].rounds, "round"),
    ]
    listed = ", ".join(part for part in what if part)
    if not heads[1:]:
        (head,) = heads
        label = f"{head.given_label} · " if head.given_label else ""
        where = " · ".join([*device_words(head), moment(head.created), f"kit {head.kit}{rule}"])
        return [one_line(f"{label}{head.suite}: {listed}"), one_line(where)]
    suites = " and ".join(dict.fromkeys(name for head in heads for name in head.suite.split(" and ")))
    lines = [one_line(f"{suites}: {listed}{rule}")]
    for head in heads[:PLATFORMS_LISTED_MAX]:
        # In what the platform differs from the first.
        apart = [
            f"{prefix}{several(head.axes[axis])}"
            for axis, prefix in NAMED_ABOVE.items()
            if sorted(head.axes[axis]) != sorted(heads[0].axes[axis])
        ]
        apart += [f"data {several(head.data)}"] if sorted(head.data) != sorted(heads[0].data) else []
        lines.append(one_line(f"{head.label}: {' · '.join(_ran(head, apart))}"))
    more = len(heads) - PLATFORMS_LISTED_MAX
    return [*lines, f"and {counted(more, 'platform')} more"] if more > 0 else lines


def _modes(modes: Sequence[str]) -> str:
    """Return ``compiled (xla, compile, jit) and graph, eager``: on a GPU that decides more than the framework."""
    compiled = [mode for mode in modes if mode in COMPILED_MODES]
    others = ", ".join(mode for mode in modes if mode not in COMPILED_MODES)
    return " and ".join(filter(None, [f"compiled ({', '.join(compiled)})" if compiled else "", others]))


def _ran(head: Headline, apart: Sequence[str] = ()) -> list[str]:
    """Return on which devices a side ran, what is `apart`, ``3 runs of 4 to 8 rounds``, and when."""
    more = f" to {head.rounds_max}" if head.rounds_max > head.rounds else ""
    rounds = f"{counted(head.profiles, 'run')} of {head.rounds}{more} {'round' if head.rounds_max == 1 else 'rounds'}"
    return [*device_words(head), *apart, rounds, moment(head.created)]


def device_words(head: Headline) -> list[str]:
    """Return the devices of a run with their buses and counts: ``NVIDIA H100 80GB HBM3 (bus 0000:1b:00, 1 of 8)``.

    The processor that feeds an accelerator stands behind it.
    """
    words = []
    for device in head.devices:
        details = [f"bus {', '.join(device.device_ids)}"] if device.device_ids else []
        details += [f"{device.used} of {device.present}"] if device.present > device.used else []
        if device.model != head.cpu:
            words.append(device.model + (f" ({', '.join(details)})" if details else ""))
    is_guest = head.hypervisor not in (None, BARE_METAL)
    cpus = f"{head.cpus} vCPUs ({head.hypervisor})" if is_guest else counted(head.cpus or 0, "CPU")
    return [*words, f"{head.cpu}, {cpus}"]


def _sizes(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= SIZES_MAX else f"{values[0]} to {values[-1]} ({len(values)} sizes)"


def _counted_or_named(names: Sequence[str], noun: str) -> str:
    return names[0] if len(names) == 1 else counted(len(names), noun)


class Explanation(NamedTuple):
    """A finding in words."""

    evidence: str
    remedy: str | None  # what to try, without a full stop
    rule: str


def explanations(group: GroupRows, file: str = "") -> list[Explanation]:
    """Return what explains the group's numbers, gravest first; `file` is the profile, for commands of remedies."""
    names, lines = {row.cell.key: row.name for row in group.rows} | {"": " · ".join(group.title)}, []
    for finding in group.findings:
        if finding.cell_key in names and finding.code not in (*MACHINE_WIDE, *IN_NOTES):
            who = one_line(names[finding.cell_key])
            lines.append(Explanation(evidence(finding, who), remedy(finding, file), finding.rule.replace("_", "-")))
    return lines


def machine_wide(comparison: Comparison, file: str = "") -> list[Explanation]:
    """Return findings about the machine, each once: how many cells have it, and the worst of them."""
    cells = {row.cell.key for row in comparison.rows}
    lines = []
    for code in MACHINE_WIDE:
        findings = [finding for group in comparison.groups for finding in group.findings if finding.code == code]
        if findings:
            who = f"{len({finding.cell_key for finding in findings})} of {counted(len(cells), 'cell')}"
            worst = max(findings, key=lambda finding: finding.rank)
            lines.append(Explanation(evidence(worst, who), remedy(worst, file), worst.rule.replace("_", "-")))
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
    are_operations = all(group.are_operations for group in comparison.groups)
    are_runs = all(row.cell.precision == OWN and row.cell.batch == 1 for row in comparison.rows)
    meanings = MEANINGS | (
        {"step_ns": f"time per {'run' if are_runs else 'operation'}"} if are_operations or are_runs else {}
    )
    parts = []
    for name, title in {column.name: column.title for table in tables for column in table.columns}.items():
        noted = [note_line(note) for note in comparison.notes if note.what.code in OF_COLUMNS.get(name, {})]
        parts += [(title, f"{title}: {words}") for words in noted or ([meanings[name]] if name in meanings else [])]
    # The text of an error may have brackets of its own.
    answers = [words for table in tables for row in table.rows if not (words := row[-1].words).startswith(FAILED)]
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
        elif comparison.kind != "platforms" or mismatch.kind not in PLATFORM_FACTS:
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
