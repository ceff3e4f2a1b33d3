import json
import subprocess
import sys

import click
import pytest
from profile_builder import build_profile, six_cells

from kit.cli.profile_paths import profile_paths
from kit.profile.store import write_profile


@pytest.fixture
def folder(tmp_path):
    """Three profiles, one of them with a sidecar's name beside it."""
    for name in ("b.json", "a.json", "c.json"):
        write_profile(tmp_path / name, build_profile(six_cells(), id=name))
    (tmp_path / "a.json.steps.npz").write_bytes(b"")
    (tmp_path / "b.json.journal").write_bytes(b"")
    return tmp_path


def kit(*arguments):
    command = [sys.executable, "-m", "kit", "compare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_folder_stands_for_its_profiles_by_name(folder):
    assert profile_paths([folder]) == [folder / "a.json", folder / "b.json", folder / "c.json"]
    assert profile_paths([folder / "c.json", folder])[:2] == [folder / "c.json", folder / "a.json"]


def test_a_path_that_is_no_folder_is_left_to_be_read(tmp_path):
    assert profile_paths([tmp_path / "none.json"]) == [tmp_path / "none.json"]


def test_a_folder_without_profiles_is_one_line(tmp_path):
    with pytest.raises(click.UsageError, match="no profile in this folder"):
        profile_paths([tmp_path])
    done = kit(tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_folder_is_compared(folder):
    done = kit(folder, "--json")
    assert done.returncode == 0, done.stderr
    assert [row["profile"] for row in json.loads(done.stdout)["rows"]] == ["a", "b", "c"] * 6


def test_what_is_no_profile_in_a_folder_is_one_line(folder):
    (folder / "notes.json").write_text("[]")
    done = kit(folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "notes.json: JSON, but not a profile" in done.stderr
