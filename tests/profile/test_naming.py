from datetime import UTC, datetime

import pytest

from kit.profile.journal import journal_path
from kit.profile.naming import OutputError, profile_path
from kit.profile.sidecar import sidecar_path

CREATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def name(out):
    return profile_path(str(out), "quick", "0123456789abcdef", CREATED)


def test_a_folder_gets_a_name_within(tmp_path):
    assert name(tmp_path) == tmp_path / "quick-20260102T030405Z-01234567.json"
    assert name(tmp_path / "run.json") == tmp_path / "run.json"


def test_an_interrupted_run_is_said_even_where_its_profile_is_there(tmp_path):
    path = tmp_path / "run.json"
    path.touch()
    with pytest.raises(OutputError, match="is there already"):
        name(path)
    journal_path(path).touch()
    with pytest.raises(OutputError, match="interrupted run: go on with `kit run --resume --out"):
        name(path)


def test_the_sidecar_of_another_run_is_not_overwritten(tmp_path):
    path = tmp_path / "run.json"
    sidecar_path(path, "1a2b3c4d" * 8).touch()
    with pytest.raises(OutputError, match=r"run\.json\.1a2b3c4d\.steps\.npz: is there already"):
        name(path)


def test_nor_is_one_of_an_earlier_kit(tmp_path):
    (tmp_path / "run.json.steps.npz").touch()
    with pytest.raises(OutputError, match=r"run\.json\.steps\.npz: is there already"):
        name(tmp_path / "run.json")
    assert name(tmp_path / "run") == tmp_path / "run"


@pytest.mark.parametrize("length", [237, 250, 256, 5000])
def test_a_name_too_long_for_any_of_the_files_is_refused_before_measuring(tmp_path, length):
    with pytest.raises(OutputError, match="File name too long"):
        name(tmp_path / ("n" * length))
    assert name(tmp_path / ("n" * 236)).name == "n" * 236
