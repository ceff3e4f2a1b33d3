import shlex

from kit.resume_command import resuming


def test_what_is_printed_can_be_typed(monkeypatch):
    monkeypatch.setenv("KIT_COMMAND", "kit launch cpu --cpus 0,1")
    words = shlex.split(resuming("it's a run.json"))
    assert words == ["kit", "launch", "cpu", "--cpus", "0,1", "--resume", "--out", "it's a run.json"]
