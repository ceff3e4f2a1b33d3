"""`kit selftest` as users run it."""

import json
import os
import subprocess
import sys

import pytest
from profile_builder import build_profile, six_cells

from kit.profile.store import write_profile


def selftest(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "kit", "selftest", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "KIT_STATE": str(cwd / "state"), **environment},
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--workload", "rnn"], "no workload 'rnn'"),
        (["--backend", "mxnet"], "no backend 'mxnet'"),
        (["--task", "sleep"], "no task 'sleep'"),
        (["--batch", "0"], "batch 0 is not a number of samples"),
        (["--data", "cifar"], "no data 'cifar'"),
        (["--launches", "1"], "--launches"),
        (["--resume"], "--resume needs --out PATH"),
        (["--resume", "--out", "x", "--seed", "3"], "--seed cannot be given with --resume"),
        (["--from", "x", "--launches", "3"], "--launches cannot be given with --from"),
        (["--from", "nothing.launches"], "no self-test is kept there"),
        (["--resume", "--out", "nothing.launches"], "no self-test is kept there"),
        (["--data", "synthetic", "--out", "missing/x"], "no such folder"),
    ],
)
def test_bad_input_is_one_line(arguments, says, tmp_path):
    answer = selftest(*arguments, cwd=tmp_path)
    assert answer.returncode == 2
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert "Traceback" not in answer.stderr
    assert not list(tmp_path.glob("*"))


def test_what_is_no_self_test_is_one_line(tmp_path):
    (tmp_path / "x").write_text("not a self-test\n")
    answer = selftest("--from", "x", cwd=tmp_path)
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert "damaged" in answer.stderr


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_short_self_test_from_end_to_end(tmp_path):
    kept = "kept.launches"
    answer = selftest("--launches", "2", "--task", "infer", "--data", "synthetic", "--out", kept, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "[10/10]" in answer.stderr
    assert "none: 18 unslowed launches with a steady state are needed" in answer.stdout
    assert not (tmp_path / "state").exists()
    again = selftest("--from", kept, "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    counts = {entry["planted_slowdown_pct"]: entry["finished"] for entry in json.loads(again.stdout)["launches"]}
    assert counts == {0.0: 4, 2.0: 2, 3.0: 2, 5.0: 2}
    complete = selftest("--resume", "--out", kept, cwd=tmp_path)
    assert complete.returncode == 0, complete.stderr
    assert "[1" not in complete.stderr


def test_a_profile_is_not_called_a_damaged_self_test(tmp_path):
    write_profile(tmp_path / "a.json", build_profile(six_cells()))
    for given in (["--from", "a.json"], ["--resume", "--out", "a.json"]):
        answer = selftest(*given, cwd=tmp_path)
        assert answer.returncode == 2
        assert answer.stderr == "kit: a.json: is JSON, a profile perhaps, not the file of a self-test; give that\n"
