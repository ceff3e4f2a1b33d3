"""`kit compare` in a real terminal of a known width."""

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

import pytest
from profile_builder import build_profile, six_cells

from kit.profile.store import write_profile


@pytest.fixture
def compare(tmp_path):
    write_profile(tmp_path / "run.json", build_profile(six_cells()))

    def run(columns, **more):
        """What a terminal of so many columns is sent; of null columns, a pipe."""
        command = [sys.executable, "-m", "kit", "compare", "run.json"]
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | more
        if columns is None:
            return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs):
            os.close(theirs)
            sent = b""
            while chunk := read(ours):
                sent += chunk
        os.close(ours)
        return re.sub(r"\x1b\[[\d;]*m", "", sent.decode().replace("\r\n", "\n"))

    return run


def read(terminal):
    """Linux ends a terminal that nobody writes to any more with an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


@pytest.mark.parametrize("columns", [100, 120])
def test_a_terminal_gets_lines_that_fit(compare, columns):
    shown = compare(columns)
    assert max(map(len, shown.split("\n"))) <= columns
    assert "too narrow" in shown
    assert "torch/eager" in shown


@pytest.mark.parametrize("columns", [None, 300, 0])
def test_a_pipe_and_a_wide_terminal_and_one_that_does_not_say_get_everything(compare, columns):
    shown = compare(columns)
    assert "too narrow" not in shown
    assert "accuracy" in shown


@pytest.mark.parametrize("odd", ["²", "-5", "9" * 5000, "wide"])
def test_a_size_in_the_environment_that_is_no_number_is_passed_over(compare, odd):
    shown = compare(100, COLUMNS=odd, TERM="xterm")
    assert "Traceback" not in shown
    assert "too narrow" in shown
