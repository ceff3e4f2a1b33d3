"""`kit compare` as a process: broken pipes, full disks, and what it imports."""

import subprocess
import sys

import profile_builder as b
import pytest
from kit_process import invoke


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("profiles")
    b.write(made / "cells.json", b.profile())
    (made / "not.txt").write_text('{"a": 1}')
    return made


def test_many_profiles_are_read_in_processes_and_what_is_wrong_with_one_is_said(tmp_path):
    for number in range(33):
        torch = b.member("torch", 2.0 + number % 2)
        built = b.profile(b.group("g", torch), id=f"run-{number}", label="ab"[number % 2], rounds=3, cycles=3)
        b.write(tmp_path / f"{number:02}.json", built)
    printed = invoke("compare", str(tmp_path), "--format", "csv")
    assert printed.exception is None and len(printed.stdout.splitlines()) == 1 + 2, "a row for each side"
    (tmp_path / "07.json").write_text("{")
    wrong = invoke("compare", str(tmp_path))
    assert "07.json is truncated" in str(wrong.exception)


SLOW = {"numpy", "scipy", "rich", "msgspec", "tensorflow", "torch", "jax", "keras"}
PROBE = """
import sys
sys.argv = ["kit", *sys.argv[1:]]
from kit.cli import main
try:
    main()
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(("words", "allowed"), [(["--help"], 0), (["compare", "cells.json"], 4)])
def test_nothing_slow_is_imported_that_is_not_needed(folder, words, allowed):
    done = subprocess.run([sys.executable, "-c", PROBE, *words], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout and len(SLOW & set(done.stderr.split())) <= allowed
