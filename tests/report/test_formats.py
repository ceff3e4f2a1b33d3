import csv
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET

import msgspec
import profile_builder as b
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kit.audit.audit import findings_of as audit
from kit.audit.finding import Finding
from kit.compare.comparability import run_mismatches
from kit.compare.compare import compare, compare_within
from kit.compare.notes import read_run
from kit.profile.facts import FACTS, Fact
from kit.profile.fields import Reason
from kit.profile.schema import Phase
from kit.report.audit_report import evidence, remedy
from kit.report.comparison_report import comparison_report, why_report
from kit.report.formats import FORMATS, escaped, write
from kit.report.profile_report import profile_report
from kit.report.report_table import Column, Report, Table, TableCell
from kit.report.sentences import ALWAYS, EFFECTS, LETTERS, LOUD, OF_COLUMNS, OF_MARKS, WIDE, sentence
from kit.report.values_in_words import number, one_line

TITLES = {"jax": "JAX", "torch": "PyTorch", "tensorflow": "TensorFlow"}


def within(profile):
    return compare_within("p", profile, findings=audit(read_run("p", profile)))


def written(comparison, name, **more):
    return write(comparison_report(comparison, TITLES, **more), name, io.StringIO())


def text(comparison, **more):
    return written(comparison, "text", **more)


def shown_profile(built, name="text"):
    return write(profile_report(built), name, io.StringIO())


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_long_name_of_the_baseline_takes_one_line_of_the_header():
    plans = [b.profile(b.group("g", b.member("torch", 2.0)), id=str(seed), seed=seed) for seed in (0, 1)]
    runs = [read_run(f"{'long-' * 9}{number}", plan) for number, plan in enumerate(plans)]
    lines = text(compare(runs)).splitlines()
    (header,) = [index for index, line in enumerate(lines) if " against " in line and "kit compare" not in line]
    assert lines[header + 1].startswith("  torch")


@pytest.mark.parametrize(("compile_s", "stands"), [(4.9, False), (5.1, True)])
def test_compilation_has_a_column_where_it_is_long(compile_s, stands):
    phases = [Phase(name="first_step", begin_ns=0, duration_ns=round(compile_s * 1e9))]
    members = b.member("torch", 2.0, launch={"phases": phases}), b.member("jax", 1.0)
    assert ("compile" in text(within(b.profile(b.group("g", *members))))) is stands


def test_colors_are_for_terminals_that_want_them(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    report = comparison_report(within(b.profile()), TITLES)
    assert "\x1b[" in write(report, "text", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in write(report, "text", Terminal())


def test_markdown_escapes_what_is_markup_there_and_nothing_else():
    plain = "quick · 2 networks × train+infer · UCI-HAR · 2026-11-22 09:20 · JAX is the fastest: 1.5 × uci_har!"
    assert escaped(plain) == plain
    for odd in ("www.a.b", "http://a.b", "mailto:a@b.c", ":smile:", "#12", "&lt;"):
        assert "\\" in escaped(odd)


@settings(deadline=None)
@given(st.text("a1 _*`#+-=.:!|<>[]()~&;{}\\/", max_size=12))
def test_no_text_is_markup_in_markdown(text):
    plain = one_line(text).strip()
    parser, shown = MarkdownIt("commonmark").enable(["table", "strikethrough"]), escaped(plain)
    table = parser.parse(f"| a | b |\n| - | - |\n| {shown} | x |")
    cells = [token.children for token in table if token.type == "inline"]
    assert len(cells) == 4 and "".join(child.content for child in cells[2]) == plain
    line = parser.parse(shown)
    assert [token.type for token in line] in ([], ["paragraph_open", "inline", "paragraph_close"])
    assert all(child.type.startswith("text") for token in line for child in token.children or [])


def test_show_says_an_exception_once_and_no_version_that_is_not_known():
    dead = {number: b.reason("exception", type="RuntimeError", message="no luck") for number in range(8)}
    built = b.profile(b.group("g", b.member("torch", 2.0, failed_rounds=dead)))
    for launch in built.cells[0].launches:
        launch.failure = msgspec.structs.replace(launch.failure, stderr_tail="Traceback\nRuntimeError: no luck\n")
        launch.python, launch.backend_version = "3.11.7", None
    shown = shown_profile(built)
    assert "None" not in shown and "Python 3.11.7" in shown
    assert shown.count("RuntimeError: no luck") == 8


def test_codes_without_a_sentence_are_shown_as_they_are():
    assert sentence(Reason(code="warp_core", values={"needed_b": 2**30})) == "warp core (needed_b 1.00 GiB)"
    # Of another kit, with other values.
    assert "signal" in sentence(Reason(code="signal", values={"number": 9}))
    eject = Reason(code="eject_it", values={})
    finding = Finding(code="warp_core", severity="note", values={"lost_ns": 2e6}, remedy=eject)
    assert all(words in evidence(finding, "torch") for words in ("warp core", "torch", "2.00 ms"))
    assert remedy(finding) == "eject it"
    runs = [(label, {"warp_core": label, "kernel": label}) for label in ("a", "b")]
    graded = [(mismatch.kind, mismatch.grade) for mismatch in run_mismatches(runs)]
    assert graded == [("kernel", "warns"), ("warp_core", "noted")]


def test_a_new_fact_is_an_entry_that_is_named_with_its_effect_where_it_differs(monkeypatch):
    monkeypatch.setitem(FACTS, "warp_core", Fact("warns", "warp core"))
    monkeypatch.setitem(EFFECTS, "warp_core", "It matters.")
    machines = {label: b.identity(facts={"warp_core": label}) for label in ("a", "b")}
    comparison = compare([read_run(label, b.profile(id=label, identity=machines[label])) for label in machines])
    assert "could explain a difference: warp core: a (a), b (b)" in text(comparison)
    assert "It matters." in write(why_report(comparison), "text", io.StringIO())


ODD = st.sampled_from("\x1b\x07\r\n\t\u202e\u0300|`<>[]=+-@\ud7ff{}%")
HOSTILE = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), ODD), max_size=30)


@settings(max_examples=30, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_text_from_a_profile_controls_what_shows_it(name, code, version):
    odd = Reason(code=code, values={name: version, "n_b": 5})
    launch = {"notes": [odd], "sensors": b.sampled(**{"x" + name: (1.0, 2.0, version)})}
    cells = [
        b.member("torch", 2.0, name, launch=launch),
        b.member("jax", 2.0, name, failed_rounds={0: odd, 1: odd}, variant=version),
        b.member("tensorflow", 1.0, name, compile_mode=code, counters={name: 3.0}),
    ]
    plan = b.group(name, *{member.cell.key: member for member in cells}.values())
    machine = b.identity(name, packages={name: version})
    built = b.profile(plan, rounds=2, cycles=3, id=code, identity=machine, suite=name)
    built.suite.data[name] = "synthetic"
    comparison = within(built)
    twice = [read_run(label, msgspec.structs.replace(built, id=f"{label}{code}")) for label in ("a", "b")]
    runs = compare(twice, force=True)
    for shown in (
        *(written(compared, name) for compared in (comparison, runs) for name in FORMATS),
        *(shown_profile(built, name) for name in FORMATS),
        *(written(comparison, name, wide=True) for name in ("text", "markdown")),
        write(why_report(runs), "text", io.StringIO()),
    ):
        assert not {unicodedata.category(c) for c in shown if c != "\n"} & {"Cc", "Cf", "Zl", "Zp", "Cs"}
    for row in csv.reader(io.StringIO(written(comparison, "csv"))):
        assert not any(field[:1] in "=+@\t\r|" for field in row if field)
    ET.fromstring(written(comparison, "junit"))
    json.loads(written(runs, "json"))


def test_names_are_not_cut_so_far_that_two_read_alike():
    names = ("2 devices batch 64", "2 devices batch 64 no-all-reduce", "2 devices batch 128", "1 device batch 64")
    columns = [Column("", right=False, width_max=34), Column("step", hides=1), *[Column("efficiency")] * 7]
    rows = [[TableCell(name), *[TableCell("12345.67")] * 8] for name in names]
    lines = write(Report("kit compare", [], [Table("cnn", columns, rows)]), "text").splitlines()
    shown = [line.strip().split("  ")[0] for line in lines if "12345" in line]
    assert len({*shown}) == len(names), shown
    assert "too narrow for: step" in lines[-1], "a column goes first"


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_every_reason_of_a_blank_cell_has_letters_of_its_own(name):
    rows = [[TableCell(f"row {index}"), TableCell("–", because=f"reason {index}.")] for index in range(60)]
    shown = write(Report("kit compare", [], [Table("t", [Column(""), Column("gain")], rows)]), name)
    letters = dict(re.findall(r"– (\w+) +reason (\d+)\.", shown))
    assert sorted(map(int, letters.values())) == [*range(60)]
    for letter, index in letters.items():
        assert re.search(rf"row {index}\b[ |]+– {letter}\b", shown)


@pytest.mark.parametrize("wide", [False, True])
def test_a_letter_is_explained_where_it_is_shown(wide):
    def built_at(begin_ns):
        phases = [Phase(name=name, begin_ns=begin_ns, duration_ns=10**9) for name in ("start", "build", "first_step")]
        return {"process": "shared", "phases": phases}

    train = b.member("tensorflow", 2.0, launch=built_at(0))
    infer = b.member("tensorflow", 1.0, task="infer", launch=built_at(10**10))
    others = [[b.member(name, 3.0, task=task) for name in ("torch", "jax")] for task in ("train", "infer")]
    built = b.profile(*(b.group(of.cell.task, of, *more) for of, more in zip((train, infer), others, strict=True)))
    shown = text(within(built), wide=wide)
    for words, mark in (("warm process", r"\d s w\b"), ("several cells shared", r"iB\*")):
        assert (words in shown) == (re.search(mark, shown) is not None) == wide


def test_each_note_is_shown_by_one_thing():
    """Every table, only wide ones, a column, or a letter: the code of a note is listed under one of them."""
    listed = [*ALWAYS, *WIDE, *(code for codes in (*OF_COLUMNS.values(), *OF_MARKS.values()) for code in codes)]
    assert len({*listed}) == len(listed) and {*LOUD} <= {*ALWAYS} and OF_MARKS.keys() == LETTERS.keys()


def test_notes_of_one_kind_are_counted_where_they_are_too_many():
    groups = [
        b.group(
            net,
            *(b.member(name, 2.0, net) for name in ("torch", "tensorflow")),
            b.member("jax", 2.0, net, launch={"parity": b.losses(0.01)}),
        )
        for net in (f"net{index}" for index in range(9))
    ]
    comparison = within(b.profile(*groups, rounds=3, cycles=3))
    assert text(comparison).count("PARITY FAILED") == 6 and "3 more notes of this kind" in text(comparison)
    assert written(comparison, "json").count('"parity_differs"') == 9


@pytest.mark.parametrize(
    ("value", "shown"), [(999.4, "999"), (999.7, "1,000"), (1000, "1,000"), (-999.7, "-1,000"), (99.96, "100")]
)
def test_numbers_that_are_shown_alike_are_written_alike(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize("name", ["jsonl", "csv", "prometheus"])
def test_what_one_round_does_not_say_is_left_empty_for_programs(name):
    members = [b.member(backend, 2.0, launch={"energy": b.energy(900.0)}) for backend in ("torch", "jax")]
    written_text = written(within(b.profile(b.group("g", *members), rounds=1)), name)
    assert re.search(r"se_log|df", written_text) or name == "prometheus"
    assert not re.search(r"\bnan\b", written_text, re.IGNORECASE)
