import os
import signal
import stat
import subprocess
import sys

import pytest

from kit.files import write_atomically


@pytest.fixture
def path(tmp_path):
    write_atomically(tmp_path / "x.json", b"old")
    return tmp_path / "x.json"


def test_the_file_has_the_mode_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "x", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


# No file may grow beyond a page, as on a full disk. In a process of its own: pytest's output may be a file, too.
LITTLE_ROOM = """
import resource, signal, sys
from pathlib import Path
from kit.files import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
write_atomically(Path(sys.argv[1]), bytes(100_000))
"""


def test_where_there_is_no_room_the_old_file_stays_and_nothing_else(path):
    done = subprocess.run([sys.executable, "-c", LITTLE_ROOM, path], capture_output=True, check=False)
    assert b"File too large" in done.stderr
    assert path.read_bytes() == b"old" and [*path.parent.iterdir()] == [path]


def test_a_writer_that_is_killed_leaves_the_old_file(path):
    child = os.fork()
    if child == 0:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        write_atomically(path, b"torn")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert path.read_bytes() == b"old"
