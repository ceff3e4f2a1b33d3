"""What each backend did, run once a session in a process of its own: see exercise.py."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from kit.backends.catalog import CATALOG, FRAMEWORKS

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
EXERCISE_TIMEOUT_S = 1100  # of one that hangs: a minute where nobody else computes


class Answers(dict):
    """What the cases answered, by key; to ask for what one failed to answer is to fail as it did."""

    def __init__(self, answers, failures):
        super().__init__(answers)
        self._failures = failures

    def __missing__(self, key):
        if key not in self._failures:
            raise KeyError(key)
        pytest.fail(f"{key}:\n{self._failures[key]}", pytrace=False)


class Exercised(NamedTuple):
    """One backend's answers: arrays by key, and facts."""

    name: str
    arrays: Answers
    facts: Answers


def _start(name, out):
    """The process, or None where the framework is not installed."""
    entry = CATALOG[name]
    interpreter = os.environ.get(entry.interpreter_variable)
    if interpreter is None and importlib.util.find_spec(entry.module) is None:
        return None
    command = [interpreter or sys.executable, str(HERE / "exercise.py"), name, str(out)]
    # They share the CPUs: threads that spin while they wait would take them from one another.
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_WAIT_POLICY": "PASSIVE"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="session")
def exercise_of(tmp_path_factory):
    """Name -> Exercised; skips the test where the framework is not installed. They run at the same time."""
    folder = tmp_path_factory.mktemp("exercised")
    started = {name: _start(name, folder / f"{name}.npz") for name in FRAMEWORKS}

    @functools.cache
    def collected(name):
        _, stderr = started[name].communicate(timeout=EXERCISE_TIMEOUT_S)
        assert started[name].returncode == 0, f"{name}: exit {started[name].returncode}\n{stderr[-4000:]}"
        with np.load(folder / f"{name}.npz") as arrays:
            answered = dict(arrays)
        facts, failures = json.loads(str(answered.pop("said")))
        return Exercised(name, Answers(answered, failures), Answers(facts, failures))

    def answer(name):
        if started[name] is None:
            pytest.skip(f"{CATALOG[name].title} is not installed")
        return collected(name)

    yield answer
    for process in filter(None, started.values()):
        process.kill()
        process.communicate()


@pytest.fixture(params=FRAMEWORKS)
def exercised(request, exercise_of):
    """Each backend in turn."""
    return exercise_of(request.param)
