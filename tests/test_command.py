import errno
import shlex
import sys

import pytest

from kit import cli
from kit.profile.unfinished import resume_command


def test_what_is_printed_can_be_typed(monkeypatch):
    monkeypatch.setenv("KIT_COMMAND", "kit launch cpu --cpus 0,1")
    words = shlex.split(resume_command("it's a run.json"))
    assert words == ["kit", "launch", "cpu", "--cpus", "0,1", "--resume", "--out", "it's a run.json"]


def ended_by(monkeypatch, file, *words):
    """End `kit WORDS` with an error of a file."""
    error = OSError(errno.EACCES, "Permission denied", str(file))
    monkeypatch.setattr(cli.app, "main", lambda **_: (_ for _ in ()).throw(error))
    monkeypatch.setattr(sys, "argv", ["kit", *map(str, words)])
    cli.main()


@pytest.mark.parametrize("words", [["--out", "x/a.svg"], ["--out=x/a.svg"], ["x"], []])
def test_an_error_of_a_file_that_was_typed_or_lies_here_is_one_line(monkeypatch, capsys, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "x" / ".kit-1.part" if words else tmp_path / "quick.json"
    with pytest.raises(SystemExit) as ended:
        ended_by(monkeypatch, file, "plot", *words)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"kit: {file}: Permission denied\n"


def test_an_error_of_another_file_is_no_mistake_of_the_users(monkeypatch):
    with pytest.raises(PermissionError):
        ended_by(monkeypatch, "/sys/devices/system/cpu/cpu0/cache/index0/size", "run", "quick", "--out", "x.json")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_another_system_is_told_in_one_line_before_any_command(monkeypatch, capsys, platform):
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(SystemExit) as ended:
        ended_by(monkeypatch, "never", "audit", "run.json")
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Linux" in line
