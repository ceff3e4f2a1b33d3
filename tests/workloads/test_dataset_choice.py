from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kit.workloads.data import mnist
from kit.workloads.data.dataset import ensure, load
from kit.workloads.data.errors import DataError, DataUnavailableError
from kit.workloads.data.mnist import FILES

NAMES = [file.name for files in FILES.values() for file in files]


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Path:
    """KIT_DATA with no MNIST in it."""
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    return tmp_path / "mnist"


@pytest.fixture
def linked(empty, mnist_dir) -> Path:
    """KIT_DATA with links to the real files, for a test to spoil one of them."""
    empty.mkdir()
    for name in NAMES:
        (empty / name).symlink_to(mnist_dir / "mnist" / name)
    return empty


@pytest.mark.parametrize("choice", ["mnist", "auto"])
def test_mnist_where_it_is(real_mnist, choice):
    assert ensure(choice) == ("mnist", None)
    dataset = load(choice)
    assert (dataset.name, dataset.note) == ("mnist", None)
    assert dataset.train_images.shape == (60_000, 28, 28) and dataset.test_labels.shape == (10_000,)


@pytest.mark.parametrize("choice", ["mnist", "synthetic"])
def test_only_the_splits_asked_for(real_mnist, choice):
    test = load(choice, splits=("test",))
    assert test.train_images is None and test.train_labels is None
    images, labels = test.split("test")
    assert images.shape == (10_000, 28, 28) and labels.shape == (10_000,)
    with pytest.raises(ValueError, match="the train split was not loaded"):
        test.split("train")
    train = load(choice, splits=("train",))
    assert train.test_images is None and train.test_labels is None and train.train_images.shape == (60_000, 28, 28)


def test_a_split_needs_its_own_two_files_only(linked):
    for file in FILES["train"]:
        (linked / file.name).unlink()
    assert load("auto", splits=("test",)).name == "mnist"


def test_synthetic_asks_nobody(empty):
    assert ensure("synthetic") == ("synthetic", None)
    dataset = load("synthetic")
    assert (dataset.name, dataset.note) == ("synthetic", None)
    assert not empty.exists()


def test_auto_says_why_it_is_synthetic(empty):
    name, note = ensure("auto")
    assert name == "synthetic"
    assert note.startswith("synthetic in place of MNIST: train-images-idx3-ubyte.gz could not be downloaded (127.0.0.1")
    dataset = load("auto", splits=("test",))
    assert (dataset.name, dataset.note.split(":")[0]) == ("synthetic", "synthetic in place of MNIST")


@pytest.mark.parametrize("call", [ensure, load])
def test_mnist_by_name_is_never_synthetic(empty, call):
    with pytest.raises(DataUnavailableError) as caught:
        call("mnist")
    message = str(caught.value)
    assert "\n" not in message and message.endswith(f"into {empty} (KIT_DATA/mnist), or use --data synthetic")
    assert all(name in message for name in NAMES)


@pytest.mark.parametrize("choice", ["mnist", "auto"])
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_file_is_an_error_under_auto_too(linked, choice, name):
    archive = (linked / name).read_bytes()
    (linked / name).unlink()
    (linked / name).write_bytes(archive[: len(archive) // 2])
    with pytest.raises(DataError, match="truncated") as caught:
        ensure(choice)
    assert not isinstance(caught.value, DataUnavailableError)
    assert str(caught.value).startswith(str(linked / name))


def test_another_set_with_the_same_shapes_is_not_mnist(linked):
    labels = FILES["test"].labels
    other = bytearray(labels.read(linked / labels.name))
    other[8] = (other[8] + 1) % 10
    (linked / labels.name).unlink()
    (linked / labels.name).write_bytes(gzip.compress(bytes(other)))
    with pytest.raises(DataError, match=f"expected SHA-256 {labels.sha256}"):
        load("auto", splits=("test",))


def test_what_is_missing_is_downloaded_once(linked, monkeypatch, serve):
    labels = FILES["test"].labels.name
    mirror = serve({labels: (linked / labels).read_bytes()})
    monkeypatch.setattr(mnist, "MIRRORS", (mirror.url,))
    (linked / labels).unlink()
    assert ensure("auto") == ("mnist", None)
    assert load("mnist", splits=("test",)).name == "mnist"
    assert mirror.asked == [labels]


@pytest.mark.parametrize("choice", ["mnist", "auto"])
@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_chosen_folder_that_is_a_file_is_an_error_under_auto_too(tmp_path, monkeypatch, choice, below):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("KIT_DATA", str(file / below))
    with pytest.raises(DataError, match=r"found: Not a directory; .*KIT_DATA") as caught:
        ensure(choice)
    assert not isinstance(caught.value, DataUnavailableError)


def test_a_user_without_a_cache_folder_gets_synthetic_data(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.delenv("KIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    monkeypatch.setattr(mnist, "MIRRORS", ("http://127.0.0.1:9/",))
    assert ensure("auto").name == "synthetic"


def test_a_chosen_folder_that_is_not_there_yet_is_fine(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_DATA", str(tmp_path / "new"))
    assert ensure("auto").name == "synthetic"


@pytest.mark.parametrize("choice", ["mnist", "auto"])
def test_a_folder_that_cannot_be_looked_into_is_an_error_under_auto_too(monkeypatch, choice):
    monkeypatch.setenv("KIT_DATA", "x" * 300)
    with pytest.raises(DataError, match=r"found: File name too long; .*KIT_DATA") as caught:
        ensure(choice)
    assert not isinstance(caught.value, DataUnavailableError)
