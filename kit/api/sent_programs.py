"""Functions of a notebook or a script on their way to workers: by cloudpickle, in files that only their user can read.

    measure ─► folder/eager.py        a program as any other: it calls `received`
               folder/eager.pickle    sources of notebook cells, the sender's folder, and the function

The profile names eager.py and holds its SHA-256, never what was pickled.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import os
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from kit.backends.program.program_call import refused_call
from kit.errors import KitError

# A function that refers to a model carries its weights, which every worker of the run reads. A larger one is a mistake.
PAYLOAD_MAX_B = 256 << 20
ENDING = ".pickle"
# The hash makes the file of another function another file. Steadykit calls a program by names.
LOADER = '''"""Steadykit wrote this file: it loads the function {name} of whoever called kit.measure().

SHA-256 of what is loaded: {sha256}
"""

from kit.api.sent_programs import received, sent_with


def program({parameters}):
    return received(__file__, __name__)({arguments})


def __getattr__(name):
    return sent_with(__file__, __name__, name)
'''


def send(programs: Mapping[str, Callable[..., Any]], folder: Path) -> dict[str, Path]:
    """Write functions into a folder that only the user can read; return the program file of each name.

    Raises:
        KitError: a function cannot be sent, is too large, or does not take batch and device.
    """
    import cloudpickle

    # Notebooks keep the source of a cell here, under a name that is no file. AutoGraph reads it from here.
    sources = {
        name: "".join(entry[2])
        for name, entry in linecache.cache.items()
        if len(entry) > 2 and not Path(name).exists()  # noqa: PLR2004 - others are read when they are needed
    }
    # The folder of the script, of the notebook, or of the test.
    sender_folder = os.path.abspath(sys.path[0])  # noqa: PTH100 - no link is followed
    written = {}
    for name, function in programs.items():
        parameters = ["batch", "device", *(["task"] if _takes_task(function) else [])]
        if (refused := refused_call(name, function, parameters)) is not None:
            raise KitError(f"program {refused}")
        try:
            pickled = BytesIO()
            _with_file_names(cloudpickle.Pickler)(pickled).dump(function)
            payload = pickle.dumps((sys.version_info[:2], sources, sender_folder, pickled.getvalue()))
        except Exception as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise KitError(
                f"program {name} cannot be sent to a worker: {why}; build what it needs inside the function"
            ) from None
        if len(payload) > PAYLOAD_MAX_B:
            raise KitError(
                f"program {name} refers to {len(payload) >> 20} MiB, and {PAYLOAD_MAX_B >> 20} MiB is the most that is "
                "sent; build models and data inside the function"
            )
        loader = LOADER.format(
            name=name,
            sha256=hashlib.sha256(payload).hexdigest(),
            parameters=", ".join(parameters),
            arguments=", ".join(f"{parameter}={parameter}" for parameter in parameters),
        )
        written[name] = folder / f"{name}.py"
        for file, data in ((folder / f"{name}{ENDING}", payload), (written[name], loader.encode())):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
    return written


def _takes_task(function: Callable[..., Any]) -> bool:
    with suppress(TypeError, ValueError):  # a function in C does not say what it takes
        return "task" in inspect.signature(function).parameters
    return False


def _with_file_names(pickler: Any) -> Any:  # noqa: ANN401 - cloudpickle has no types
    """Return cloudpickle's pickler; code keeps the name of its file, which is `<dynamic-code>` since 3.1.2."""

    def reduced(code: CodeType) -> tuple[Any, tuple[Any, ...]]:
        make, parts = pickler.dispatch_table[CodeType](code)
        return make, tuple(code.co_filename if part == "<dynamic-code>" else part for part in parts)

    table = ChainMap({CodeType: reduced}, pickler.dispatch_table)
    return type("Pickler", (pickler,), {"dispatch_table": table})


@cache
def received(program_file: str, module: str) -> Callable[..., Any]:
    """Return the function that was sent with a program's file. Exceptions of unpickling it pass.

    Args:
        program_file: the loader.
        module: as which the loader is imported. What was sent with the function belongs to it from now on, so that
            processes that the program spawns find it.
    """
    # Steadykit wrote the file, for this user alone.
    version, sources, folder, function = pickle.loads(Path(program_file).with_suffix(ENDING).read_bytes())
    if version != sys.version_info[:2]:
        # What was pickled holds bytecode.
        sender, here = (".".join(map(str, numbers)) for numbers in (version, sys.version_info[:2]))
        raise KitError(f"a function of Python {sender} cannot run in Python {here}; give FILE.py:FUNCTION")
    for name, source in sources.items():
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loaded: Callable[..., Any] = pickle.loads(function)
    for value in _names_around(loaded).values():
        if isinstance(value, FunctionType | type) and value.__module__ == "__main__":
            value.__module__ = module
    return loaded


def sent_with(program_file: str, module: str, name: str) -> Any:  # noqa: ANN401 - whatever the sender's module holds
    """Return what the function that was sent calls by this name.

    Raises:
        AttributeError: it calls nothing so.
    """
    names = {} if name.startswith("__") else _names_around(received(program_file, module))
    if name not in names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return names[name]


def _names_around(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the global names of a function, of a method, of a partial call, or of an object that is called."""
    inner = getattr(function, "func", function)
    inner = inner if hasattr(inner, "__globals__") else type(inner).__call__
    return getattr(inner, "__globals__", {})
