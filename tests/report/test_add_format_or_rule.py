"""To add a format or a rule is to write one file; every table, and every comparison, has it then."""

import re
import shutil

import profile_builder as b
import pytest
from kit_process import REPOSITORY, kit

FORMAT = '''
"""Titles alone."""
def write(report, _stream):
    return "".join(f"{table.title}\\n" for table in report.tables)
'''
ADD_ONS = (REPOSITORY / "docs/reference/add-ons.md").read_text()
RULE = re.search(r"```python\n# kit/audit/major_faults.py\n(.*?)```", ADD_ONS, re.DOTALL)[1]


@pytest.fixture(scope="module")
def copied_kit(tmp_path_factory):
    """A copy of the package with a format and a rule more, and a profile beside it."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(REPOSITORY / "kit", folder / "kit", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kit/report/formats/titles.py").write_text(FORMAT)
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
def test_a_new_format_is_one_file_and_every_table_has_it(copied_kit, verb, title):
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
