"""`kit plot`: which file it writes, and its one line where it writes none."""

import subprocess
import sys

import profile_builder as b
import pytest
from kit_process import invoke
from matplotlib import image


@pytest.fixture
def folder(tmp_path, monkeypatch):
    plan = b.group("g", *(b.member("torch", float(batch), batch=batch) for batch in (1, 8)))
    b.write(tmp_path / "p.json", b.profile(plan, rounds=2, cycles=3, compare=("batch",)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kit(*arguments):
    return invoke("plot", *arguments)


def test_the_command_writes_what_is_asked_for_and_never_over_another_file(folder):
    assert kit("p.json").stdout == "batch.svg\n" and b"time per sample" in (folder / "batch.svg").read_bytes()
    assert "--force" in str(kit("p.json").exception)
    assert kit("p.json", "-o", "batch.svg", "--kind", "times", "--force").exit_code == 0
    assert b"Step times" in (folder / "batch.svg").read_bytes()
    assert kit("p.json", "-o", "a.png", "--dpi", "100", "--size", "7x4").exit_code == 0
    assert image.imread(folder / "a.png").shape[:2] == (400, 700)
    for name in ("a.pdf", "b.pdf"):
        assert kit("p.json", "-o", name).exit_code == 0
    assert (folder / "a.pdf").read_bytes().startswith(b"%PDF")
    assert (folder / "a.pdf").read_bytes() == (folder / "b.pdf").read_bytes()


def test_the_kinds_are_known_without_what_draws_them():
    code = "import sys; from kit.cli.report_plot_export import PLOT_KIND as kind; assert kind.choices"
    code += "; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
