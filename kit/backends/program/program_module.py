"""A program's file as a module: named by its content, and importable by the processes that the program starts.

    worker ─ imports ─► FILE.py, as steadykit_program_1a2b…
       └ spawns ─► process ─ imports steadykit_program_1a2b… ─► a stub in a folder of sys.path ─► FILE.py

A process that is spawned, or forked from a server, gets functions and classes by the name of their module, and the
list of folders of its parent. So a stub of that name lies in such a folder.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from kit.profile.program_source import ProgramSource

STUB = '''"""Steadykit wrote this file: a process that a program starts imports the program's file by this name."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location(__name__, {path!r})
sys.modules[__name__] = module = module_from_spec(spec)
spec.loader.exec_module(module)
'''


def program_module(source: ProgramSource) -> ModuleType:
    """Import the program's file, once in a process, and return it. Exceptions of the file pass."""
    # A file may have the name of a framework, so the module is called by its hash.
    name = source.module or f"steadykit_program_{source.sha256[:16]}"
    if source.module is None and name not in sys.modules:
        spec = spec_from_file_location(name, source.path)
        assert spec is not None and spec.loader is not None
        _write_stub(name, source.path)
        # The file imports its neighbors before all others, as a script does.
        sys.path.insert(0, str(Path(source.path).parent))
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return import_module(name)


def _write_stub(name: str, path: str) -> None:
    """Let processes that the program starts import the file by that name."""
    with suppress(OSError):  # without room for it, only a program that spawns fails
        folder = _stub_folder()
        Path(folder.name, f"{name}.py").write_text(STUB.format(path=path), encoding="utf-8")
        if folder.name not in sys.path:
            sys.path.append(folder.name)


@cache
def _stub_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that goes with this process."""
    return tempfile.TemporaryDirectory(prefix="steadykit-")
