"""Names of files, replacing files, and reading files of others."""

import os
import threading

import pytest

from kit.errors import KitError
from kit.files import NAME_MAX, inside, name_of, read_limited, write_atomically

ODD = [
    "", ".", "..", "../x", "a/b", "-rf", ".hidden", "a\nb", "a\x00b", "a\u202eb", "é" * 300, "x" * 5000,
    "\ud800", "~", "$HOME",
]  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_a_name_of_any_text_is_one_plain_name(text, tmp_path):
    name = name_of(text)
    assert name.isascii() and name.isprintable() and "/" not in name
    assert name[0] not in ".-" and len(name) < NAME_MAX + 20
    file = inside(tmp_path, name)
    file.touch()
    assert [*tmp_path.iterdir()] == [file]


def test_texts_that_can_be_names_stay_and_others_differ():
    for text in ("a", "run-1.json", "0f3a", "cnn_small+x"):
        assert name_of(text) == text
    assert len({*map(name_of, ODD)}) == len(ODD)


def test_a_path_stays_below_its_folder(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "out").symlink_to(tmp_path)
    assert inside(tmp_path / "own", "a/b.json") == tmp_path / "own" / "a" / "b.json"
    for name in ("../x", "/etc/x", "a/../../x", "out/x"):
        with pytest.raises(KitError):
            inside(tmp_path / "own", name)


def test_what_must_be_new_replaces_nothing_and_leaves_nothing(tmp_path):
    file = tmp_path / "a"
    write_atomically(file, b"1", replaces=False)
    with pytest.raises(FileExistsError):
        write_atomically(file, b"2", replaces=False)
    assert file.read_bytes() == b"1"
    write_atomically(file, b"3")
    assert file.read_bytes() == b"3" and [*tmp_path.iterdir()] == [file]


def test_only_regular_files_of_a_sane_size_are_read(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"12345")
    assert read_limited(file, 5) == b"12345"
    os.mkfifo(tmp_path / "pipe")
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as opened:
        opened.truncate(2 << 30)
    done = []

    def read_all():
        for path, limit in ((file, 4), (tmp_path / "pipe", 9), (tmp_path, 9), (sparse, 1 << 20), ("/dev/zero", 9)):
            with pytest.raises(OSError, match=r"regular|bytes|directory"):
                read_limited(path, limit)
        done.append(True)

    reading = threading.Thread(target=read_all, daemon=True)
    reading.start()
    reading.join(10)
    assert done, "a pipe or a device was waited for"
