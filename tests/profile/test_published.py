"""What documents published, as profiles: marked as such, and as the script writes them."""

import runpy
import shutil
from pathlib import Path

import pytest

from kit.profile.store import read_profile

FOLDER = Path(__file__).parents[2] / "profiles" / "published"
NAMES = ["five-nets", "dblstm-har", "cnn-batch", "batch-sweep", "frameworks-cnn"]


@pytest.mark.parametrize("name", NAMES)
def test_a_published_profile_names_its_document_and_has_no_launch(name):
    profile = read_profile(FOLDER / f"{name}.json")
    assert not profile.measured
    assert profile.source and ".txt" not in profile.source  # a name of a file that nobody has
    assert profile.suite.name == name
    assert all(not result.launches and result.published for result in profile.cells)


def test_the_files_are_what_the_script_writes(tmp_path):
    shutil.copy(FOLDER / "write.py", tmp_path)
    runpy.run_path(str(tmp_path / "write.py"), run_name="__main__")
    for name in NAMES:
        written = (tmp_path / f"{name}.json").read_bytes()
        assert written == (FOLDER / f"{name}.json").read_bytes(), "run: python profiles/published/write.py"


def figure(name, key, figure):
    (cell,) = [one for one in read_profile(FOLDER / f"{name}.json").cells if key in one.key]
    return {one.figure: one.value for one in cell.published}[figure]


def test_a_few_figures_as_their_documents_have_them():
    assert figure("five-nets", "cnn/unknown/gpu", "train_gain_pct") == 3332
    assert figure("dblstm-har", "units=256)/tensorflow/tpu", "train_gain_pct") == 5500
    # The document calls it step time; 94 µs × 60 000 are the 5.6 s of its epoch.
    assert figure("cnn-batch", "gpu/fit/b256/", "train_sample_ns") * 60_000 / 1e9 == pytest.approx(5.6, abs=0.1)
    assert figure("batch-sweep", "cpu/fit/b10000/", "train_sample_ns") == pytest.approx(1.386e5, rel=1e-3)
    assert figure("frameworks-cnn", "torch/cpu", "accuracy") == 0.9434
