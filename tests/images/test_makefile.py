import os
import subprocess

import pytest


@pytest.fixture
def make(root, tmp_path):
    """Run make with the real Makefile in a folder of its own, and an extra one that shows variables."""
    (tmp_path / "Makefile").write_text((root / "Makefile").read_text())
    (tmp_path / "show.mk").write_text("show:\n\t@echo python=$(PYTHON) index=$(TORCH_INDEX)\n")

    def run(*arguments, **environment):
        of_make = ("PYTHON", "TORCH_INDEX", "MAKEFLAGS", "MAKEOVERRIDES")
        inherited = {key: value for key, value in os.environ.items() if key not in of_make}
        command = ["make", "--no-print-directory", "-f", "Makefile", "-f", "show.mk", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env={**inherited, **environment}, capture_output=True, text=True, check=False
        )

    return run


def test_a_python_that_does_not_run_is_passed_over(make, tmp_path):
    for name, body in {"python3.13": "exit 127", "python3.12": "exit 0", "python3.11": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    assert "python=python3.12 " in make("show", PATH=f"{tmp_path}:{os.environ['PATH']}").stdout


def test_a_torch_index_can_be_turned_off(make):
    assert " index=https://" in make("show").stdout
    assert make("show", "TORCH_INDEX=").stdout.endswith(" index=\n")


def test_no_python_is_one_line(make):
    done = make("setup", "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "steadykit: no-such-python is not there: install Python 3.11 to 3.13" in done.stderr
