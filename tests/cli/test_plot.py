"""`kit plot`: which file it writes, and its one line where it writes none."""

import re
import subprocess
import sys

import profile_builder as b
import pytest
from click import ClickException
from click.testing import CliRunner

from kit.cli.app import app


@pytest.fixture
def folder(tmp_path, monkeypatch):
    plan = b.group("g", *(b.member("torch", float(batch), batch=batch) for batch in (1, 8)))
    b.write(tmp_path / "p.json", b.profile(plan, rounds=2, cycles=3, compare=("batch",)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kit(*arguments):
    return CliRunner().invoke(app, ["plot", *arguments], standalone_mode=False)


def test_the_command_writes_what_is_asked_for(folder):
    assert kit("p.json", "-o", "a.svg").exit_code == 0
    first = (folder / "a.svg").read_bytes()
    assert b"time per sample" in first
    refused = kit("p.json", "-o", "a.svg", "--kind", "blocks")
    assert "--force" in str(refused.exception) and (folder / "a.svg").read_bytes() == first
    assert kit("p.json", "-o", "a.svg", "--kind", "blocks", "--force").exit_code == 0
    assert b"Step time of each block" in (folder / "a.svg").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "a.gif"], r"\.svg, \.png or \.pdf"),
        (["-o", "a"], r"\.svg, \.png or \.pdf"),
        (["-o", "none/a.svg"], "the folder does not exist"),
        (["-o", "a.svg", "--kind", "pie"], "pie"),
        (["-o", "a.svg", "--kind", "layers"], "no cell has layers"),
        (["-o", "a.svg", "--kind", "gain"], "two measured profiles"),
        (["-o", "a.svg", "--kind", "batch", "--baseline", "jax"], "--baseline"),
        (["-o", "a.svg", "--kind", "rounds", "--baseline", "numpy"], "no baseline 'numpy'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(folder, arguments, says):
    result = kit("p.json", *arguments)
    line = result.exception.format_message() if isinstance(result.exception, ClickException) else str(result.exception)
    assert re.search(says, line) and "\n" not in line
    assert getattr(result.exception, "exit_code", None) == 2
    assert [path.name for path in folder.iterdir()] == ["p.json"]


def test_without_a_file_it_is_called_like_its_kind_and_never_written_over(folder):
    result = kit("p.json")
    assert result.stdout == "batch.svg\n" and (folder / "batch.svg").is_file()
    assert "--force" in str(kit("p.json").exception)
    written = []
    for name in ("a.pdf", "b.pdf"):
        assert kit("p.json", "-o", name).exit_code == 0
        written.append((folder / name).read_bytes())
    assert written[0].startswith(b"%PDF") and written[0] == written[1]


def test_two_profiles_of_lone_cells_are_sent_to_the_kind_that_draws_them(folder):
    for label in ("box", "host"):
        b.write(folder / f"{label}.json", b.profile(b.group("g", b.member("torch", 2.0)), id=label, rounds=2, cycles=3))
    assert "--kind gain" in str(kit("box.json", "host.json").exception)
    assert kit("box.json", "host.json", "--kind", "gain").exit_code == 0
    assert "gain" not in str(kit("box.json").exception)


def test_only_drawing_imports_matplotlib():
    code = "import sys, kit.cli.app, kit.cli.plot, kit.report.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
