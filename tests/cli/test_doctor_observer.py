"""`kit doctor --observer`, as a user runs it."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kit.cli.doctor import _observe


def doctor(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "kit", "doctor", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=240,
        check=False,
    )


@pytest.mark.frameworks
def test_it_measures_and_prints_json():
    answer = doctor("--observer", "--seconds", "4", "--json")
    assert answer.returncode == 0, answer.stderr
    observed = json.loads(answer.stdout)
    overhead = observed["overhead"]
    assert overhead["low"] < overhead["ratio"] < overhead["high"]
    assert overhead["mean_low"] < overhead["mean_ratio"] < overhead["mean_high"]
    assert overhead["pairs"] >= 4
    assert overhead["cell_key"].startswith("mlp/")
    assert 0 < observed["sampler_cpu_pct"] < 100
    assert 0 < observed["samples_per_s"] < 11
    assert answer.stderr.startswith(f"kit: observing {overhead['cell_key']}")


@pytest.mark.frameworks
def test_too_short_a_test_gives_no_number_and_exit_3():
    answer = doctor("--observer", "--seconds", "0.1")
    assert answer.returncode == 3, answer.stderr
    assert "0.1 s are too short" in answer.stdout
    assert "Traceback" not in answer.stderr


def test_without_a_framework_it_says_so(bare_python):
    python = str(bare_python)
    answer = doctor("--observer", KIT_PYTHON_TENSORFLOW=python, KIT_PYTHON_TORCH=python, KIT_PYTHON_JAX=python)
    assert answer.returncode == 2
    assert answer.stderr == "kit: none of tensorflow, torch, jax is installed; install them with `make setup`\n"


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "many"])
def test_seconds_are_seconds(seconds):
    answer = doctor("--observer", "--seconds", seconds)
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 1


def test_seconds_alone_are_refused():
    answer = doctor("--seconds", "5")
    assert answer.returncode == 2
    assert "--seconds is for --observer" in answer.stderr


def test_an_interrupt_that_comes_when_it_has_been_measured_does_not_take_it_away(monkeypatch, capsys):
    def measured(asked):
        signal.raise_signal(signal.SIGINT)
        return {"measured": asked.cell.key}

    monkeypatch.setattr("kit.engines.observe.request", lambda seconds: SimpleNamespace(cell=SimpleNamespace(key="mlp")))
    monkeypatch.setattr("kit.engines.observe.observe", measured)
    with pytest.raises(KeyboardInterrupt):
        _observe(800.0, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"measured": "mlp"}
