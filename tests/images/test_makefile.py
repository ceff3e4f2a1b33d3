import os
import subprocess

import pytest

from kit.devices import DEVICES
from kit.engine.image import VERSION_LABEL
from kit.version import __version__


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
    assert "steadykit: no-such-python is not installed; install Python 3.11 to 3.13" in done.stderr


def test_an_image_has_the_version_of_the_kit_and_the_label_that_a_launch_looks_for(root):
    # An engine that shows what it is given.
    command = ["make", "--no-print-directory", *(f"image-{target}" for target in DEVICES), "DOCKER=echo"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.count(f"--build-arg KIT_VERSION={__version__} ") == len(DEVICES)
    for target in DEVICES:
        lines = (root / f"Dockerfile.{target}").read_text().splitlines()
        assert any(f'{VERSION_LABEL}="${{KIT_VERSION}}"' in line for line in lines)
        assert not [line for line in lines if __version__ in line], "a version that stands here stays when it is raised"
