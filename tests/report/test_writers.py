"""Every writer, on the golden profiles: what it writes parses back, controls no terminal, and has the same numbers."""

import csv
import io
import json
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest
from golden.golden_outputs import run_main
from golden.golden_profiles import make_profiles
from markdown_it import MarkdownIt
from prometheus_client.openmetrics import parser

FORMATS = ("text", "markdown", "csv", "json", "jsonl", "junit", "prometheus")
SHOWN = ("cells", "odd", "single", "bimodal", "fits", "shares", "disturbed", "joules")
COMMANDS = (
    *(f"compare {name}.json" for name in (*SHOWN, "before0.json --against slow0", "here1.json there1.json far")),
    "audit host-bad.json gpu-bad.json", "show single.json", "show odd.json", "fleet --from fleet",
    "compare reference/gpu-h100-quick.json",
)  # fmt: skip
MARKDOWN = MarkdownIt("commonmark").enable("table")


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What a command prints in a format."""
    folder = make_profiles(tmp_path_factory.mktemp("written"))
    return lambda command, name: run_main([*command.split(), "--format", name], {}, folder)[1]


def families(text):
    return {family.name: family.samples for family in parser.text_string_to_metric_families(text)}


READ = {
    "text": str.splitlines,
    "markdown": lambda text: [part for token in MARKDOWN.parse(text) for part in (token, *(token.children or ()))],
    "csv": lambda text: [*csv.DictReader(io.StringIO(text), strict=True)],
    "json": json.loads,
    "jsonl": lambda text: [*map(json.loads, text.splitlines())],
    "junit": ET.fromstring,
    "prometheus": families,
}


# A profile that is shown has no test and no sample.
WRITTEN = [(command, name) for command in COMMANDS for name in FORMATS
           if not (command.startswith("show") and name in ("junit", "prometheus"))]  # fmt: skip


@pytest.mark.parametrize(("command", "name"), WRITTEN)
def test_what_is_written_parses_back_and_controls_no_terminal(printed, command, name):
    text = printed(command, name)
    assert text.replace("\n", "").isprintable()
    parts = READ[name](text)
    assert len(parts) > 0
    assert name != "markdown" or not any(part.type.startswith("html") for part in parts)
    if name == "csv":
        rows = [*csv.reader(io.StringIO(text))]
        assert len({*map(len, rows)}) <= 1 and not any(cell[:1] in "=+@\t|" for line in rows for cell in line if cell)
    if name == "prometheus" and shutil.which("promtool") is not None:
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("compare")])
def test_every_format_has_the_same_numbers(printed, command):
    records, rows = (READ[name](printed(command, name)) for name in ("jsonl", "csv"))
    assert len(rows) == len(records)
    for record, row in zip(records, rows, strict=True):
        for name, value in record.items():
            if type(value) in (int, float):
                assert float(row[name]) == pytest.approx(value), name
    document = READ["json"](printed(command, "json"))
    steps_ns = sorted(record["step_ns"] for record in records if record.get("step_ns") is not None)
    in_json = [row["numbers"].get("step_ns") for group in document["groups"] for row in group["rows"]]
    assert sorted(ns for ns in in_json if ns is not None) == pytest.approx(steps_ns)
    samples = families(printed(command, "prometheus")).get("steadykit_compare_step_seconds", [])
    assert sorted(1e9 * sample.value for sample in samples) == pytest.approx(steps_ns)


def test_a_row_with_two_step_times_has_two_numbers_and_says_so(printed):
    rows = csv.DictReader(io.StringIO(printed("compare bimodal.json", "csv")), strict=True)
    (row,) = [row for row in rows if row["verdict"] == "bimodal"]
    fast, slow = float(row["fast_mode_ratio"]), float(row["slow_mode_ratio"])
    assert 0 < fast < slow and "two_modes" not in row
    assert f"bimodal: {1 / slow:.2f} and {1 / fast:.1f} × faster" in printed("compare bimodal.json", "text")
    states = families(printed("compare bimodal.json", "prometheus"))["steadykit_compare_verdict"]
    assert "bimodal" in [sample.labels["verdict"] for sample in states if sample.value]
