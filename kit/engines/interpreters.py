"""Which Python runs which backend, and whether the framework is there."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from kit.backends.catalog import CATALOG
from kit.errors import KitError

# The probe imports no framework; an interpreter that takes longer than this to start is not usable for measuring.
PROBE_TIMEOUT_S = 60


class InterpreterError(KitError):
    """There is no such backend, or the interpreter named for it does not answer."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``python -m kit.worker --probe``."""

    backend: str
    version: str | None


def interpreter_for(backend: str) -> str:
    """The interpreter named in KIT_PYTHON_<BACKEND>, else the running one.

    Raises:
        InterpreterError: the kit has no such backend; a plan from a file may name any.
    """
    if backend not in CATALOG:
        raise InterpreterError(f"{backend}: this kit has no such backend; it has {', '.join(CATALOG)}")
    return os.environ.get(CATALOG[backend].interpreter_variable) or sys.executable


def find_backend(backend: str) -> Found:
    """Ask the backend's interpreter for the framework.

    Raises:
        InterpreterError: the interpreter is missing, or the kit is not installed in it.
    """
    python, variable = interpreter_for(backend), CATALOG[backend].interpreter_variable
    command = [python, "-m", "kit.worker", "--probe", backend]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=PROBE_TIMEOUT_S, check=True)
        return msgspec.json.decode(answer.stdout, type=Found)
    except OSError as error:
        problem = error.strerror or str(error)
    except subprocess.TimeoutExpired:
        problem = f"no answer within {PROBE_TIMEOUT_S} s"
    except subprocess.CalledProcessError as error:
        problem = (error.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
    except msgspec.DecodeError:
        problem = "its answer is not the worker's"
    raise InterpreterError(
        f"{python} cannot run the worker for {backend}: {problem}; "
        f"set {variable} to a Python in which steadykit and {backend} are installed"
    )
