"""The tutorial, typed in as a new user would: each command works in an empty folder, and the profiles answer."""

import os
import re
import subprocess
import sys

import pytest
from kit_process import REPOSITORY

from kit.profile.store import read_profile

PAGE = (REPOSITORY / "docs/start/tutorial.md").read_text(encoding="utf-8")
# The page promises five minutes. In the quick form, with fewer rounds and a smaller budget, its commands take a tenth.
SHORTER = (("kit run ", "kit run --quick "), ("--rounds 4", "--rounds 2"), ("--budget 180", "--budget 10"))
LIMIT_S = 600


@pytest.mark.slow
@pytest.mark.frameworks
def test_each_command_of_the_tutorial_works(tmp_path):
    (model,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    for written, typed in SHORTER:
        assert written in commands
        commands = commands.replace(written, typed)
    (tmp_path / "my_model.py").write_text(model)
    command = tmp_path / "bin/kit"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kit "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    first, threads = (read_profile(tmp_path / name) for name in ("first.json", "threads.json"))
    assert [result.cell.workload for result in first.cells] == ["wide", "narrow"]
    # Beside other programs a round is measured again.
    assert min(len(result.launches) for result in first.cells) >= 2
    assert [result.cell.variant for result in threads.cells] == ["default", "one-thread"]
    assert "narrow" in done.stdout
    # A run whose output is redirected prints its table to standard error.
    assert "wide: " in done.stderr and "one-thread" in done.stderr
