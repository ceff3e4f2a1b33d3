"""Files that must have one content: read from a disk that may be damaged, and fetched from mirrors that may be bad."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from kit.workloads.data.files import DataUnavailableError, KnownFile, data_folder, download

NOBODY_LISTENS = "http://127.0.0.1:1/"
CONTENTS = {"a.gz": np.random.default_rng(0).bytes(4000), "b.txt": b"second" * 1000}
FILES = [KnownFile(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in CONTENTS.items()]
ARCHIVES = {"a.gz": gzip.compress(CONTENTS["a.gz"]), "b.txt": CONTENTS["b.txt"]}
GARBAGE = dict.fromkeys(CONTENTS, b"<html>Please log in to the hotel's network</html>")
KNOWN = FILES[0]


def test_the_content_counts_and_not_the_archive(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(CONTENTS["a.gz"], 0))
    assert KNOWN.read(tmp_path / "a.gz") == CONTENTS["a.gz"]


DAMAGED = {
    "truncated": ARCHIVES["a.gz"][:2000],
    "other content": gzip.compress(bytes(4000)),
    "far too long": gzip.compress(bytes(50_000_000), 1),
    "a page": GARBAGE["a.gz"],
}


@pytest.mark.parametrize("archive", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused_in_one_line_and_left(tmp_path, archive):
    path = tmp_path / "a.gz"
    path.write_bytes(archive)
    message = refused(KNOWN.read, path)
    assert message.startswith(str(path)) and message.endswith("delete it and run again to download it anew")
    assert path.read_bytes() == archive


def whole(folder: Path) -> None:
    """Exactly the two files, whole, and nothing left behind."""
    assert sorted(path.name for path in folder.iterdir()) == sorted(CONTENTS)
    for file in FILES:
        assert file.read(folder / file.name) == CONTENTS[file.name]


def not_fetched(folder: Path, *mirrors: str) -> DataUnavailableError:
    with pytest.raises(DataUnavailableError, match=r"; do this$") as caught:
        download(FILES, folder, mirrors, "do this")
    return caught.value


@pytest.mark.parametrize(
    ("files", "claimed"),
    [({}, 0), (GARBAGE, 0), (ARCHIVES, 100), ({name: data[:-20] for name, data in ARCHIVES.items()}, 0)],
    ids=["404", "garbage", "breaks off", "truncated at the source"],
)
def test_a_bad_mirror_is_asked_once_and_the_next_serves(tmp_path, serve, files, claimed):
    bad, good = serve(files, claimed), serve(ARCHIVES)
    umask = os.umask(0o022)
    try:
        download(FILES, tmp_path / "new" / "folder", [NOBODY_LISTENS, bad.url, good.url], "")
    finally:
        os.umask(umask)
    whole(tmp_path / "new" / "folder")
    assert bad.asked == ["a.gz"] and good.asked == list(CONTENTS)
    # Others on the machine may read what has arrived.
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new" / "folder").iterdir()} == {0o644}


@pytest.mark.parametrize(("files", "why"), [({}, "HTTPError"), (GARBAGE, "wrong content")])
def test_where_none_helps_each_is_named_and_nothing_is_left(tmp_path, serve, files, why):
    mirror = serve(files)
    error = not_fetched(tmp_path / "new", NOBODY_LISTENS, mirror.url)
    host = mirror.url.removeprefix("http://").rstrip("/")
    assert error.reason.code == "download_failed" and error.reason.values["file"] == "a.gz"
    assert error.reason.values["tried"] == f"127.0.0.1:1: ConnectionError; {host}: {why}"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path, serve):
    (tmp_path / "file").write_text("")
    error = not_fetched(tmp_path / "file" / "mnist", serve(ARCHIVES).url)
    assert error.reason.code == "folder_not_writable" and str(tmp_path / "file" / "mnist") in str(error)


def test_the_folder_is_kit_data_or_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("KIT_DATA", "")
    assert data_folder().is_absolute() and "steadykit" in data_folder().parts
