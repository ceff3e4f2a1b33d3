"""Programs as they are named: ``my_model.py``, ``my_model.py:function``, ``name=package.module:function``.

They are found and read here, never run: only a worker imports a user's code, and the framework with it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import symtable
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import decode_source, find_spec
from pathlib import Path

from kit.documentation import page
from kit.files import read_limited
from kit.import_order import PATHS, given_folders
from kit.nearest import did_you_mean, nearest
from kit.profile.program_source import DEFAULT_FUNCTION, PROGRAM_MAX_B, CommandSource, ProgramSource, file_sha256
from kit.suites.suite import VARIANT_NAME, ProgramTable, Suite, SuiteError

_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")
_FORMS = "give my_model.py, my_model.py:function or package.module:function"


def programs_given(texts: Sequence[str]) -> dict[str, ProgramTable]:
    """Return the programs of the command line by name, in their order.

    A program is called as ``NAME=`` before it says, as its function is, or as its file where the function is `program`;
    of those that would be called alike, folders are added until they differ.

    Raises:
        SuiteError: one is given twice, a text names no program, or its name would be too long, or another's.
    """
    parts: list[list[str]] = []
    for text in texts:
        name, path_text = _named(text)
        if name:
            parts.append([name])
            if parts[-1] in parts[:-1]:
                raise SuiteError(f"--program {text}: two programs are called {name}; rename one")
            continue
        where, function, is_file = _split(path_text)
        path = Path(os.path.abspath(where)).with_suffix("").parts[1:] if is_file else where.split(".")  # noqa: PTH100
        parts.append([*path, function] if function != DEFAULT_FUNCTION else [*path])
        if parts[-1] in parts[:-1]:
            raise SuiteError(f"--program {text} is given twice; give it once")
    depths, alike = [1] * len(parts), True
    while alike:
        names = [
            _UNFIT.sub("_", ".".join(path[-depth:])).lstrip("._+-") or DEFAULT_FUNCTION
            for path, depth in zip(parts, depths, strict=True)
        ]
        alike = False
        for index, name in enumerate(names):
            if names.count(name) > 1 and depths[index] < len(parts[index]):
                depths[index], alike = depths[index] + 1, True
    paths = [path_text for _, path_text in map(_named, texts)]
    for name, path_text in zip(names, paths, strict=True):
        remedy = f"give it a name: --program NAME={shlex.quote(path_text)}"
        if names.count(name) > 1:
            raise SuiteError(f"--program {path_text}: another program is called {name}, too; {remedy}")
        if not VARIANT_NAME.fullmatch(name):
            raise SuiteError(
                f"--program {path_text}: its name would be {name}, and a name has at most 40 characters; {remedy}"
            )
    return {name: ProgramTable(path=path_text) for name, path_text in zip(names, paths, strict=True)}


def sources_of(suite: Suite) -> dict[str, ProgramSource]:
    """Return where each program of the suite is, by its name.

    Raises:
        SuiteError: a file, module or function is not there, or a file is not Python. What else a function may not do
            its worker refuses (`kit.backends.program`).
    """
    sources = {}
    for name, table in suite.programs.items():
        if table.command is not None:
            sources[name] = _command_source(name, table.command)
            continue
        where, function, is_file = _split(table.path)
        # Not resolved: a link may stand for another file tomorrow, and its own folder is where its imports are.
        path = os.path.abspath(Path(suite.folder, where)) if is_file else _module_file(name, where, suite)  # noqa: PTH100
        sha256 = None if path is None else file_sha256(path)
        if path is None or sha256 is None:
            missing = f"there is no module {where} here"
            if path is not None:
                why = "is no file of Python" if os.path.exists(path) else "does not exist"  # noqa: PTH110 - False for a name that is too long
                missing = f"the file {path} {why}"
            raise SuiteError(f"program {name}: {missing}{_nearest(where, is_file, suite) or f'; {_FORMS}'}")
        module, takes_task = None if is_file else where, _takes_task(name, path, function)
        sources[name] = ProgramSource(path=path, function=function, module=module, takes_task=takes_task, sha256=sha256)
    return sources


def _command_source(name: str, command: CommandSource) -> ProgramSource:
    """Return a command with the file that it starts.

    Raises:
        SuiteError: there is none.
    """
    for words in filter(None, (command.words, command.serve, command.prepare)):
        if shutil.which(words[0]) is None:
            variable = words[0].partition("=")[0]
            remedy = (
                "give its path, or install it" if variable == words[0] else f"for a variable, write env {words[0]} …"
            )
            raise SuiteError(f"command {name}: there is no program {words[0]!r} here; {remedy}")
    path = shutil.which(command.words[0]) or ""
    return ProgramSource(
        path=path, function="command", takes_task=False, sha256=file_sha256(path) or "", command=command
    )


def _nearest(where: str, is_file: bool, suite: Suite) -> str:
    """Return ``; did you mean model.py?``, of the files beside the one that is missing; empty where none is near."""
    path = Path(where) if is_file else Path(*where.split(".")).with_suffix(".py")
    try:
        stems = sorted(file.stem for file in Path(suite.folder, path.parent).iterdir() if file.suffix == ".py")
    except OSError:
        return ""
    stem = nearest(path.stem, stems)
    if stem is None:
        return ""
    file = path.parent / f"{stem}.py"
    return f"; did you mean {file if is_file else '.'.join(file.with_suffix('').parts)}?"


def program_file(text: str) -> Path | None:
    """Return the file that a program's text stands for; None: it is a module's."""
    where, _, is_file = _split(_named(text)[1])
    return Path(where) if is_file else None


def _named(text: str) -> tuple[str, str]:
    """Return the name before a ``=``, or "", and what names the program. A file whose own name has a ``=`` has none."""
    name, _, rest = text.partition("=")
    is_file = any(Path(path).is_file() for path in (text, text.rpartition(":")[0]))
    return (name, rest) if rest and VARIANT_NAME.fullmatch(name) and not is_file else ("", text)


def _split(text: str) -> tuple[str, str, bool]:
    """Return the file or module, the function, and whether it is a file."""
    where, _, function = text.rpartition(":")
    if not where or not function.isidentifier():
        where, function = text, DEFAULT_FUNCTION
    is_file = where.endswith(".py") or os.sep in where
    if not is_file and not all(name.isidentifier() for name in where.split(".")):
        raise SuiteError(f"{text!r} does not name a program; {_FORMS}")
    return where, function, is_file


def _module_file(name: str, module: str, suite: Suite) -> str | None:
    """Return the file that workers import as this module, the same in every variant; None: there is none."""
    texts = {variant.env.get(PATHS, os.environ.get(PATHS, "")) for variant in suite.all_variants()}
    files = {_found(module, text) for text in sorted(texts or {os.environ.get(PATHS, "")})}
    if len({file and file_sha256(file) for file in files}) > 1:
        raise SuiteError(
            f"program {name}: {module} is not the same file in all variants, as their {PATHS} differs; "
            "give the program as a file, which all variants run"
        )
    return min(files, key=str)


def _found(module: str, python_path: str) -> str | None:
    """Return a module's file; no package is imported on the way, as a package may import its framework.

    The order is that of `kit.import_order`: PYTHONPATH, the environment, the current folder.
    """
    here, (top, *names) = str(Path.cwd()), module.split(".")
    given = [os.path.abspath(path) for path in python_path.split(os.pathsep)] if python_path else []  # noqa: PTH100
    others = [path for path in sys.path if path not in {"", here, *given_folders()}]
    spec = PathFinder.find_spec(top, [*given, *others]) or find_spec(top) or PathFinder.find_spec(top, [here])
    if spec is None or not names:
        return spec.origin if spec is not None and spec.has_location else None
    paths = [Path(folder, *names) for folder in spec.submodule_search_locations or ()]
    files = [file for path in paths for file in (path / "__init__.py", path.with_suffix(".py"))]
    return next((str(file) for file in files if file.is_file()), None)


def _takes_task(name: str, path: str, function: str) -> bool:
    """Return whether the function has a parameter `task`; one that is not defined in the file itself has none."""
    try:
        table = symtable.symtable(decode_source(read_limited(Path(path), PROGRAM_MAX_B)), path, "exec")
    except (SyntaxError, ValueError) as error:
        raise SuiteError(f"program {name}: {path} is not valid Python: {error}; fix it") from None
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    if function not in bound:
        functions = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_namespace()}
        remedy = f"define {function}(batch, device), see {page('how-to/own-model.md')}"
        meant = did_you_mean(function, functions)
        raise SuiteError(f"program {name}: {path} has no function {function!r}{meant or f'; {remedy}'}")
    scopes = {scope.get_name(): scope for scope in table.get_children() if isinstance(scope, symtable.Function)}
    return function in scopes and "task" in scopes[function].get_parameters()
