"""Can this interpreter run a backend? Answered without importing the framework, unless its devices are asked for."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG, load
from kit.devices import DEVICES
from kit.import_order import import_as_plain_python
from kit.version import __version__


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What an interpreter answers."""

    backend: str
    version: str | None  # of the framework; null if it is not installed
    kit: str
    not_preloaded: list[str] = []  # libraries of LD_PRELOAD that the loader did not load: it only warns
    devices: dict[str, int] | None = None  # that the framework sees; null: not asked, or see why_no_devices
    why_no_devices: str | None = None


def print_probe(backend: str, *, devices: bool = False) -> int:
    """Print the answer as JSON, in a last line of its own; return the exit code."""
    import_as_plain_python()
    version = _version(backend)
    probe = Probe(backend=backend, version=version, kit=__version__, not_preloaded=_not_preloaded())
    if devices and version is not None:
        try:
            probe = replace(probe, devices={kind: load(backend).count(kind) for kind in DEVICES})
        except Exception as error:  # of the framework, whatever it is
            probe = replace(probe, why_no_devices=f"{type(error).__name__}: {error}")
    sys.stdout.write("\n" + msgspec.json.encode(probe).decode() + "\n")
    return 0


def _version(backend: str) -> str | None:
    entry = CATALOG.get(backend)  # one that another distribution adds may be missing here
    if entry is None or importlib.util.find_spec(entry.module) is None:
        return None
    for distribution in entry.distributions:
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _not_preloaded() -> list[str]:
    wanted = [entry for entry in re.split(r"[ :]+", os.environ.get("LD_PRELOAD", "")) if entry]
    try:
        maps = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return []
    mapped = {line.rpartition("/")[2] for line in maps.splitlines() if "/" in line}
    return [entry for entry in wanted if not any(_is_library(entry, name) for name in mapped)]


def _is_library(entry: str, mapped: str) -> bool:
    """Whether a mapped file is the library asked for; a name such as libx.so.4 may be a link to libx.so.4.5.9."""
    name = Path(entry).name
    return mapped == name or mapped.startswith(f"{name}.") or mapped == Path(entry).resolve().name
