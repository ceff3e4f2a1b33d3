"""Where a process that Steadykit starts imports from: itself from the environment, a program as in plain Python.

    python FILE     folder of FILE, PYTHONPATH, standard library, environment
    a program       folder of the program, PYTHONPATH, standard library, environment; current folder
    Steadykit       standard library, environment, PYTHONPATH

So a `msgspec.py`, `socket.py` or `kit/` of the user's is never imported in place of what Steadykit needs. An entry of
PYTHONPATH that holds Steadykit itself still chooses that Steadykit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

PATHS = "PYTHONPATH"
# Runs in the interpreter of a worker, which may find a user's package `kit` first. Its argument is the module to run.
# `-P` keeps the current folder out of sys.path; the paths of PYTHONPATH are made absolute there.
BOOT = "; ".join((
    "import os, sys",
    'paths, text = sys.path[:], os.environ.get("PYTHONPATH")',
    "given = [os.path.abspath(path) for path in text.split(os.pathsep)] if text else []",
    'sys.path[:] = [p for p in paths if p not in given or os.path.isfile(p + "/kit/worker/supervisor.py")]',
    "import kit",
    "sys.path[:] = sorted(paths, key=given.__contains__)",
    "import runpy",
    "del sys.argv[0]",
    'runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)',
))  # fmt: skip


def module_command(python: str, module: str) -> list[str]:
    """Return the words that run a module of Steadykit; its arguments follow them."""
    return [python, "-P", "-c", BOOT, module]


def given_folders() -> list[str]:
    """Return the folders that PYTHONPATH names."""
    text = os.environ.get(PATHS)
    return [os.path.abspath(path) for path in text.split(os.pathsep)] if text else []  # noqa: PTH100 - no link is followed


class _CurrentFolder:
    """Finds in the current folder what nothing else finds, editable installs included."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = None if path is not None else PathFinder.find_spec(name, [self._folder], target)
        if spec is not None and self._folder not in sys.path:
            sys.path.append(self._folder)  # for processes that the program spawns, which get this list
        return spec


def import_as_plain_python(*, is_program: bool = False) -> None:
    """Let PYTHONPATH come first from now on; for a user's program, the current folder comes after everything."""
    sys.path[:] = sorted(sys.path, key=lambda path: path not in given_folders())
    if is_program and not any(isinstance(finder, _CurrentFolder) for finder in sys.meta_path):
        sys.meta_path.append(_CurrentFolder(os.getcwd()))  # noqa: PTH109 - as text
