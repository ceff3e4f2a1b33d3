"""docs/generate.py: the pages are those of the code, a stale one is named, and `make docs` looks for it first."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit.cli import VERBS
from kit.environment import VARIABLES

ROOT = Path(__file__).parents[2]
# Of C code, of image builds, of tests.
NOT_OURS = re.compile(r"KIT_(TSC|CNTVCT|MONOTONIC_RAW|INLINE|VERSION|TEST_\w+)\b")


@pytest.fixture(scope="module")
def generate():
    sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "docs"))


def test_no_page_is_stale(generate, capsys):
    assert generate.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", ["commands.md", "audit/index.md", "profile.schema.json"])
def test_a_stale_page_is_named_with_the_command_and_written_anew(generate, capsys, tmp_path, name):
    folder = tmp_path / "reference"
    shutil.copytree(ROOT / "docs/reference", folder)
    planted = (folder / name).read_text() + "An option that is gone.\n"
    (folder / name).write_text(planted)
    assert generate.main(["--check"], folder) == 1
    assert capsys.readouterr().out == f"docs/reference/{name} is stale; run: make reference\n"
    assert (folder / name).read_text() == planted, "--check writes nothing"
    assert generate.main([], folder) == 0
    assert generate.main(["--check"], folder) == 0


def test_make_docs_looks_for_stale_pages_before_it_builds_the_site():
    shown = subprocess.run(["make", "-n", "docs"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert 0 < shown.index("docs/generate.py --check") < shown.index("mkdocs build --strict")
    (built,) = [line for line in shown.splitlines() if "mkdocs build" in line]
    assert "quiet" not in built, "with it --strict counts no warning"


def test_every_command_and_option_is_listed(generate):
    page = generate.commands_page()
    sections = re.findall(r"^## kit (.*)$", page, re.MULTILINE)
    assert [name for name in sections if " " not in name] == list(VERBS)
    assert "data fetch" in sections
    assert "| `--batch N,…` |" in page
    assert "`bfloat16`, `tf32`" in page
    cells = [line.replace("\\|", "").count("|") for line in page.splitlines() if line.startswith("|")]
    assert set(cells) == {4}, "an option's text ends its cell"


def test_every_command_has_its_exit_codes():
    page = (ROOT / "docs/reference/exit-codes.md").read_text()
    assert [verb for verb in VERBS if f"kit {verb}" not in page] == []


def test_every_variable_that_the_code_names_is_in_the_table():
    known = {variable.name for variable in VARIABLES}
    files = [*(ROOT / "kit").rglob("*.py"), *ROOT.glob("Dockerfile.*"), ROOT / "images/entrypoint"]
    named = {
        name
        for file in files
        for name in re.findall(r"\bKIT_[A-Z_]+", NOT_OURS.sub("", file.read_text()))
        if not name.startswith("KIT_PYTHON_")
    }
    assert named - known == set()
    assert len(known) == len(VARIABLES)
