"""A report in the formats of `--format`: a function each, named in WRITERS.

To add a format, write its function and its line in WRITERS; every command that prints a report offers it then.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import IO

from kit.report.report_table import Footnotes, Report, Table
from kit.report.values_in_words import NO_BREAK, one_line

USUAL = "text"
# A spreadsheet takes a cell that begins like this for a formula (OWASP, CSV injection).
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "|")
JUNIT_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}
# What Markdown takes for markup wherever it stands; a letter or digit on both sides makes nothing of `_`, and only some
# of what follows `#`, `:` and `&` makes a reference, an address, an emoji or an entity of them, as `www` does of a full
# stop.
MARKDOWN_SPECIAL = (
    r"[\\`*\[\]<>|~$@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#(?=\d)|:(?=//|[A-Za-z_+-]|\d+:)|&(?=[#A-Za-z])|(?<=www)\."
)
# At the beginning of a line: a heading, a rule, an item of a list.
MARKDOWN_BEGINNING = r"^\s*(?:\d+(?=[.)](?:\s|$))|(?=(?:#+|[-+=]+)(?:\s|$)))"
# Unit in a record's name -> that of Prometheus, and what values are divided by.
BASE_UNITS = {"ns": ("seconds", 1e9), "s": ("seconds", 1), "b": ("bytes", 1), "j": ("joules", 1), "w": ("watts", 1)}
# Endings that Prometheus keeps for counters, histograms and summaries.
KEPT = {"count": "counted", "total": "whole", "sum": "summed", "bucket": "class", "info": "about", "created": "begin"}


def write(report: Report, format_name: str = USUAL, stream: IO[str] | None = None) -> str:
    """Return the report in one of FORMATS, laid out for `stream`; null: standard output."""
    return WRITERS[format_name](report, stream or sys.stdout)


def as_text(report: Report, stream: IO[str]) -> str:
    """Return the report as wide as the terminal, 100 columns in a file."""
    from kit.report.text_layout import laid_out

    return laid_out(report, stream)


def as_markdown(report: Report, _stream: IO[str]) -> str:
    """Return headline, tables, sentences, notes and the next commands, for a pull request or a page."""
    footnotes = Footnotes()
    parts = ["  \n".join(escaped(line) for line in report.headline)]
    for table in report.tables:
        parts += [f"### {escaped(table.title)}"] if table.title and table.columns[0].title else []
        parts.append("\n".join(_markdown_table(table, footnotes)))
        parts += (escaped(sentence).replace(NO_BREAK, " ") for sentence in table.sentences)
    parts.append(
        "\n".join(f"- {escaped(line)}" for line in [*footnotes.lines(), *report.below(), *report.hint.splitlines()])
    )
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def escaped(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: no link, no markup, no new column."""
    return re.sub(MARKDOWN_BEGINNING, r"\g<0>\\", re.sub(MARKDOWN_SPECIAL, r"\\\g<0>", one_line(text)))


def _markdown_table(table: Table, footnotes: Footnotes) -> Iterator[str]:
    first, *others = table.columns
    titles = [first.title or table.title, *(" · ".join(filter(None, (column.over, column.title))) for column in others)]
    yield _markdown_line([escaped(title) for title in titles])
    yield _markdown_line(["---:" if column.right else ":---" for column in table.columns])
    for row in table.rows:
        yield _markdown_line([escaped(footnotes.words(cell)) for cell in row])


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def as_csv(report: Report, _stream: IO[str]) -> str:
    """Return a header and a row for each record: plain numbers; what any record has is a column."""
    import csv
    import io

    names = dict.fromkeys(name for record in report.records for name in record)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(no_formula, names))
    for record in report.records:
        values = map(record.get, names)  # csv writes nothing for null
        writer.writerow([no_formula(value) if isinstance(value, str) else value for value in values])
    return written.getvalue()


def no_formula(text: str) -> str:
    """Return `text` so that no spreadsheet takes it for a formula."""
    shown = one_line(text)
    return f"'{shown}" if shown.startswith(FORMULA_BEGINNINGS) else shown


def as_json(report: Report, _stream: IO[str]) -> str:
    """Return what the tables were built from, with its own field names.

    It is indented and in printable ASCII: names come back exactly when read, and cannot steer a terminal.
    """
    import json

    import msgspec

    document = report.document() if callable(report.document) else report.document
    plain = json.loads(msgspec.json.encode(document))
    return json.dumps(plain, indent=2).replace("\x7f", "\\u007f") + "\n"


def as_jsonl(report: Report, _stream: IO[str]) -> str:
    """Return an object for each record, flat, with the column names of CSV, in a line of printable ASCII."""
    import json

    return "".join(json.dumps(record).replace("\x7f", "\\u007f") + "\n" for record in report.records)


def as_junit(report: Report, _stream: IO[str]) -> str:
    """Return the report's cases as one suite for a CI server, and its notes in the properties.

    It is in ASCII with references for the rest: right in every encoding that an output may be given. The schema of
    Jenkins (xunit-plugin, junit-10.xsd) knows no `skipped` on the outermost element.
    """
    from xml.etree import ElementTree as ET

    outcomes = [case.outcome for case in report.cases]
    counts = {"failures": str(outcomes.count("failed")), "errors": str(outcomes.count("error"))}
    seconds = {"time": f"{round(sum(case.time_s or 0 for case in report.cases), 3):g}"}
    name, tests = {"name": report.name}, {"tests": str(len(outcomes))}
    whole = ET.Element("testsuites", name | tests | counts | seconds)
    skipped = {"skipped": str(outcomes.count("skipped"))}
    suite = ET.SubElement(whole, "testsuite", name | tests | dict(reversed(counts.items())) | skipped | seconds)
    notes = {f"note.{index:02}": line for index, line in enumerate(report.below(), 1)}
    if listed := {**report.properties, **notes}:
        properties = ET.SubElement(suite, "properties")
        for key, value in listed.items():
            ET.SubElement(properties, "property", {"name": key, "value": one_line(value)})
    for case in report.cases:
        # Schemas of CI servers know no exponents.
        time = {} if case.time_s is None else {"time": f"{case.time_s:.9f}"}
        names = {"name": one_line(case.name), "classname": one_line(case.group)}
        written = ET.SubElement(suite, "testcase", names | time)
        if case.output:
            ET.SubElement(written, "system-out").text = one_line(case.output)
        if case.outcome != "passed":
            kind = {"type": case.kind} if case.kind else {}
            ET.SubElement(written, JUNIT_ELEMENTS[case.outcome], {"message": one_line(case.words), **kind})
    encoded: bytes = ET.tostring(whole, encoding="us-ascii", xml_declaration=False)
    return encoded.decode().replace(" />", "/>") + "\n"


def as_prometheus(report: Report, _stream: IO[str]) -> str:
    """Return each number of the records as a gauge, with labels that tell records apart; of samples alike, the last.

    A word that changes from run to run, as a verdict, is a gauge of its own for each word that it may be, 1 for the one
    that it is: a series that has it as a label would end when it changes, and an alert with it.

    It is also OpenMetrics, and what node_exporter takes: https://prometheus.io/docs/specs/om/open_metrics_spec/ and
    https://prometheus.io/docs/practices/naming/ (base units, written out).
    """
    samples: dict[str, dict[str, float]] = {}
    helps: dict[str, str] = {}
    for record, told_apart in zip_longest(report.records, report.labels):
        spoken = {name: value for name, value in record.items() if isinstance(value, str) and value}
        words = dict(told_apart) if told_apart else spoken
        labels = _prometheus_labels(words)
        for name, every in report.states.items():
            metric = _prometheus_name(f"steady{report.name}_{name}")
            for word in every if name in spoken else ():
                helps.setdefault(metric, one_line(f"1 for the {name} of {report.name}, 0 for the others"))
                samples.setdefault(metric, {})[_prometheus_labels(words | {name: word})] = float(word == spoken[name])
        for name, value in record.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                metric, divisor = _prometheus_metric(_prometheus_name(f"steady{report.name}_{name}"))
                what = metric.removeprefix(_prometheus_name(f"steady{report.name}_")).replace("_", " ")
                helps.setdefault(metric, one_line(f"{what}, of {report.name}"))
                samples.setdefault(metric, {})[labels] = value / divisor
    lines = []
    for name, by_labels in samples.items():
        lines += [f"# HELP {name} {_backslashed(helps[name])}", f"# TYPE {name} gauge"]
        lines += [f"{name}{labels} {value!r}" for labels, value in by_labels.items()]
    return "".join(f"{line}\n" for line in [*lines, "# EOF"])


def _prometheus_labels(words: Mapping[str, str]) -> str:
    shown = [f'{_prometheus_name(name)}="{_backslashed(one_line(value), quote=True)}"' for name, value in words.items()]
    return f"{{{','.join(shown)}}}" if shown else ""


def _prometheus_metric(name: str) -> tuple[str, float]:
    """Return a metric's name with base units written out, and what its values are divided by."""
    words, divisor = name.split("_"), 1.0
    for index, word in enumerate(words):
        # A unit ends a name, or stands before `per`; after it, it divides.
        if word.lower() in BASE_UNITS and (index == len(words) - 1 or words[index + 1] == "per"):
            words[index], factor = BASE_UNITS[word.lower()]
            divisor = divisor / factor if words[index - 1] == "per" else divisor * factor
    words[-1] = KEPT.get(words[-1], words[-1])
    return "_".join(words), divisor


def _prometheus_name(words: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "_", words).strip("_")


def _backslashed(words: str, *, quote: bool = False) -> str:
    """Return words with what Prometheus reads as a sign behind a backslash."""
    words = words.replace("\\", "\\\\")
    return words.replace('"', '\\"') if quote else words


Writer = Callable[[Report, IO[str]], str]
WRITERS: dict[str, Writer] = {
    "csv": as_csv,
    "json": as_json,
    "jsonl": as_jsonl,
    "junit": as_junit,
    "markdown": as_markdown,
    "prometheus": as_prometheus,
    "text": as_text,
}
FORMATS = tuple(WRITERS)
