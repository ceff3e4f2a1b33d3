"""The code that a worker has imported: proof that two variants, or two programs, differ in what was measured.

    module ─┬─ below a folder of libraries ─┬─ of a distribution that pip built from a folder or a repository ─► file
            │                               └─ of another: name and version say what it is ─► environment
            └─ elsewhere ─► file            path relative to its repository, SHA-256 of its content

Modules are read from `sys.modules`, after the blocks. Steadykit itself is left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from kit.profile.schema import ImportedCode, ImportedFile

# Read and hashed in about 10 ms by a processor without instructions for SHA-256. People's own packages have fewer; a
# framework on PYTHONPATH has thousands, and is told apart by those that are read.
FILES_MAX = 192
BYTES_MAX = 2 << 20
KIT = str(Path(__file__).parents[1])
# Of a distribution: pip writes where it came from, unless that is an index (PEP 610).
DIST_INFO, ORIGIN, RECORD = ".dist-info", "direct_url.json", "RECORD"
EDITABLE = "__editable__"


def imported_code() -> ImportedCode:
    """Return what this process has imported until now."""
    libraries = tuple(f"{folder}{os.sep}" for folder in _library_folders())
    versions, built_here = _installed()
    paths = {
        path: built_here.get(path) or _relative(path)
        for path in dict.fromkeys(_module_files())
        if not path.startswith(f"{KIT}{os.sep}")
        and (path in built_here or not path.startswith(libraries))
        # What was compiled in this launch lies there, and differs in each.
        and not path.startswith(f"{tempfile.gettempdir()}{os.sep}steadykit-")
        # An installer's own, which leads to what was installed in place.
        if not os.path.basename(path).startswith(EDITABLE)  # noqa: PTH119 - as text
    }
    files, left_b = list[ImportedFile](), BYTES_MAX
    # Of a file that is not read: that the same one was loaded is told by where it lies and when it was changed.
    unread = list[str]()
    for path, name in sorted(paths.items(), key=lambda item: (item[1], item[0])):
        try:
            status = os.stat(path)  # noqa: PTH116 - as text: it is called for each file
            if len(files) < FILES_MAX and status.st_size <= left_b:
                files.append(ImportedFile(path=name, sha256=hashlib.sha256(Path(path).read_bytes()).hexdigest()))
                left_b -= status.st_size
            else:
                unread.append(f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}")
        except OSError:
            unread.append(path)
    return ImportedCode(
        files=files,
        left_out=len(unread),
        left_out_sha256=hashlib.sha256("\0".join(unread).encode(errors="surrogateescape")).hexdigest(),
        environment_sha256=_environment_sha256(versions, libraries, paths),
    )


def _module_files() -> Iterator[str]:
    """Yield the file of each module. A module that loads on the first access to it is not loaded here."""
    for module in list(sys.modules.values()):
        try:
            path = object.__getattribute__(module, "__dict__").get("__file__")
        except AttributeError:
            continue
        if isinstance(path, str):
            yield path


@cache
def _library_folders() -> list[str]:
    """Return the folders of the standard library and of installed packages, also those of a base environment."""
    named = [*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")), *site.getsitepackages()]
    named += [site.getusersitepackages(), str(Path(os.__file__).parent)]
    named += [path for path in sys.path if os.path.basename(path) in {"site-packages", "dist-packages"}]  # noqa: PTH119
    return list(dict.fromkeys([*named, *map(os.path.realpath, named)]))


@cache
def _installed() -> tuple[list[str], dict[str, str]]:
    """Return name, version and origin of distributions, and the files of those that pip built here, by their path.

    A version does not say what these hold. Of an archive its hash does, which pip has written.
    """
    versions, built_here = list[str](), dict[str, str]()
    for folder in dict.fromkeys(map(os.path.realpath, _library_folders())):
        with suppress(OSError):
            for entry in os.scandir(folder):
                if not entry.name.endswith((DIST_INFO, ".egg-info")):
                    continue
                known_from = os.path.join(entry.path, ORIGIN)  # noqa: PTH118 - as text: there may be hundreds
                try:
                    origin = json.loads(Path(known_from).read_bytes()) if os.path.exists(known_from) else {}  # noqa: PTH110
                except (OSError, ValueError):
                    origin = {}
                if "dir_info" in origin or "vcs_info" in origin:
                    for line in Path(entry.path, RECORD).read_text("utf-8", errors="replace").splitlines():
                        name = line.split(",", 1)[0]
                        built_here[os.path.join(folder, name)] = name  # noqa: PTH118 - as text: there may be thousands
                else:
                    versions.append(f"{entry.name} {json.dumps(origin.get('archive_info'), sort_keys=True)}")
    return sorted(versions), built_here


def _relative(path: str) -> str:
    """Return a path from its repository on, else from the folder that it was imported from."""
    folder = _repository(os.path.dirname(path))  # noqa: PTH120 - as text, which `_repository` remembers
    if folder is None:
        folder = max(
            (known for known in sys.path if known and path.startswith(f"{known}{os.sep}")), key=len, default=""
        )
    return os.path.relpath(path, folder) if folder else Path(path).name


@cache
def _repository(folder: str) -> str | None:
    if os.path.exists(os.path.join(folder, ".git")):  # noqa: PTH110, PTH118 - as text; a worktree's is a file
        return folder
    parent = os.path.dirname(folder)  # noqa: PTH120
    return None if parent == folder else _repository(parent)


def _environment_sha256(versions: list[str], libraries: tuple[str, ...], modules: Iterable[str]) -> str:
    """Return a hash of the interpreter, the installed distributions and the native libraries that are loaded.

    Two builds of one version differ in the sizes of their libraries. A library from elsewhere is named with its path.
    """
    known, left_out = {*modules}, (f"{KIT}{os.sep}", tempfile.gettempdir())
    native = set[str]()
    with suppress(OSError):
        for path in {
            line.partition("/")[2] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line
        }:
            full = f"/{path}"
            if full in known or full.startswith(left_out):  # hashed, the kit's, or compiled in this launch
                continue
            with suppress(OSError):
                name = full.rpartition("/")[2] if full.startswith(libraries) else full
                native.add(f"{name} {os.stat(full).st_size}")  # noqa: PTH116 - as text
    # A kit that lies outside the environment is a checkout, and two checkouts are two kits.
    checkout = "" if KIT.startswith(libraries) else KIT
    facts = [sys.version, os.path.realpath(sys.base_prefix), checkout, *versions, *sorted(native)]
    return hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()
