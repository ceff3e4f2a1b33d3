"""The sentences around a table: what ran, who is the fastest, what differs, and what else has to be said."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import IO, NamedTuple

from kit.compare.rows import Comparison, GroupRows, Headline, Mismatch, Note
from kit.profile.cell import OWN
from kit.report.plain import one_line
from kit.report.quantity import by_name, counted, moment
from kit.report.reasons import sentence
from kit.report.reasons_findings import FindingLine, finding_line

FINDINGS_SHOWN = 3
# The machine's or the container's, not a member's: said once, whichever cells it is found in.
MACHINE_WIDE = ("throttled", "contention")
# More values or profiles than these are a list nobody reads.
LISTED_MAX = 6
# Where the kind does not say it by itself.
KIND_NAMES = {
    "cpu": "CPU",
    "memory_b": "memory",
    "cpu_flags": "CPU features",
    "cpu_limit": "CPU limit",
    "memory_limit_b": "memory limit",
    "os": "operating system",
    "libc": "C library",
    "load_1min": "load before",
    "frequency_mhz": "CPU frequency before",
    "temperature_c": "temperature before",
    "stolen_pct": "CPU time stolen by the hypervisor",
    "waiting_pct": "time in which a task waited for a CPU",
    "plan": "step plan",
    "governor": "frequency governor",
    "rounds": "rounds asked for",
}
DATA_NAMES = {"mnist": "MNIST", "uci_har": "UCI-HAR"}
GRADES = {"blocks": "not comparable", "warns": "could explain a difference"}

Titles = Mapping[str, str]  # backend -> as people write it


class RenderOptions(NamedTuple):
    """What a format is asked for besides the comparison; each takes what concerns it."""

    titles: Titles = MappingProxyType({})
    wide: bool = False  # every column, as wide as it needs to be
    allowed_pct: float | None = None  # of --fail-if-slower; null: none
    stream: IO[str] = sys.stdout  # where it will be printed
    file: str | None = None  # of the profile, as the shell takes it in the commands that are named


def headline(comparison: Comparison, titles: Titles) -> list[str]:
    """Return what was compared: of one run two lines, of several a line a side."""
    rule = f"rule {comparison.rule}"
    if comparison.kind == "runs":
        return [*map(_run_line, comparison.headlines[:LISTED_MAX]), rule]
    one = comparison.headlines[0]
    frameworks = _counted_or_named([titles.get(name, name) for name in one.axes["backend"]], "framework")
    are_programs = one.axes["precision"] == [OWN]
    nets = _counted_or_named(one.axes["workload"], "program" if are_programs else "network")
    crossed = [nets, *([] if are_programs else [frameworks]), "+".join(one.axes["task"])]
    virtual = f"{one.cpus} virtual CPUs ({one.hypervisor})" if one.hypervisor else counted(one.cpus or 0, "CPU")
    what = [
        one.given_label,
        one.suite,
        " × ".join(crossed),
        f"batch {_listed(one.axes['batch'])}",
        ", ".join(precision for precision in one.axes["precision"] if precision != OWN),
        ", ".join(DATA_NAMES.get(data, data) for data in one.data),
        f"{counted(one.rounds, 'round')} × {counted(one.cycles, 'cycle')}",
    ]
    where = [
        f"{one.cpu}, {virtual}{'' if one.power_sensor else ', no power sensor'}",
        *one.accelerators,
        moment(one.created),
        f"kit {one.kit}, {rule}",
    ]
    return [one_line(" · ".join(part for part in parts if part)) for parts in (what, where)]


def _run_line(one: Headline) -> str:
    rounds = f"{counted(one.rounds, 'round')} of {counted(one.cycles, 'cycle')}"
    return one_line(f"{one.label}: {one.suite} · {one.cpu} · {rounds} · {moment(one.created)} · kit {one.kit}")


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= LISTED_MAX else f"{values[0]} to {values[-1]} ({len(values)} sizes)"


def _counted_or_named(names: Sequence[str], noun: str) -> str:
    return names[0] if len(names) == 1 else counted(len(names), noun)


def why_lines(group: GroupRows, *, whole: bool) -> list[FindingLine]:
    """Return what explains the group's numbers, gravest first; at most three unless `whole`."""
    names = {row.cell.key: row.name for row in group.rows}
    own = [one for one in group.findings if one.cell_key in names and one.code not in MACHINE_WIDE]
    lines = [finding_line(one, one_line(names[one.cell_key])) for one in own[: None if whole else FINDINGS_SHOWN]]
    # What is to be tried has been, where a member of this very group is that variant.
    tried = [any(f"--variant {name}:" in (line.remedy or "") for name in names.values()) for line in lines]
    return [line._replace(remedy=None) if had else line for line, had in zip(lines, tried, strict=True)]


def note_line(note: Note) -> str:
    """Return a note, with its reason."""
    because = "" if note.because is None else f": {sentence(note.because)}"
    return f"{sentence(note.what)}{because}"


def note_lines(comparison: Comparison) -> list[str]:
    """Return what kept members from their CPUs, then the notes; parity and energy share a line."""
    lines = [note_line(note) for note in comparison.notes]
    quiet = [line for line in lines if line.startswith(("parity:", "energy:"))]
    others = [line for line in lines if line not in quiet]
    return [*_machine_lines(comparison), *others, *([" · ".join(quiet)] if quiet else [])]


def _machine_lines(comparison: Comparison) -> list[str]:
    """Return findings of the machine, each once: with how many cells it is found in, and the worst of them."""
    cells = {row.cell.key for group in comparison.groups for row in group.rows}
    lines = []
    for code in MACHINE_WIDE:
        found = [one for group in comparison.groups for one in group.findings if one.code == code]
        if found:
            who = f"{len({one.cell_key for one in found})} of {counted(len(cells), 'cell')}"
            line = finding_line(max(found, key=lambda one: one.rank), who)
            lines.append(f"{line.evidence} {line.remedy}.  {line.more}")
    return lines


def mismatch_lines(comparison: Comparison) -> list[str]:
    """Return what differs between runs: what blocks or warns a line each, what is only noted in one together."""
    lines = [f"{GRADES[one.grade]}: {mismatch(one)}" for one in comparison.mismatches if one.grade in GRADES]
    noted = [mismatch(one) for one in comparison.mismatches if one.grade not in GRADES]
    if noted:
        lines.append(f"also differs: {several(noted, '; ')}")
    if not lines and comparison.kind == "runs":
        lines.append("machine, software and settings are the same, as far as recorded")
    return lines


def mismatch(one: Mismatch) -> str:
    """Return ``kernel: 6.1.0 (a), 6.6.0 (b, c)``."""
    name = KIND_NAMES.get(one.kind, one.kind.replace("_", " ")) if one.name == one.kind else one.name
    values = [f"{by_name(one.kind, value)} ({several(labels)})" for value, labels in one.values]
    return one_line(f"{name}: {several(values)}")


def several(words: Sequence[str], separator: str = ", ") -> str:
    """Return ``a, b, c``; of many, the first and how many more."""
    rest = len(words) - LISTED_MAX
    return separator.join(words) if rest <= 1 else f"{separator.join(words[:LISTED_MAX])} and {rest:,} more"
