import fcntl
import os
import stat

import pytest

from kit.profile.atomic import create_atomically, write_atomically


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "x.json"
    for data in (b"one", b"another, longer"):
        write_atomically(path, data)
        assert path.read_bytes() == data
    assert names_in(tmp_path) == ["x.json"]


def test_a_new_file_is_there_whole_and_what_is_written_next_goes_to_its_end(tmp_path):
    path = tmp_path / "x"
    descriptor = create_atomically(path, b"first\n")
    with path.open("ab") as other:
        other.write(b"second\n")
    os.write(descriptor, b"third\n")
    os.close(descriptor)
    assert path.read_bytes() == b"first\nsecond\nthird\n"
    assert names_in(tmp_path) == ["x"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0o066 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "a file system without them"])
def test_a_file_that_is_there_is_not_created_again(tmp_path, monkeypatch, links):
    path = tmp_path / "x"
    if not links:

        def refuse(*_):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr("os.link", refuse)
    os.close(create_atomically(path, b"mine"))
    with pytest.raises(FileExistsError):
        create_atomically(path, b"yours")
    assert path.read_bytes() == b"mine"
    assert names_in(tmp_path) == ["x"]


def test_what_a_killed_writer_left_behind_is_removed_by_the_next_of_the_same_file(tmp_path):
    path, other = tmp_path / "x.json", tmp_path / "y.json"
    killed_at_once(path)
    (left,) = names_in(tmp_path)
    write_atomically(other, b"of another file")
    assert left in names_in(tmp_path), "it may be another writer's"
    write_atomically(path, b"whole")
    assert names_in(tmp_path) == ["x.json", "y.json"]


def test_what_a_living_writer_is_at_is_left_alone(tmp_path):
    path = tmp_path / "x.json"
    killed_at_once(path)
    (left,) = tmp_path.iterdir()
    with left.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_atomically(path, b"whole")
        assert left.exists()


def killed_at_once(path):
    """A writer that is killed before it can rename."""
    child = os.fork()
    if child == 0:
        os.fsync = lambda _: os.kill(os.getpid(), 9)
        write_atomically(path, b"torn")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 9
