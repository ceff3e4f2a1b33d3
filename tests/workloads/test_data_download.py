from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.workloads.data import download as module
from kit.workloads.data.download import download
from kit.workloads.data.errors import DataUnavailableError
from kit.workloads.data.known_file import KnownFile

NOBODY_LISTENS = "http://127.0.0.1:1/"
CONTENTS = {"a.gz": b"first" * 1000, "b.gz": b"second" * 1000}
FILES = [KnownFile(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in CONTENTS.items()]
ARCHIVES = {name: gzip.compress(content) for name, content in CONTENTS.items()}
GARBAGE = dict.fromkeys(CONTENTS, b"<html>Please log in to the hotel's network</html>")


def whole(folder: Path) -> None:
    """Exactly the two files, whole, and nothing left behind."""
    assert sorted(path.name for path in folder.iterdir()) == ["a.gz", "b.gz"]
    for file in FILES:
        assert file.read(folder / file.name) == CONTENTS[file.name]


def refused(folder: Path, *mirrors: str) -> str:
    with pytest.raises(DataUnavailableError) as caught:
        download(FILES, folder, mirrors, "do this")
    message = str(caught.value)
    assert message == f"{caught.value.why}; do this" and "\n" not in message
    return message


def test_files_arrive_whole_in_a_folder_that_was_not_there(tmp_path, serve):
    download(FILES, tmp_path / "new" / "folder", [serve(ARCHIVES).url], "")
    whole(tmp_path / "new" / "folder")


@pytest.mark.parametrize(
    ("files", "claimed"),
    [({}, 0), (GARBAGE, 0), (ARCHIVES, 100), ({name: data[:-20] for name, data in ARCHIVES.items()}, 0)],
    ids=["404", "garbage", "breaks off", "truncated at the source"],
)
def test_a_bad_mirror_is_asked_once_and_the_next_serves(tmp_path, serve, files, claimed):
    bad, good = serve(files, claimed), serve(ARCHIVES)
    download(FILES, tmp_path, [bad.url, good.url], "")
    whole(tmp_path)
    assert bad.asked == ["a.gz"] and good.asked == ["a.gz", "b.gz"]


def test_a_mirror_that_is_down_is_passed_over(tmp_path, serve):
    download(FILES, tmp_path, [NOBODY_LISTENS, serve(ARCHIVES).url], "")
    whole(tmp_path)


@pytest.mark.parametrize(
    ("files", "claimed", "why"),
    [
        ({}, 0, "HTTP status 404"),
        (GARBAGE, 0, "sent a file with the wrong content"),
        (ARCHIVES, 100, "connection lost on the way"),
    ],
)
def test_where_none_helps_each_is_named_and_nothing_is_left(tmp_path, serve, files, claimed, why):
    mirror = serve(files, claimed)
    message = refused(tmp_path, NOBODY_LISTENS, mirror.url)
    host = mirror.url.removeprefix("http://").rstrip("/")
    assert message == f"a.gz could not be downloaded (127.0.0.1:1: no connection; {host}: {why}); do this"
    assert list(tmp_path.iterdir()) == []


def test_what_had_arrived_before_the_mirror_failed_stays(tmp_path, serve):
    refused(tmp_path, serve({"a.gz": ARCHIVES["a.gz"]}).url)
    assert [path.name for path in tmp_path.iterdir()] == ["a.gz"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path, serve):
    (tmp_path / "file").write_text("")
    assert f"{tmp_path / 'file' / 'mnist'} cannot be written (Not a directory)" in refused(
        tmp_path / "file" / "mnist", serve(ARCHIVES).url
    )


def test_others_on_the_machine_can_read_what_arrived(tmp_path, serve):
    before = os.umask(0o022)
    try:
        download(FILES, tmp_path, [serve(ARCHIVES).url], "")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}


def test_progress_goes_to_standard_error(tmp_path, serve, monkeypatch, capsys):
    monkeypatch.setattr(module, "_BAR_AFTER_S", 0)
    download(FILES, tmp_path, [serve(ARCHIVES).url], "")
    printed = capsys.readouterr()
    assert printed.out == "" and all(f"{name}: 100%" in printed.err for name in ARCHIVES)


def test_no_bar_for_a_mirror_that_is_down(tmp_path, capsys):
    refused(tmp_path, NOBODY_LISTENS)
    assert capsys.readouterr() == ("", "")


PROCESS = """
import sys
from pathlib import Path
from kit.workloads.data.download import download
from kit.workloads.data.known_file import KnownFile
folder, mirror, *known = sys.argv[1:]
files = [KnownFile(name, int(size), sha) for name, size, sha in (file.split() for file in known)]
print("ready", flush=True)
sys.stdin.readline()
download(files, Path(folder), [mirror], "")
"""


def test_two_processes_may_download_at_once(tmp_path, serve):
    mirror = serve(ARCHIVES)
    known = [f"{file.name} {file.content_b} {file.sha256}" for file in FILES]
    command = [sys.executable, "-c", PROCESS, str(tmp_path), mirror.url, *known]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0, 0]
    whole(tmp_path)
    assert sorted(mirror.asked) == ["a.gz", "a.gz", "b.gz", "b.gz"]
