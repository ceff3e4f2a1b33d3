"""What the verbs that look at this machine say."""

import json

from click.testing import CliRunner

from kit.cli.app import VERBS, app


def kit(*words):
    return CliRunner().invoke(app, words, standalone_mode=False)


def test_every_verb_is_a_command():
    for verb in VERBS:
        assert kit(verb, "--help").exit_code == 0


def test_suites_say_what_they_compare():
    shown = kit("suites").stdout
    assert "quick" in shown and "comparing backend" in shown
    assert {suite["name"] for suite in json.loads(kit("suites", "--json").stdout)} >= {"quick", "standard"}


def test_clock_prints_the_certificate():
    assert "null interval" in kit("clock").stdout
    assert json.loads(kit("clock", "--json").stdout)["source"] == "monotonic_raw"


def test_doctor_says_what_is_not_here_and_what_would_mend_it(monkeypatch, tmp_path):
    monkeypatch.setenv("KIT_PYTHON_TORCH", "/nowhere/python")
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    found = json.loads(kit("doctor", "--json").stdout)
    torch = next(one for one in found["backends"] if one["subject"] == "torch")
    assert not torch["here"] and "KIT_PYTHON_TORCH" in torch["detail"]
    assert not found["data"][0]["here"] and "kit data fetch" in found["data"][0]["detail"]
    assert any(one["here"] for one in found["clocks"])
    assert all(one["reason"] for one in found["sensors"] if one["status"] == "unavailable")
    assert "Frameworks" in kit("doctor").stdout
