import os
import subprocess
import sys

import pytest


@pytest.fixture
def preflight(script):
    return script("preflight")


def run(root, **environment):
    return subprocess.run(
        [sys.executable, root / "images" / "preflight.py"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_the_supported_pythons_pass(preflight, version):
    assert preflight.python_fault(*version) is None


@pytest.mark.parametrize("version", [(2, 7), (3, 10), (3, 14), (4, 0)])
def test_another_python_is_refused_with_the_range(preflight, version):
    fault = preflight.python_fault(*version)
    assert f"Python {version[0]}.{version[1]} " in fault
    assert "3.11 to 3.13" in fault


def test_the_range_is_the_one_of_the_package(preflight, root):
    declared = 'requires-python = ">={}.{},<{}.{}"'.format(
        *preflight.OLDEST, preflight.NEWEST[0], preflight.NEWEST[1] + 1
    )
    assert declared in (root / "pyproject.toml").read_text()


def test_this_machine_passes_silently(root):
    done = run(root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_missing_compiler_is_one_line_that_says_what_to_install(root, tmp_path):
    done = run(root, PATH=str(tmp_path), CC="")
    assert done.returncode == 1
    assert done.stderr.startswith("steadykit: no C compiler: install gcc")
    assert done.stderr.count("\n") == 1


def test_a_compiler_that_is_named_but_absent_is_named(root):
    done = run(root, CC="no-such-cc -O2")
    assert done.returncode == 1
    assert "no-such-cc" in done.stderr


def test_missing_headers_are_named_with_the_package_that_has_them(preflight, tmp_path, monkeypatch):
    monkeypatch.setattr(preflight.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    assert f"no {tmp_path / 'Python.h'}" in preflight.headers_fault()
    assert "python3-dev" in preflight.headers_fault()
