"""A comparison as a report: a table a group, its sentences, what differs between runs, and what else has to be said."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, NamedTuple

from kit.compare.rows import Comparison, GroupRows, Headline, Mismatch, Note, Row
from kit.profile.cell import OWN
from kit.profile.facts import EFFECTS, fact_of, title_of
from kit.profile.reason import Value, reason
from kit.report.answer import answer
from kit.report.audit import evidence, remedy
from kit.report.columns import HIDES, LETTERS, MEANINGS, NAME_MAX, OBSERVED, STYLES, Shown, columns_of
from kit.report.comparison_records import cases, document, records
from kit.report.conclusions import group_sentences
from kit.report.plain import one_line
from kit.report.platforms import device_words, platform_lines, platform_tables, runs_words
from kit.report.quantity import by_name, counted, moment, several
from kit.report.sentences import sentence
from kit.report.table import Cell, Column, Later, Report, Table, plain_table
from kit.workloads.operations import OPERATIONS, is_operation

if TYPE_CHECKING:
    from kit.audit.finding import Finding

NAME = "kit compare"
# A longer name, of a cell and whose it is, may be cut in each row: a letter stands for the side.
LABELLED_MAX = 18
ROWS_MAX = 40
# Findings about the machine, the container or the GPU: one line for all cells.
MACHINE_WIDE = ("throttled", "contention", "device_throttled", "device_shared")
# A note says it for all groups.
IN_NOTES = ("cycles_left_out",)
# Codes, or their beginnings, of the notes of the default table. Each says that a number or a verdict means less than it
# seems to, or that something the user asked for is missing. All others confirm or describe: --wide has them.
# fmt: off
NEVER_HIDDEN = (
    "no_clean_round", "no_round_alone", "contended_", "disturbed_cycles_count", "parity_differs", "data_synthetic",
    "interrupted", "launches_failed", "skipped", "images_same", "energy_modelled", "energy_refused", "float32_on_tpu",
    "device_idle", "other_host", "same_run", "runs_", "clock_set_back", "sequential", "own_programs",
    "joules_of_the_device", "energy_not_reached", "spread_assumed", "joules_of_boards", "joules_of_several",
    "computed_times", "not_together",
)
# fmt: on
# A note that begins so is the legend of a column.
COLUMNS_EXPLAINED = ("J/1k: ", "CPU s/1k: ", "cost/1M: ", "median: ", "efficiency: ", "all-reduce: ", "time/sample: ")
# A note that explains a letter stands where the letter is shown.
LETTERS_OF_NOTES = {
    **{code: letter for code, letter in LETTERS.items() if code != "is_disturbed"},
    **dict.fromkeys(("no_clean_round", "no_round_alone"), LETTERS["is_disturbed"]),
}
# More notes of one kind than these are a list nobody reads.
ALIKE_MAX = 6
# A list with more sizes is nothing to read.
SIZES_MAX = 6
DATA_NAMES = {"mnist": "MNIST", "uci_har": "UCI-HAR"}
# What makes a platform, and stands in its headline.
OF_A_PLATFORM = ("cpu.model", "cpu.cores_logical", "cpu.architecture", "device.model", "sensor.*")
# A reader of more lines than these looks them up.
WARNINGS_MAX = 3
GRADES = {"incompatible": "not comparable", "warns": "could explain a difference"}

Titles = Mapping[str, str]  # backend -> as people write it


class Explanation(NamedTuple):
    """A finding in words."""

    evidence: str
    remedy: str | None  # what to try, without a full stop
    rule: str


def comparison_report(
    comparison: Comparison,
    titles: Titles,
    *,
    wide: bool = False,
    allowed_pct: float | None = None,
    file: Path | None = None,
) -> Report:
    """Return the report; `allowed_pct` is that of `--fail-if-slower`, `file` the profile that its hint names."""
    tables_of = platform_tables if comparison.kind == "platforms" else _tables
    tables = [
        table
        for groups in _of_like_tasks(comparison, wide=wide)
        for table in tables_of(comparison, groups, titles, wide)
    ]
    lines = [*note_lines(comparison, tables, wide=wide), *mismatch_lines(comparison, wide=wide)]
    return Report(
        name=NAME,
        headline=headline(comparison, titles, wide=wide),
        tables=tables,
        notes=[*lines, *_legend(comparison, tables)],
        hint=_hint(comparison, "" if file is None else shlex.quote(str(file)), wide=wide),
        records=Later(lambda: records(comparison)),
        cases=Later(lambda: cases(comparison, allowed_pct)),
        properties={"rule": comparison.rule} | ({} if allowed_pct is None else {"allowed": f"{allowed_pct:g} %"}),
        document=lambda: document(comparison),
        is_wide=wide,
        rows_max=ROWS_MAX,
    )


def why_report(comparison: Comparison, allowed_pct: float | None = None) -> Report:
    """Return the rows' answers, then what explains them: findings of one run, or every difference between runs."""
    answers = [
        [" · ".join(group.title), row.name, answer(row)]
        for group in comparison.groups
        for row in group.rows
        if not row.is_baseline
    ]
    tables, records = (_findings if comparison.kind == "cells" else _differences)(comparison)
    usual = comparison_report(comparison, {}, wide=True, allowed_pct=allowed_pct)
    of_machine = {line.evidence for line in _machine_wide(comparison)}
    differing = {f"difference.{n:02}": line for n, line in enumerate(mismatch_lines(comparison, wide=True), 1)}
    return usual._replace(
        tables=[plain_table("Answers", ("group", "row", "against the baseline"), answers, left=3), *tables],
        notes=[line for line in note_lines(comparison, wide=True) if line not in of_machine],
        hint="",
        properties={**usual.properties, **differing},
        records=records,
        is_wide=False,
        rows_max=None,
    )


def _findings(comparison: Comparison) -> tuple[list[Table], list[dict[str, object]]]:
    """Return the findings of each group, those of the machine first, as tables and as records."""
    of_groups = [(" · ".join(group.title), explanations(group)) for group in comparison.groups]
    titled = [("All groups", _machine_wide(comparison)), *of_groups]
    tables = [
        plain_table(title, ("", ""), [row for line in lines for row in _rows(line.rule, line.evidence, line.remedy)])
        for title, lines in titled
        if lines
    ]
    if not tables:
        tables = [Table("Findings", (Column(""),), (), sentences=["No rule of the audit explains these numbers."])]
    return tables, [{"group": title, **line._asdict()} for title, lines in titled for line in lines]


def _rows(name: str, words: str, more: str | None) -> list[list[str]]:
    return [[name, words], *([["", f"{more.rstrip('.')}."]] if more else [])]


def _differences(comparison: Comparison) -> tuple[list[Table], list[dict[str, object]]]:
    """Return what differs between the runs and its effect, as a table and as records."""
    rows = [
        row
        for mismatch in comparison.mismatches
        for row in _rows(mismatch.grade, mismatch_words(mismatch), EFFECTS.get(mismatch.kind))
    ]
    alike = [] if rows else ["No recorded fact of machine, software or settings differs."]
    records = [
        {name: getattr(mismatch, name) for name in ("grade", "kind", "name")}
        | {"value": value, "profiles": " ".join(labels)}
        for mismatch in comparison.mismatches
        for value, labels in mismatch.values
    ]
    table = plain_table("Differences", ("grade", "what differs, and its effect"), rows)
    return [table._replace(sentences=alike)], records


def _of_like_tasks(comparison: Comparison, *, wide: bool) -> list[list[GroupRows]]:
    """Return the groups of steps, those of fits and those of operations, which have other columns."""
    operations = [group for group in comparison.groups if is_operation(group.rows[0].cell)]
    networks = [group for group in comparison.groups if group not in operations]
    fits = [group for group in networks if any(row.cell.task == "fit" for row in group.rows)]
    steps = [group for group in networks if group not in fits]
    # Beside networks they are what these are held against, and only `wide` does that.
    return [groups for groups in (steps, fits, operations if wide or not networks else []) if groups]


def _tables(comparison: Comparison, groups: Sequence[GroupRows], titles: Titles, wide: bool) -> list[Table]:
    between = columns_of(groups, by=comparison.by, wide=wide)
    # What is judged per sample is shown so: the step may be hidden.
    differ = any(len({row.cell.batch for row in group.rows}) > 1 for group in groups)
    hidden = [title for title in HIDES if title != "step" or differ]
    columns = [
        Column("", right=False, width_max=NAME_MAX),
        *(
            Column(
                column.title,
                right=column is not OBSERVED,
                hides=0 if column.title not in hidden else HIDES[column.title],
            )
            for column in between
        ),
    ]
    short = _letters(comparison)
    tables = []
    for group in groups:
        baseline = one_line(short.get(group.baseline or "", group.baseline or ""))
        against = f"against {baseline}" if group.baseline and len(group.rows) > 1 else ""
        tables.append(
            Table(
                title=" · ".join(map(one_line, group.title)),
                columns=[*columns, Column(against, right=False, folds=True)],
                rows=[_cells(row, between, short, is_alone=not against, wide=wide) for row in group.rows],
                sentences=group_sentences(group, titles, wide=wide),
            )
        )
    return tables


def _letters(comparison: Comparison) -> dict[str, str]:
    """Return a letter for each side of several runs, where a label is too long to stand in rows."""
    labels = [head.label for head in comparison.headlines]
    longest = max((len(row.name) for group in comparison.groups for row in group.rows), default=0)
    if comparison.kind != "runs" or longest <= LABELLED_MAX or len(labels) > len(ascii_uppercase):
        return {}
    return dict(zip(labels, ascii_uppercase, strict=False))


def _cells(row: Row, columns: Sequence[Shown], short: Mapping[str, str], *, is_alone: bool, wide: bool) -> list[Cell]:
    style = "" if row.has_number else "red"
    verdict = style if row.versus is None else STYLES.get(row.versus.verdict, "")
    name = f"{row.member} · {short[row.side]}" if row.side in short else row.name
    words = [one_line(name), *(column.show(row, wide=wide) for column in columns)]
    answered = "" if is_alone and row.is_baseline and not style else answer(row)
    return [*(Cell(shown, style) for shown in words), Cell(answered, verdict)]


def headline(comparison: Comparison, titles: Titles, *, wide: bool = False) -> list[str]:
    """Return what was compared: two lines for one run, a line a side for several; with `wide` the rule, too."""
    rule = f" (rule {comparison.rule})" if wide else ""
    if comparison.kind == "runs" or (comparison.sides and len(comparison.headlines) > 1):
        short = _letters(comparison)
        return [f"{_run_line(head, short)}{rule}" for head in comparison.headlines[:SIZES_MAX]]
    head, *others = comparison.headlines
    axes = {
        axis: list(dict.fromkeys(value for of in comparison.headlines for value in of.axes[axis])) for axis in head.axes
    }
    data = dict.fromkeys(name for of in comparison.headlines for name in of.data)
    frameworks = _counted_or_named([titles.get(name, name) for name in axes["backend"]], "framework")
    are_programs = axes["precision"] == [OWN]
    are_operations = not are_programs and {*axes["workload"]} <= OPERATIONS.keys()
    noun = "program" if are_programs else "operation" if are_operations else "network"
    crossed = [_counted_or_named(axes["workload"], noun), *([] if are_programs else [frameworks])]
    crossed += [] if are_operations else ["+".join(axes["task"])]
    what = [
        " × ".join(crossed) + ("" if others else f" on {'+'.join(axes['device'])}"),
        "" if axes["devices"] == ["1"] else f"{_sizes(axes['devices'])} devices",
        "" if are_operations else f"batch {_sizes(axes['batch'])}",
        ", ".join(precision for precision in axes["precision"] if precision != OWN),
        ", ".join(DATA_NAMES.get(name, name) for name in data),
    ]
    if others:
        suites = " and ".join(dict.fromkeys(name for of in comparison.headlines for name in of.suite.split(" and ")))
        what.append(counted(len(comparison.headlines), "platform"))
        listed = ", ".join(part for part in what if part)
        return [one_line(f"{suites}: {listed}{rule}"), *platform_lines(comparison.headlines)]
    listed = ", ".join(part for part in (*what, counted(head.rounds, "round")) if part)
    label = f"{head.given_label} · " if head.given_label else ""
    where = " · ".join([*device_words(head), moment(head.created), f"kit {head.kit}{rule}"])
    return [one_line(f"{label}{head.suite}: {listed}"), one_line(where)]


def _run_line(head: Headline, short: Mapping[str, str]) -> str:
    letter = f"{short[head.label]}  " if head.label in short else ""
    details = [head.suite, *device_words(head), runs_words(head), moment(head.created), f"kit {head.kit}"]
    return one_line(f"{letter}{head.label}: {' · '.join(details)}")


def _sizes(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= SIZES_MAX else f"{values[0]} to {values[-1]} ({len(values)} sizes)"


def _counted_or_named(names: Sequence[str], noun: str) -> str:
    return names[0] if len(names) == 1 else counted(len(names), noun)


def explanation(finding: Finding, who: str) -> Explanation:
    """Return a finding in words; `who` is the name of its row, or how many cells have it."""
    return Explanation(evidence(finding, who), remedy(finding), finding.anchor)


def explanations(group: GroupRows) -> list[Explanation]:
    """Return what explains the group's numbers, gravest first."""
    names = {row.cell.key: row.name for row in group.rows} | {"": " · ".join(group.title)}
    lines = []
    for finding in group.findings:
        if finding.cell_key in names and finding.code not in (*MACHINE_WIDE, *IN_NOTES):
            line = explanation(finding, one_line(names[finding.cell_key]))
            # The remedy is done where a row of this very group is that variant.
            is_tried = any(f"--variant {name}:" in (line.remedy or "") for name in names.values())
            lines.append(line._replace(remedy=None) if is_tried else line)
    return lines


def _hint(comparison: Comparison, path: str, *, wide: bool) -> str:
    """Return the next commands, a line each: ``why (4 findings): kit compare quick.json --why``."""
    command, lines = f"kit compare {path} " if path else "add ", list[str]()
    count = len(_machine_wide(comparison)) + sum(len(explanations(group)) for group in comparison.groups)
    if count or comparison.mismatches:
        findings = f" ({counted(count, 'finding')})" if count else ""
        lines.append(f"why{findings}: {command}--why")
    if not wide:
        lines.append(f"all columns: {command}--wide")
    elif path:
        lines.append(f"every launch: kit show {path}")
    return "\n".join(lines)


def note_line(note: Note) -> str:
    """Return a note, with its reason."""
    return ": ".join(sentence(part) for part in (note.what, note.because) if part is not None)


def note_lines(comparison: Comparison, tables: Sequence[Table] = (), *, wide: bool) -> list[str]:
    """Return findings about the machine, then the notes; those that explain a column of `tables` are its legend."""
    words_shown = [*_shown(tables), *(line.rstrip(".") for table in tables for line in table.sentences)]
    letters = {
        code: sign.strip()
        for code, sign in LETTERS_OF_NOTES.items()
        if any(words.endswith(sign) for words in words_shown)
    }
    by_code: dict[str, list[str]] = {}
    for note in comparison.notes:
        code, line = note.what.code, note_line(note)
        is_other = code not in LETTERS_OF_NOTES and not line.startswith(COLUMNS_EXPLAINED)
        if code in letters or code.startswith(NEVER_HIDDEN) or (wide and is_other):
            by_code.setdefault(code, []).append(f"{letters[code]}  {line}" if code in letters else line)
    # Several runs have no such notes of their own.
    for code in sorted(letters.keys() & LETTERS.keys()):
        by_code.setdefault(code, [f"{letters[code]}  {sentence(reason(code))}"])
    lines = [line.evidence for line in _machine_wide(comparison)]
    for alike in by_code.values():
        rest = len(alike) - ALIKE_MAX
        lines += alike if rest <= 1 else [*alike[:ALIKE_MAX], f"{rest:,} more notes of this kind: --json lists them"]
    return lines


def _legend(comparison: Comparison, tables: Sequence[Table]) -> list[str]:
    """Return a line that explains the columns and signs that are shown; a note may explain a column."""
    notes, parts = [note_line(note) for note in comparison.notes], list[str]()
    for title in dict.fromkeys(column.title for table in tables for column in table.columns if column.title):
        explained = [line for line in notes if line.startswith(f"{title}: ")]
        parts += explained or ([f"{title}: {MEANINGS[title]}"] if title in MEANINGS else [])
    if all(is_operation(group.rows[0].cell) for group in comparison.groups):
        parts = [part.replace("step: time per batch", "step: time per operation") for part in parts]
    answers = [row[-1].words for table in tables for row in table.rows]
    paired = ", paired within rounds" if comparison.kind == "cells" else ""
    ratio = [f"×: ratio of times{paired}"] if any(" × " in words for words in answers) else []
    signs = [sign for sign, begin in (("±", "±"), ("[ ]", "[")) if any(begin in words for words in answers)]
    interval = [f"{', '.join(signs)}: 95 % confidence interval"] if signs else []
    parts = [*parts[:1], *ratio, *interval, *parts[1:]]
    return [" · ".join(parts)] if parts else []


def _shown(tables: Sequence[Table]) -> list[str]:
    return [cell.words for table in tables for row in table.rows for cell in row[1:]]


def _machine_wide(comparison: Comparison) -> list[Explanation]:
    """Return findings about the machine, each once: how many cells have it, and the worst of them."""
    cells = {row.cell.key for group in comparison.groups for row in group.rows}
    lines = []
    for code in MACHINE_WIDE:
        findings = [finding for group in comparison.groups for finding in group.findings if finding.code == code]
        if findings:
            who = f"{len({finding.cell_key for finding in findings})} of {counted(len(cells), 'cell')}"
            lines.append(explanation(max(findings, key=lambda finding: finding.rank), who))
    return lines


def mismatch_lines(comparison: Comparison, *, wide: bool) -> list[str]:
    """Return what differs between runs, a line each; with `wide` also what explains nothing by itself."""
    lines = [
        f"{GRADES[mismatch.grade]}: {mismatch_words(mismatch)}"
        for mismatch in comparison.mismatches
        if mismatch.grade in GRADES and not (comparison.kind == "platforms" and mismatch.kind in OF_A_PLATFORM)
    ]
    few = [line for line in lines if not line.startswith(GRADES["warns"])]
    if len(lines) - len(few) > WARNINGS_MAX and not wide:
        lines = [*few, f"{len(lines) - len(few)} facts {GRADES['warns']}: --why lists them"]
    noted = [mismatch_words(mismatch) for mismatch in comparison.mismatches if mismatch.grade not in GRADES]
    if noted and wide:
        lines.append(f"also differs: {several(noted, '; ')}")
    if not lines and comparison.kind == "runs" and wide:
        lines.append("No recorded fact of machine, software or settings differs.")
    return lines


def mismatch_words(mismatch: Mismatch) -> str:
    """Return ``kernel: 6.1.0 (a), 6.6.0 (b, c)``."""
    kind, values = mismatch.kind, mismatch.values
    shown = title_of(mismatch.name) + (" before" if fact_of(mismatch.name).form == "gauge" else "")
    if kind == "cpu.flags":
        if min(len(str(value).split()) for value, _ in values) <= 1:  # not known, or the hash of a list
            return f"{shown}: not the same, and not all profiles name them"
        values = _only_here(values)
    return one_line(f"{shown}: {several([f'{by_name(kind, value)} ({several(labels)})' for value, labels in values])}")


def _only_here(values: Sequence[tuple[Value | None, list[str]]]) -> list[tuple[Value | None, list[str]]]:
    """Return, in place of whole lists of CPU features, those of each that not all have."""
    features = [set(str(value).split()) for value, _ in values]
    common = set.intersection(*features)
    return [
        (f"only {several(sorted(known - common))}" if known - common else "none of these", labels)
        for known, (_, labels) in zip(features, values, strict=True)
    ]
