"""What documents published, as profiles: marked as such, and as the script writes them."""

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


@pytest.mark.parametrize(
    ("name", "key", "figure", "value"),
    [
        ("five-nets", "cnn/unknown/gpu", "train_gain_pct", 3332),
        ("dblstm-har", "units=256)/tensorflow/tpu", "train_gain_pct", 5500),
        # The document calls it step time; 94 µs × 60 000 are the 5.6 s of its epoch.
        ("cnn-batch", "gpu/fit/b256/", "train_sample_ns", pytest.approx(5.6e9 / 60_000, rel=0.02)),
        ("batch-sweep", "cpu/fit/b10000/", "train_sample_ns", pytest.approx(1.386e5, rel=1e-3)),
        ("frameworks-cnn", "torch/cpu", "accuracy", 0.9434),
    ],
)
def test_a_figure_is_what_its_document_has(name, key, figure, value):
    (result,) = [result for result in read_profile(FOLDER / f"{name}.json").cells if key in result.key]
    assert {published.figure: published.value for published in result.published}[figure] == value
