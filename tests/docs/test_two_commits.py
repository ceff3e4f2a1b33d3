"""The recipe for two commits of docs/how-to/compare-versions.md, as it stands there, in a repository with a package."""

import os
import re
import subprocess
import sys

import pytest
from kit_process import REPOSITORY

from kit.cli.compare_and_audit import run_comparison
from kit.import_order import module_command

PAGE = (REPOSITORY / "docs/how-to/compare-versions.md").read_text(encoding="utf-8")
(RECIPE,) = re.findall(r"```sh\n(git worktree.*?)```", PAGE, re.DOTALL)
PACKAGE = "import numpy as np\n\ndef work(x):\n    for _ in range({times}):\n        y = np.sin(x)\n    return y\n"
PROGRAM = """
import numpy as np
from my_package import work

def program(batch, device):
    x = np.linspace(0, 1, 5 * batch)
    return lambda: work(x)
"""


@pytest.mark.quiet
@pytest.mark.slow  # the test of the action shows that the same code twice is refused
def test_the_recipe_shows_a_commit_that_does_three_times_the_work(tmp_path):
    repository, command = tmp_path / "repository", tmp_path / "bin/kit"
    for folder in (repository / "my_package", repository / "benchmarks", command.parent):
        folder.mkdir(parents=True)
    words = module_command(sys.executable, "kit")
    command.write_text(f"#!/bin/sh\nexec {words[0]} {words[1]} {words[2]} '{words[3]}' kit \"$@\"\n")
    command.chmod(0o755)

    def git(*words):
        name = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *words], cwd=repository, check=True, capture_output=True)

    git("init", "--quiet")
    (repository / "benchmarks/model.py").write_text(PROGRAM)
    for times in (200, 600):
        (repository / "my_package/__init__.py").write_text(PACKAGE.format(times=times))
        git("add", "--all")
        git("commit", "--quiet", "--message", "work")
    done = subprocess.run(
        ["bash", "-c", RECIPE], cwd=repository, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    comparison = run_comparison(tmp_path / "commits.json")
    (row,) = (row for row in comparison.rows if not row.is_baseline)
    assert not row.kept_apart, done.stderr
    if done.returncode == 5 and row.value("is_disturbed"):
        pytest.skip(f"other programs disturbed every cycle: {done.stderr}")
    assert done.returncode == 1 and row.versus.ratio == pytest.approx(3, rel=0.3), done.stderr
