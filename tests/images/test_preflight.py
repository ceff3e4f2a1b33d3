import os
import runpy
import subprocess
import sys
import sysconfig
from types import SimpleNamespace

import pytest


@pytest.fixture
def preflight(root):
    """The script's functions; it is run by its path, and is no package's."""
    return SimpleNamespace(**runpy.run_path(str(root / "images" / "preflight.py")))


def refused(root, **environment):
    """The one line of a machine that it refuses."""
    done = subprocess.run(
        [sys.executable, root / "images" / "preflight.py"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("version", [(2, 7), (3, 10), (3, 14), (4, 0)])
def test_a_python_out_of_the_range_is_refused_with_the_range(preflight, version):
    fault = preflight.python_fault(*version)
    assert f"Python {version[0]}.{version[1]} " in fault
    assert "3.11 to 3.13" in fault
    assert [preflight.python_fault(3, minor) for minor in (11, 12, 13)] == [None] * 3


def test_another_system_is_refused(preflight):
    assert "Linux" in preflight.system_fault("darwin")
    assert preflight.system_fault("linux") is None


def test_the_range_is_that_of_the_package(preflight, root):
    declared = 'requires-python = ">={}.{},<{}.{}"'.format(
        *preflight.OLDEST, preflight.NEWEST[0], preflight.NEWEST[1] + 1
    )
    assert declared in (root / "pyproject.toml").read_text()


def test_a_missing_compiler_is_one_line_that_says_what_to_install(root, tmp_path):
    assert refused(root, PATH=str(tmp_path), CC="").startswith("steadykit: no C compiler: install gcc")
    assert "no-such-cc" in refused(root, CC="no-such-cc -O2")


def test_missing_headers_are_named_with_the_package_that_has_them(preflight, tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    assert f"no {tmp_path / 'Python.h'}" in preflight.headers_fault()
    assert "python3-dev" in preflight.headers_fault()
