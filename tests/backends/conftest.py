"""The fixtures that ask a framework: each runs in a process of its own, see exercise.py."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path

import pytest

from kit.backends.backend_catalog import CATALOG, FRAMEWORKS

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
# A case takes seconds where nobody else computes.
CASE_TIMEOUT_S = 600
# oneDNN plans for AMX in one part and finds it hidden in another. Its exception reaches Python, or ends the process.
ONEDNN_HIDES = "ONEDNN_MAX_CPU_ISA"
ONEDNN_FAILURES = "could not create a primitive descriptor", "terminate called"


class Exercised:
    """A backend in a process of its own. It runs a case when a test first asks for it.

    A case that raises fails the tests that ask for it. One that ends the process does so, too, and the next case runs
    in a new process.
    """

    def __init__(self, name, folder):
        self.name = name
        self._output = folder / f"{name}.txt"
        self._process = self._connection = None
        self._answers = {}

    def answer(self, *case):
        """What a method of exercise.py, with these arguments, returns there."""
        if case not in self._answers:
            self._answers[case] = self._ask(case)
        value, failure = self._answers[case]
        if failure is None:
            return value
        if ONEDNN_HIDES in os.environ and any(line in failure for line in ONEDNN_FAILURES):
            pytest.skip(f"oneDNN fails in {self.name} because {ONEDNN_HIDES} hides instructions of this CPU")
        pytest.fail(f"{self.name}, {case}:\n{failure}", pytrace=False)

    def _ask(self, case):
        if self._process is None:
            self._start()
        try:
            self._connection.send(case)
            if self._connection.poll(CASE_TIMEOUT_S):
                return self._connection.recv()
            failure = f"no answer within {CASE_TIMEOUT_S} s"
        except (EOFError, ConnectionError):
            failure = f"exit {self._process.wait()}"
        self.stop()
        return None, f"{failure}\n{self._output.read_text()[-4000:]}"

    def _start(self):
        interpreter = os.environ.get(CATALOG[self.name].interpreter_variable, sys.executable)
        self._connection, far_end = Pipe()
        with far_end, self._output.open("w") as output:
            self._process = subprocess.Popen(
                [interpreter, str(HERE / "exercise.py"), self.name, str(far_end.fileno())],
                env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
                pass_fds=[far_end.fileno()],
                stdout=output,
                stderr=output,
            )

    def stop(self):
        """End the process."""
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def exercise_of(tmp_path_factory):
    """Name -> Exercised; skips the test where the framework is not installed."""
    backends = {name: Exercised(name, tmp_path_factory.getbasetemp()) for name in FRAMEWORKS}

    def answer(name):
        entry = CATALOG[name]
        if entry.interpreter_variable not in os.environ and importlib.util.find_spec(entry.module) is None:
            pytest.skip(f"{entry.title} is not installed")
        return backends[name]

    yield answer
    for backend in backends.values():
        backend.stop()


@pytest.fixture(params=FRAMEWORKS)
def exercised(request, exercise_of):
    """Each backend in turn."""
    return exercise_of(request.param)
