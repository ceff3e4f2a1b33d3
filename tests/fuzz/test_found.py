"""What the fuzzer found stays mended, and the fuzzer itself still runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.chain import exercise_bytes
from fuzz.mutations import sealed
from fuzz.seeds import built, seeds

HERE = Path(__file__).parent
# As they were found: crash-*, timeout-*, oom-* and slow-unit-* of libFuzzer, and what was reduced by hand.
FOUND = sorted(file for file in (HERE / "found").iterdir() if file.suffix != ".md")


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.json"
    path.write_bytes(sealed(built()))
    return path


@pytest.mark.parametrize("name", seeds())
def test_what_the_fuzzer_begins_with_is_read(tmp_path, other, name):
    assert exercise_bytes(seeds()[name], tmp_path, other)


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.name)
def test_what_was_found_keeps_its_promises(tmp_path, other, file):
    exercise_bytes(file.read_bytes(), tmp_path, other)


def test_the_fuzzer_runs():
    pytest.importorskip("atheris")
    command = [sys.executable, str(HERE / "fuzz_profile.py"), "--seconds", "5", "--seed", "1"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert answer.returncode == 0, answer.stderr[-4000:]
    assert "stat::number_of_executed_units" in answer.stderr
