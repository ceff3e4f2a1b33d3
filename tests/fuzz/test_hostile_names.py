"""Names in a profile, and of its file, reach no terminal, table, spreadsheet or XML as anything but text."""

import os
import re
import subprocess
import sys
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from fuzz.chain import compared, exercise, kit
from fuzz.mutations import HOSTILE_TEXTS, every_place, sealed
from fuzz.promises import BrokenPromiseError, check_csv, check_junit, check_markdown, check_text
from fuzz.seeds import built
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kit.compare.comparison import compare
from kit.compare.labels import distinct_labels
from kit.compare.overview import PROFILES_IN_FULL_MAX
from kit.errors import KitError
from kit.printable import MARKS_MAX, printable, printable_line
from kit.profile.journal import journal_path
from kit.profile.naming import profile_path
from kit.profile.sidecar import sidecar_path
from kit.profile.store import read_profile
from kit.report import csv, json, junit, markdown, text
from kit.report.ascii_json import ascii_json
from kit.report.markdown_text import escape
from kit.report.spreadsheet_text import FORMULA_STARTS, harmless_cell

pytestmark = pytest.mark.timeout(120)
IN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)

# What is read as one of a few words, and not as text; and what the reader itself checks.
WORDS = {"device", "task", "feed", "status", "verdict", "source", "schema", "data", "phase", "digest"}

# Hypothesis finds controls, marks and separators more often when they are half of what it draws from.
SYNTAX = (
    "\x00\x07\x08\t\n\x0b\r\x1b\x7f\x85\x9b\u200b\u200e\u202e\u2066\u2028\ufeff\u3164=+-@;,|'\"`<>&[]()!*_#~$\\/:. 1"
)
texts = (
    st.sampled_from(HOSTILE_TEXTS)
    | st.text()
    | st.text(st.sampled_from(SYNTAX))
    | st.lists(st.sampled_from(HOSTILE_TEXTS), min_size=2, max_size=3).map("".join)
)
lines = st.lists(texts, min_size=1, max_size=4)


def named(names, *, distinct):
    """The built profile with these in place of every free text in it, members of objects that hold any text too."""
    plain = built()
    count = 0
    for parent, member in [*every_place(plain)]:
        if not isinstance(parent[member], str) or member in WORDS or (member == "name" and "duration_ns" in parent):
            continue
        if member == "name" and parent.get("sha256") and "pool_batches" in parent:
            continue
        count += 1
        parent[member] = names[count % len(names)] + (f" {count}" if distinct else "")
    software, summary = plain["identity"]["software"], plain["cells"][0]["summary"]
    for texts in (software["packages"], software["environment"], plain["identity"]["reasons"], summary["reasons"]):
        texts |= {f"{name}{number}": name for number, name in enumerate(names)}
    return plain


def without_surrogates(text):
    return text.encode("utf-8", "replace").decode()


@IN_FOLDER
@given(names=lines, distinct=st.booleans())
def test_every_renderer_of_every_name(tmp_path, names, distinct):
    path, other = tmp_path / "named.json", tmp_path / "other.json"
    path.write_bytes(sealed(named([without_surrogates(name) for name in names], distinct=distinct)))
    if not other.exists():
        other.write_bytes(sealed(built()))
    assert exercise(path, other)


@pytest.mark.parametrize("name", HOSTILE_TEXTS, ids=ascii)
def test_one_name_everywhere(tmp_path, name):
    path, other = tmp_path / "named.json", tmp_path / "other.json"
    path.write_bytes(sealed(named([name], distinct=False)))
    other.write_bytes(sealed(named([name, "plain"], distinct=True)))
    assert exercise(path, other)


@IN_FOLDER
@given(label=texts | st.text(st.characters()), second=texts)
def test_every_renderer_of_every_label(tmp_path, label, second):
    """As `compare` may be called from a program, with labels that no file has."""
    path = tmp_path / "built.json"
    if not path.exists():
        path.write_bytes(sealed(built()))
    profile = read_profile(path)
    shown = compare([(without_surrogates(label), profile), (without_surrogates(second) + " 2", profile)])
    check_text(text.render(shown))
    check_markdown(markdown.render(shown))
    check_csv(csv.render(shown))
    check_junit(junit.render(shown))
    assert json.render(shown).isascii()
    coloured = text.render(shown, color=True)
    check_text(re.sub(r"\x1b\[[\d;]*m", "", coloured))


@pytest.mark.parametrize("name", HOSTILE_TEXTS, ids=ascii)
def test_the_name_of_the_file(tmp_path, name):
    file = name.replace("/", "_").replace("\0", "_")[:60] or "_"
    path, other = tmp_path / f"{file}.json", tmp_path / "other.json"
    for one in (path, other):
        one.write_bytes(sealed(built()))
    assert exercise(path, other)


@settings(IN_FOLDER, max_examples=5)
@given(names=lines)
def test_the_overview_of_many_profiles(tmp_path, names):
    paths = [tmp_path / f"{number}.json" for number in range(PROFILES_IN_FULL_MAX + 2)]
    for number, path in enumerate(paths):
        path.write_bytes(sealed(named([f"{without_surrogates(name)}{number % 2}" for name in names], distinct=True)))
    compared(*paths)


@given(suite=texts, run_id=texts)
@example(suite="../../etc/passwd", run_id="0")
@example(suite="-rf", run_id="..")
@example(suite=".hidden", run_id="/")
@example(suite="n" * 5000, run_id="n" * 5000)
def test_a_profile_is_written_into_its_folder_only(suite, run_id):
    with TemporaryDirectory() as folder:
        path = profile_path(folder, suite, run_id, datetime(2026, 1, 2, tzinfo=UTC))
        assert path.parent == Path(folder)
        assert re.fullmatch(r"\w[\w.-]*\.json", path.name, re.ASCII)
        for file in (path, journal_path(path), sidecar_path(path, "0" * 64)):
            file.touch(exist_ok=False)
            assert file.resolve().parent == Path(folder).resolve()


def test_a_file_name_that_is_no_utf_8(tmp_path):
    path = tmp_path / "a\udcff\udc9b.json"
    path.write_bytes(sealed(built()))
    code, out, said = kit("compare", path, "--json")
    assert (code, said) == (0, "")
    assert '"a\\ufffd\\ufffd"' in out
    code, _, said = kit("compare", tmp_path / "gone\udcff\x1b[2J.json")
    assert code == 2
    assert said.isprintable()


@given(st.lists(texts, min_size=1, max_size=6))
@example(["a", "a#2", "a"])
@example(["a", "a", "a#2", "a#2", "a#3"])
def test_labels_are_distinct_and_printable(names):
    labels = distinct_labels([Path(name.replace("\0", "") + ".json") for name in names])
    assert len(set(labels)) == len(names)
    for label in labels:
        assert label
        assert label.isprintable()
        label.encode()


@given(texts)
def test_printable_text_is_printable_as_long_and_stays_so(raw):
    shown = printable(raw)
    assert len(shown) == len(raw)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert printable_line(raw).isprintable()
    marks = "".join("m" if unicodedata.category(c) in ("Mn", "Me") else " " for c in shown)
    assert max(map(len, marks.split()), default=0) <= MARKS_MAX


@pytest.mark.parametrize("kept", ["Größe: 5 µs · 模型", "é e\u0301", "हिन्दी", "שָׁלוֹם", "tiếng Việt", "→ ≤ ×"])
def test_writing_of_the_world_is_left_alone(kept):
    assert printable(kept) == kept


@pytest.mark.parametrize(
    "hidden",
    ["\u200b", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u115f", "\u3164", "\u2800", "\ufe0f", "\U000e0101", "\x9b"],
)
def test_what_cannot_be_seen_is_shown(hidden):
    assert printable(f"a{hidden}b") == "a\N{REPLACEMENT CHARACTER}b"


@given(texts)
def test_errors_are_one_printable_line(raw):
    assert str(KitError(raw)).isprintable()


@given(texts)
def test_a_cell_of_csv_is_no_formula_however_lists_are_separated(raw):
    shown = harmless_cell(raw)
    assert shown.isprintable()
    for part in (shown, *shown.split(";")):
        assert not part.lstrip("\"' ").startswith(FORMULA_STARTS) or part.lstrip('" ').startswith("'")


@given(texts)
@example("a\\")
@example("\\|")
@example("1. x")
@example("+ x")
@example("HTTPS://e.example")
def test_markdown_shows_the_text_and_nothing_else(raw):
    """A parser of CommonMark gives back what went in, as one text in one paragraph; GitHub's additions find nothing."""
    escaped = escape(raw)
    for parser in (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable(["table", "strikethrough"])):
        tokens = parser.parse(escaped)
        assert [token.type for token in tokens] in ([], ["paragraph_open", "inline", "paragraph_close"])
        shown = "".join(part.content for token in tokens for part in token.children or ())
        assert {part.type for token in tokens for part in token.children or ()} <= {"text", "text_special"}
        assert shown == printable_line(raw)[:400].replace("@", "\uff20") or len(printable_line(raw)) > 400
    assert not re.search(r"(?<!\\)://|www\.|mailto:|@", escaped, re.IGNORECASE)


@given(st.text())
def test_json_in_ascii_reads_the_same(raw):
    shown = ascii_json(msgspec.json.encode(without_surrogates(raw)))
    assert re.fullmatch(r"[\x20-\x7e]*", shown)
    assert msgspec.json.decode(shown) == without_surrogates(raw)


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (check_text, "a\x1b[2J"),
        (check_text, "a\u202eb"),
        (check_csv, "a,b\n=1,2\n"),
        (check_csv, "a,b\n1\n"),
        (check_csv, 'a,b\n2,"x;=1"\n'),
        (check_markdown, "- [x](y)\n"),
        (check_markdown, "- a\n\n<b>\n"),
        (check_markdown, "| a | b |\n| --- | --- |\n| x | y | z |\n"),
        (check_markdown, "- see https://e.example\n"),
        (check_junit, '<a b="&#x202e;"/>'),
    ],
)
def test_the_checks_find_what_they_are_for(check, broken):
    with pytest.raises(BrokenPromiseError):
        check(broken)


@pytest.mark.parametrize("arguments", [("show",), ("compare", "--baseline", "x\x1b[2J"), ("compare", "--\x9b\u202e")])
def test_the_command_says_one_printable_line(tmp_path, arguments):
    path = tmp_path / "a\x1b]0;b\x07\n\udcff.json"
    if arguments[0] == "compare":
        path.write_bytes(sealed(named(["\x1b[2J\u202e"], distinct=False)))
    command = [sys.executable, "-m", "kit", *arguments, os.fsencode(path)]
    answer = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert answer.returncode == 2
    said = answer.stderr.decode()
    assert said.startswith("kit: ")
    assert said.removesuffix("\n").isprintable()
