"""The README shows what the kit prints today."""

import contextlib
import io
import re
import shutil
from itertools import groupby
from xml.etree import ElementTree

import pytest
from kit_process import invoke

from kit.compare.suite_table import suite_table
from kit.profile.store import read_profile
from kit.report.formats import write
from kit.report.suite_report import suite_report
from kit.suites.suite import load_suite

PROFILE = "profiles/reference/cpu-xeon-2-vcpu-quick.json"


@pytest.fixture
def quick(request, tmp_path):
    """What `kit compare` prints of the reference profile under the name that a user's own has."""
    reference = request.config.rootpath / PROFILE
    for file in reference.parent.glob(f"{reference.name}*"):
        shutil.copy(file, tmp_path / file.name.replace(reference.stem, "quick"))
    with contextlib.chdir(tmp_path):
        return invoke("compare", "quick.json").stdout


def test_its_table_is_the_reference_profile_s(request, quick):
    first, rest = blocks(request.config.rootpath)[0].split("…\n")
    assert quick.startswith(first) and quick.endswith(rest), f"paste what `kit compare` prints of {PROFILE}:\n{quick}"


def test_its_table_of_the_literature_is_that_of_the_profiles(request):
    root = request.config.rootpath
    suite = load_suite("frameworks-cnn")
    measured = ("mine", read_profile(root / "profiles/reference/cpu-epyc-2-vcpu-frameworks-cnn.json"))
    published = ("published", read_profile(root / "profiles/published/frameworks-cnn.json"))
    table = suite_table(suite.title, suite.table.rows, suite.table.figures, [measured, published])
    assert write(suite_report(table), "text", io.StringIO()) in blocks(root), "paste what the command above it prints"


def test_its_audit_is_that_of_the_profile(request):
    root = request.config.rootpath
    shown = invoke("audit", str(root / PROFILE))
    assert shown.stdout.replace(f"{root}/", "") in blocks(root), f"paste what `kit audit {PROFILE}` prints"


def blocks(root):
    return re.findall(r"```text\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_picture_of_a_table_has_rows_that_are_printed(request, quick):
    root = request.config.rootpath
    picture = ElementTree.parse(root / "docs/start/table.svg")
    texts = [node for node in picture.iter("{http://www.w3.org/2000/svg}text") if "t" in node.get("class").split()]
    rows = [[*row] for _, row in groupby(texts, lambda node: node.get("y"))]
    lines = {" ".join(line.split()) for line in quick.splitlines()}
    shown = [" ".join(node.text for node in row) for row in rows]
    assert all(any(line.startswith(words.removesuffix(" …")) for line in lines) for words in shown), shown
