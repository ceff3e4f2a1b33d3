"""The fixture `steadykit` in sessions of pytest of its own, whose tests measure real programs."""

import os
import subprocess
import sys
import tomllib
from xml.etree import ElementTree

import pytest
from kit_process import REPOSITORY

import kit

# The steps of `more` do five times the work; 50 % is far from both, also beside other programs.
TESTS = """
import numpy as np
import pytest

def repeated(count, batch):
    x = np.linspace(0, 1, 40 * batch)
    return lambda: [np.sin(x) for _ in range(count)][-1]

def once(batch, device):
    return repeated(100, batch)

def more(batch, device):
    return repeated(500, batch)

def broken(batch, device):
    raise ValueError("planted")

SHORT = dict(rounds=3, quick=True, energy_s=0, batch=16, at_most_slower_pct=50)

def test_slower(steadykit):
    steadykit.compare({"old": once, "new": more}, **SHORT)

def test_faster(steadykit):
    compared = steadykit.compare({"old": more, "new": once}, **SHORT)
    (new,) = (row for row in compared.comparison.rows if row.name == "new")
    assert new.versus.ratio < 1

def test_broken(steadykit):
    steadykit.compare({"old": once, "new": broken}, **SHORT | {"rounds": 1})

def test_gone(steadykit):
    steadykit.compare({"old": "gone.py", "new": once})

def test_without():
    import sys
    assert not {"numpy", "click", "msgspec", "kit.api"} & {*BEFORE}
"""
# What pytest had imported before this file asked for anything.
FIRST = "import sys\nBEFORE = [*sys.modules]\n"

needs_measure = pytest.mark.skipif(not hasattr(kit, "measure"), reason="this kit has no kit.measure")


def outcomes(folder, *names):
    """Run these tests; return what became of each, with its message."""
    (folder / "test_speed.py").write_text(FIRST + TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "kit.pytest_plugin", "--junitxml=junit.xml", "-k", " or ".join(names)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout
    cases = ElementTree.parse(folder / "junit.xml").iter("testcase")
    became = {}
    for case in cases:
        ends = [part for part in case if not part.tag.startswith("system")]
        became[case.get("name").removeprefix("test_")] = (
            (ends[0].tag, ends[0].get("message")) if ends else ("passed", "")
        )
    return became


@pytest.mark.quiet
@pytest.mark.slow
@needs_measure
def test_a_slower_program_fails_the_test_with_its_verdict(tmp_path):
    became = outcomes(tmp_path, "slower", "faster", "broken")
    assert became["broken"][0] == "failure" and "planted" in became["broken"][1]
    for outcome, message in became.values():
        if outcome == "skipped":
            pytest.skip(f"other programs use this machine: {message}")
    assert became["faster"] == ("passed", "")
    outcome, message = became["slower"]
    assert outcome == "failure" and "is new more than 50 % slower than old? yes: " in message


@needs_measure
def test_what_cannot_be_measured_fails_in_one_line(tmp_path):
    outcome, message = outcomes(tmp_path, "gone")["gone"]
    assert outcome == "failure" and "gone.py does not exist" in message and "\n" not in message


def test_it_costs_nothing_where_no_test_uses_it(tmp_path):
    assert outcomes(tmp_path, "without") == {"without": ("passed", "")}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"steadykit": "kit.pytest_plugin"}
