"""A rule is one file more; a format, a metric or a field is one entry, as the page on add-ons has them."""

import csv
import re
import shutil

import profile_builder as b
import pytest
from kit_process import REPOSITORY, kit

ADD_ONS = (REPOSITORY / "docs/reference/add-ons.md").read_text()
FORMAT, METRIC, FIELD = (
    re.search(rf"```python\n# an entry of {name}\n(.*?)```", ADD_ONS, re.DOTALL)[1]
    for name in ("WRITERS", "METRICS", "RUN_FIELDS")
)
RULE = re.search(r"```python\n# kit/audit/major_faults.py\n(.*?)```", ADD_ONS, re.DOTALL)[1]


@pytest.fixture(scope="module")
def copied_kit(tmp_path_factory):
    """A copy of the package with a format, a rule, a metric and a field more, and a profile beside it."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(REPOSITORY / "kit", folder / "kit")
    entries = (("report/formats", "WRITERS: ", FORMAT), ("compare/axes", "RUN_FIELDS: ", FIELD))
    for file, opening, entry in (*entries, ("compare/metrics", "_METRICS = [\n", METRIC)):
        written = folder / f"kit/{file}.py"
        before, opened, rest = written.read_text().partition(opening)
        line, after = ("", rest) if opened.endswith("\n") else rest.split("\n", 1)
        written.write_text(f"{before}{opened}{line}{chr(10) if line else ''}{entry}{after}")
    (folder / "kit/audit/major_faults.py").write_text(RULE)
    b.write(
        folder / "a.json",
        b.profile(
            b.group(
                "mlp train", b.member("tensorflow", 4.0), b.member("torch", 2.0, counters={"process.major_faults": 3})
            )
        ),
    )
    return folder


@pytest.mark.parametrize(("verb", "title"), [("compare", "mlp train"), ("show", "Launches")])
def test_the_documented_format_is_one_entry_and_every_table_has_it(copied_kit, verb, title):
    shown = kit(copied_kit, verb, "a.json", "--format", "titles", PYTHONPATH=str(copied_kit))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert title in shown.stdout.splitlines()


@pytest.mark.parametrize("name", ["text", "markdown", "json"])
def test_the_documented_rule_is_one_file_and_every_format_has_its_finding(copied_kit, name):
    """It has no sentence there: its code is shown."""
    shown = kit(copied_kit, "compare", "a.json", "--why", "--format", name, PYTHONPATH=str(copied_kit)).stdout
    assert "major_faults" in shown or "major-faults" in shown or "major faults" in shown
    asked = kit(copied_kit, "audit", "a.json", "--rule", "major-faults", PYTHONPATH=str(copied_kit))
    assert asked.returncode == 1 and "torch" in asked.stdout


def test_the_documented_metric_is_one_entry_and_has_a_column_and_a_verdict(copied_kit):
    asked = ("compare", "a.json", "--metric", "warmup", "--format", "csv")
    rows = csv.DictReader(kit(copied_kit, *asked, PYTHONPATH=str(copied_kit)).stdout.splitlines())
    assert [(float(row["warmup_ns"]) > 0, row["verdict"]) for row in rows] == [(True, ""), (True, "same")]


def test_the_documented_field_is_one_entry_and_makes_rows(copied_kit):
    asked = ("compare", "a.json", "--rows", "kernel", "--split", "backend")
    shown = kit(copied_kit, *asked, PYTHONPATH=str(copied_kit))
    assert shown.returncode == 0 and "6.1.0" in shown.stdout
