from __future__ import annotations

import numpy as np
import pytest

from kit.workloads.data.errors import DataError
from kit.workloads.data.mnist import check_pair, fetch_missing, mnist_folder, read_split


def test_the_folder_is_kit_data_or_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    assert mnist_folder() == tmp_path / "mnist"
    for unset in (lambda: monkeypatch.setenv("KIT_DATA", ""), lambda: monkeypatch.delenv("KIT_DATA")):
        unset()
        assert mnist_folder().is_absolute() and "steadykit" in mnist_folder().parts
        assert tmp_path not in mnist_folder().parents


def test_the_real_thing(real_mnist):
    images, labels = read_split("test")
    assert images.shape == (10_000, 28, 28) and labels.shape == (10_000,)
    assert labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    # Digits of each class in the test split, as published with the set.
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    images, labels = read_split("train")
    assert images.shape == (60_000, 28, 28)
    assert images.mean() / 255 == pytest.approx(0.1307, abs=1e-4)  # the mean that everybody normalizes by
    assert labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


def test_a_folder_with_the_files_is_never_written(mnist_dir, tmp_path, monkeypatch):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for archive in (mnist_dir / "mnist").glob("*.gz"):
        (folder / archive.name).symlink_to(archive)
    folder.chmod(0o555)
    before = folder.stat().st_mtime_ns
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    fetch_missing(("train", "test"))
    read_split("test")
    assert folder.stat().st_mtime_ns == before and len(list(folder.iterdir())) == 4
    folder.chmod(0o755)


IMAGES = np.zeros((20, 28, 28), np.uint8)
LABELS = np.arange(20, dtype=np.uint8) % 10


@pytest.mark.parametrize(
    ("images", "labels", "complaint"),
    [
        (IMAGES[:19], LABELS, r"expected images of shape \(20, 28, 28\), found \(19, 28, 28\)"),
        (IMAGES[:, :27], LABELS, r"found \(20, 27, 28\)"),
        (IMAGES, LABELS[:19], "expected 20 labels, one an image, found 19"),
        (IMAGES, LABELS + 1, r"expected labels in 0\.\.9, found 10"),
    ],
)
def test_a_pair_that_does_not_agree(images, labels, complaint):
    with pytest.raises(DataError, match=f"^folder: .*{complaint}.*; delete"):
        check_pair(images, labels, 20, "folder")


def test_a_pair_that_agrees():
    check_pair(IMAGES, LABELS, 20, "folder")
