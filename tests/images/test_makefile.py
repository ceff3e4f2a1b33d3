import os
import re
import subprocess

import pytest


@pytest.fixture
def make(root, tmp_path):
    """Run make with the real Makefile in a folder of its own, and an extra one that shows variables."""
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "Makefile").write_text((root / "Makefile").read_text())
    (clone / "show.mk").write_text("show:\n\t@echo python=$(PYTHON) index=$(TORCH_INDEX)\n")

    def run(*arguments, **environment):
        inherited = {key: value for key, value in os.environ.items() if key not in ("PYTHON", "TORCH_INDEX")}
        return subprocess.run(
            ["make", "--no-print-directory", *arguments],
            cwd=clone,
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def show(make, *arguments, **environment):
    done = make("-f", "Makefile", "-f", "show.mk", "show", *arguments, **environment)
    assert done.returncode == 0, done.stderr
    return dict(word.split("=", 1) for word in done.stdout.split())


def test_plain_make_lists_every_target_that_is_for_people(root, make):
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (root / "Makefile").read_text(), re.MULTILINE)
    listed = [line.split()[1] for line in make().stdout.splitlines()]
    assert sorted(listed) == sorted(phony.split())


def test_setup_ends_with_what_to_type_next(make):
    last = make("-o", ".venv/.kit", "setup").stdout.splitlines()[-1]
    assert ". .venv/bin/activate" in last and "kit run --quick" in last


def test_a_python_that_does_not_run_is_passed_over(make, tmp_path):
    shims = tmp_path / "shims"
    shims.mkdir()
    for name, body in {"python3.13": "exit 127", "python3.12": "exit 0", "python3.11": "exit 0"}.items():
        (shims / name).write_text(f"#!/bin/sh\n{body}\n")
        (shims / name).chmod(0o755)
    assert show(make, PATH=f"{shims}:{os.environ['PATH']}")["python"] == "python3.12"


def test_a_torch_index_can_be_turned_off(make):
    assert show(make)["index"].startswith("https://")
    assert show(make, "TORCH_INDEX=")["index"] == ""


def test_no_python_is_one_line(make):
    done = make("setup", "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "steadykit: no-such-python is not there: install Python 3.11 to 3.13" in done.stderr
