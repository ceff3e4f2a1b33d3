"""What each backend did, run once a session in a process of its own: see exercise.py."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from kit.backends.catalog import CATALOG

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
EXERCISE_TIMEOUT_S = 280


class Exercised(NamedTuple):
    """One backend's answers: arrays by key, and facts."""

    name: str
    arrays: dict
    facts: dict

    def under(self, prefix):
        """Arrays whose key begins with `prefix`/, by what follows it."""
        return {
            key.removeprefix(f"{prefix}/"): each for key, each in self.arrays.items() if key.startswith(f"{prefix}/")
        }


def _exercise(name, folder):
    entry = CATALOG[name]
    interpreter = os.environ.get(entry.interpreter_variable)
    if interpreter is None and importlib.util.find_spec(entry.module) is None:
        return None
    out = folder / f"{name}.npz"
    done = subprocess.run(
        [interpreter or sys.executable, str(HERE / "exercise.py"), name, str(out)],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=EXERCISE_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{name}: exit {done.returncode}\n{done.stderr[-4000:]}"
    with np.load(out) as arrays:
        found = dict(arrays)
    return Exercised(name, found, json.loads(str(found.pop("facts"))))


@pytest.fixture(scope="session")
def exercise_of(tmp_path_factory):
    """Name -> Exercised; skips the test where the framework is not installed."""
    folder = tmp_path_factory.mktemp("exercised")
    done = {}

    def answer(name):
        if name not in done:
            done[name] = _exercise(name, folder)
        if done[name] is None:
            pytest.skip(f"{CATALOG[name].title} is not installed")
        return done[name]

    return answer


@pytest.fixture(params=list(CATALOG))
def exercised(request, exercise_of):
    """Each backend in turn."""
    return exercise_of(request.param)
