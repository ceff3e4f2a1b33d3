"""Importing a user's program, and where in it an exception came from."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from kit.backends.entry import BackendError
from kit.profile.schema import ProgramSource, file_sha256


def import_function(source: ProgramSource) -> Callable[..., Any]:
    """Import the program's file, once in a process, and return its function; what the file raises passes.

    Raises:
        BackendError: the file is another than when the run was planned, or has no such function.
    """
    module = _module(source)
    if file_sha256(module.__file__ or "") != source.sha256:
        raise BackendError(f"{module.__file__} differs from {source.path} at the start of the run; start a new run")
    function = getattr(module, source.function, None)
    if not callable(function):
        raise BackendError(f"{source.path} has no function {source.function!r}; define one that takes batch and device")
    return function  # type: ignore[no-any-return]


def _module(source: ProgramSource) -> ModuleType:
    if source.module is not None:
        return import_module(source.module)
    # Not its bare name: a file may be called as a framework is.
    name = f"steadykit_program_{source.sha256[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, source.path)
    assert spec is not None and spec.loader is not None
    # As for a script: what lies beside it can be imported.
    sys.path.insert(0, str(Path(source.path).parent))
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line_in(source: ProgramSource, error: BaseException) -> int | None:
    """Return the last line of the program's own file that the exception came through; None where it is none of it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source.path]
    return lines[-1] if lines else None
