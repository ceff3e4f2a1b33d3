"""Says, before anything is installed, what this machine lacks: one line each, with what to install. Run by `make`.

Usage: `PYTHON images/preflight.py`. Exit status 0: nothing is missing; 1: something is.
Kept to what Python 3.7 can run: an old one must be told that it is old, not shown a syntax error.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 13)  # the frameworks publish no wheels beyond


def system_fault(platform: str) -> str | None:
    """What is wrong with an operating system, or None: the kit reads Linux' own counters."""
    return None if platform == "linux" else f"works on Linux alone, and this is {platform}: run it there"


def python_fault(major: int, minor: int) -> str | None:
    """What is wrong with Python `major`.`minor`, or None."""
    if OLDEST <= (major, minor) <= NEWEST:
        return None
    oldest, newest = (f"{version[0]}.{version[1]}" for version in (OLDEST, NEWEST))
    return f"Python {major}.{minor} will not do: install Python {oldest} to {newest} and run make PYTHON=python{newest}"


def venv_fault() -> str | None:
    """Debian and Ubuntu ship Python without what fills a virtual environment."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return None
    return "Python's venv module is missing: install python3-venv (Debian, Ubuntu)"


def compiler_fault() -> str | None:
    """The native clock is C."""
    named = os.environ.get("CC")
    wanted = shlex.split(named)[:1] if named else ["cc", "gcc", "clang"]
    if any(shutil.which(name) for name in wanted):
        return None
    if named:
        return f"CC names a C compiler that is not there ({named}): correct or unset CC"
    return "no C compiler: install gcc (Debian, Ubuntu: build-essential; Fedora: gcc)"


def headers_fault() -> str | None:
    """The native clock includes Python.h."""
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    if header.exists():
        return None
    return f"no {header}: install Python's headers (Debian, Ubuntu: python3-dev; Fedora: python3-devel)"


def faults() -> list[str]:
    """Every fault of this machine. A wrong system or Python is the only one: another has another venv and headers."""
    wrong = system_fault(sys.platform) or python_fault(*sys.version_info[:2])
    if wrong:
        return [wrong]
    return [fault for fault in (venv_fault(), compiler_fault(), headers_fault()) if fault]


def main() -> int:
    """Print every fault on standard error."""
    missing = faults()
    for fault in missing:
        sys.stderr.write(f"steadykit: {fault}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
