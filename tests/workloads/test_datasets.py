"""Data sets: files proved on a disk that may be damaged, fetched from mirrors that may be bad, and what a run gets."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import struct
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from mirror import NOBODY_LISTENS
from refusals import refused

from kit.workloads.datasets import MNIST, SPLITS, UCI_HAR, DataFile, DataUnavailableError, data_folder
from kit.workloads.made_data import synthetic
from kit.workloads.workload_catalog import DATASETS, Resolved, dataset, resolve_data

NAMES = [file.name for split in SPLITS for file in MNIST.files[split]]
ROWS = {"train": 60, "test": 30}
GARBAGE = b"<html>Please log in to the hotel's network</html>"


def idx(elements: np.ndarray) -> bytes:
    """An IDX file of unsigned bytes: type 8, the sides in big-endian order, then the elements."""
    return struct.pack(f">HBB{elements.ndim}I", 0, 8, elements.ndim, *elements.shape) + elements.tobytes()


# Images and labels from a seed; every class is among the labels.
MADE = {
    split: (np.random.default_rng(rows).integers(0, 256, (rows, 28, 28), np.uint8), np.arange(rows, dtype="u1") % 10)
    for split, rows in ROWS.items()
}
CONTENTS = dict(zip(NAMES, [idx(array) for split in SPLITS for array in MADE[split]], strict=True))
ARCHIVES = {name: gzip.compress(content) for name, content in CONTENTS.items()}
KNOWN = {
    split: tuple(DataFile(file.name, (hashlib.sha256(CONTENTS[file.name]).hexdigest(),)) for file in MNIST.files[split])
    for split in SPLITS
}


@pytest.fixture
def mnist(tmp_path, monkeypatch):
    """MNIST, if what is made above were it: known, and as yet not in KIT_DATA."""
    monkeypatch.setenv("KIT_DATA", str(tmp_path))

    def known(*mirrors: str):
        data = replace(MNIST, sizes=ROWS, files=KNOWN, mirrors=mirrors)
        monkeypatch.setitem(DATASETS, "mnist", data)
        return data

    return known


@pytest.fixture
def here(mnist):
    """The same, in its folder: each file gzipped otherwise than at its mirrors."""
    data = mnist()
    data.folder.mkdir()
    for name, content in CONTENTS.items():
        (data.folder / name).write_bytes(gzip.compress(content, 0))
    return data


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("split", SPLITS)
def test_synthetic_data_are_what_the_data_set_says(name, split):
    data = dataset("synthetic", name)
    inputs, targets = data.load(split)
    assert inputs.shape == (data.samples(split), *data.sample_shape) and inputs.dtype == np.dtype(data.dtype)
    assert targets.shape == (data.samples(split),)
    if name == "tokens":
        # Small numbers are the more frequent ones.
        assert inputs.min() == 0 and inputs.max() < data.classes
        assert np.median(inputs) < 0.25 * data.classes
    else:
        seen = set(np.unique(targets))
        assert seen <= set(range(data.classes)) and len(seen) > 0.6 * data.classes


@pytest.mark.parametrize("data", [MNIST, replace(UCI_HAR, sizes={"train": 701, "test": 303})], ids=["images", "floats"])
def test_synthetic_classes_are_even_and_can_be_learnt(data):
    """The nearest class mean of 1000 training samples knows the test samples; a single value of them does not."""
    (inputs, targets), (test, test_targets) = (synthetic(data).load(split) for split in SPLITS)
    fractions = np.bincount(targets, minlength=data.classes) / len(targets)
    assert fractions == pytest.approx([1 / data.classes] * data.classes, abs=0.03)
    few, test = (array.reshape(len(array), -1).astype(np.float32) for array in (inputs[:1000], test[:2000]))
    means = np.stack([few[targets[:1000] == label].mean(axis=0) for label in range(data.classes)])
    scores = test @ means.T - (means**2).sum(axis=1) / 2
    assert (scores.argmax(axis=1) == test_targets[:2000]).mean() > 0.95
    by_one_value = np.abs(test[:, 400, None] - means[:, 400]).argmin(axis=1)
    assert (by_one_value == test_targets[:2000]).mean() < 0.5


def test_synthetic_data_are_the_same_bytes_on_every_machine():
    images, labels = dataset("synthetic", "mnist").load("test")
    sha256 = hashlib.sha256(labels.tobytes() + images.tobytes()).hexdigest()
    assert sha256 == "d3272e071051f5305bc466128e852f20b9ba9fa20c887ad312421f75a4013b83"


def test_each_image_and_label_is_where_it_belongs(here):
    assert resolve_data("mnist", "mnist") == resolve_data("auto", "mnist") == Resolved("mnist")
    for split in SPLITS:
        for read, wrote in zip(here.load(split), MADE[split], strict=True):
            np.testing.assert_array_equal(read, wrote, strict=True)


DAMAGED = {
    "truncated": ARCHIVES[NAMES[0]][:2000],
    "other content": gzip.compress(bytes(4000)),
    "a page": GARBAGE,
}


@pytest.mark.parametrize("archive", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused_in_one_line_and_left(here, archive):
    path = here.folder / NAMES[0]
    path.write_bytes(archive)
    for choice in ("auto", "mnist"):
        message = refused(resolve_data, choice, "mnist")
        assert message.startswith(str(path)) and message.endswith("delete it and run again to download it anew")
    assert path.read_bytes() == archive


def test_auto_says_why_it_is_synthetic_and_a_name_is_an_error(mnist):
    folder = mnist(NOBODY_LISTENS).folder
    name, why = resolve_data("auto", "mnist")
    assert name == "synthetic" and why.code == "download_failed" and why.values["file"] == NAMES[0]
    assert resolve_data("synthetic", "mnist") == Resolved("synthetic")
    assert not folder.exists()
    message = refused(resolve_data, "mnist", "mnist")
    assert message.endswith(f"into {folder} (KIT_DATA/mnist), or use --data synthetic")
    assert all(name in message for name in NAMES)
    assert re.search("'imagenet'.*choose from .*mnist", refused(resolve_data, "imagenet", "mnist"))


@pytest.mark.parametrize(
    ("files", "claimed"),
    [({}, 0), (dict.fromkeys(NAMES, GARBAGE), 0), (ARCHIVES, 100), ({n: a[:-20] for n, a in ARCHIVES.items()}, 0)],
    ids=["404", "garbage", "breaks off", "truncated at the source"],
)
def test_a_bad_mirror_is_asked_once_and_the_next_serves(mnist, serve, files, claimed):
    bad, good = serve(files, claimed), serve(ARCHIVES)
    data = mnist(NOBODY_LISTENS, bad.url, good.url)
    umask = os.umask(0o022)
    try:
        data.fetch()
    finally:
        os.umask(umask)
    assert {path.name: path.read_bytes() for path in data.folder.iterdir()} == ARCHIVES
    assert bad.asked == NAMES[:1] and good.asked == NAMES
    # Others on the machine may read what has arrived.
    assert {path.stat().st_mode & 0o777 for path in data.folder.iterdir()} == {0o644}


def unavailable(data) -> DataUnavailableError:
    with pytest.raises(DataUnavailableError) as caught:
        data.fetch()
    return caught.value


@pytest.mark.parametrize(
    ("files", "why"), [({}, "HTTPError"), ({NAMES[0]: ARCHIVES[NAMES[0]], NAMES[1]: GARBAGE}, "wrong content")]
)
def test_where_no_mirror_helps_each_is_named_and_nothing_is_left(tmp_path, mnist, serve, files, why):
    mirror = serve(files)
    error = unavailable(mnist(NOBODY_LISTENS, mirror.url))
    host = mirror.url.removeprefix("http://").rstrip("/")
    assert error.reason.code == "download_failed" and error.reason.values["file"] == NAMES[bool(files)]
    assert error.reason.values["tried"] == f"127.0.0.1:1: ConnectionError; {host}: {why}"
    assert list(tmp_path.iterdir()) == []
    assert unavailable(mnist()).reason.code == "no_mirror"


def test_a_folder_that_cannot_be_made_is_named(tmp_path, mnist, serve):
    (tmp_path / "mnist").write_text("")
    error = unavailable(mnist(serve(ARCHIVES).url))
    assert error.reason.code == "folder_not_writable" and str(tmp_path / "mnist") in str(error)


def test_the_folder_is_kit_data_or_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("KIT_DATA", "")
    assert data_folder().is_absolute() and "steadykit" in Path(data_folder()).parts


def test_a_file_that_expands_without_a_limit_is_one_line(tmp_path):
    file, path = DataFile("x.gz", (), takes_other=True, content_max_b=1000), tmp_path / "x.gz"
    path.write_bytes(gzip.compress(bytes(1000)))
    assert len(file.read(path)) == 1000
    path.write_bytes(gzip.compress(bytes(1 << 20)))
    assert "more than 1,000 bytes" in refused(file.read, path)
    with path.open("wb") as sparse:
        sparse.truncate(1 << 40)
    assert "limit" in refused(file.read, path)


def test_a_server_that_sends_without_an_end_is_not_followed(tmp_path):
    class Endless(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(bytes(1 << 16))

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        file = DataFile("x.gz", (), content_max_b=1 << 20)
        assert "bytes came" in refused(file.download, f"http://127.0.0.1:{server.server_port}/")
    finally:
        server.shutdown()
