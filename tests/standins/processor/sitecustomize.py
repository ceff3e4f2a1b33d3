"""Plants a processor below the kit: Python imports this file wherever its folder is on PYTHONPATH.

PLANTED_PROCESSOR is a folder that `planted_processor.plant_processor` wrote. The kit then reads the processor's files
below it, and `platform.machine` answers the kit with its architecture. Other callers, such as the frameworks, meet the
real processor, whose instructions they use.
"""

import importlib.machinery
import importlib.util
import os
import platform
import sys
import types
from functools import wraps
from pathlib import Path

PREFIXES = ("/proc/cpuinfo", "/sys/devices/system/cpu", "/sys/devices/system/node")


def _planted(path):
    """Return where the planted file of a path is; the path itself for anything but the processor's files."""
    folder = os.environ.get("PLANTED_PROCESSOR")
    text = str(path)
    return Path(f"{folder}{text}") if folder and text.startswith(PREFIXES) else path


def _asked_by_kit():
    """Whether the caller of the wrapped function is a module of the kit, or of py-cpuinfo, which it asks."""
    return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] in ("kit", "cpuinfo")


def _redirected(method):
    @wraps(method)
    def redirected(self, *arguments, **options):
        return method(_planted(self) if _asked_by_kit() else self, *arguments, **options)

    return redirected


def _redirected_glob(glob):
    @wraps(glob)
    def redirected(self, pattern, **options):
        if _asked_by_kit() and (planted := _planted(self / pattern)) != self / pattern:
            folder = Path(os.environ["PLANTED_PROCESSOR"])
            return glob(folder, str(planted.relative_to(folder)), **options)
        return glob(self, pattern, **options)

    return redirected


def _machine(machine):
    @wraps(machine)
    def planted_machine():
        folder = os.environ.get("PLANTED_PROCESSOR")
        return Path(folder, "machine").read_text() if folder and _asked_by_kit() else machine()

    return planted_machine


def plant():
    """Wrap what the kit reads the processor with, once a process."""
    if hasattr(platform.machine, "__wrapped__"):
        return
    platform.machine = _machine(platform.machine)
    Path.read_text, Path.exists = _redirected(Path.read_text), _redirected(Path.exists)
    Path.glob = _redirected_glob(Path.glob)


def _run_next():
    """Run the sitecustomize that this one hides, such as that of the fault tests."""
    here = Path(__file__).parent
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [path for path in sys.path if Path(path) != here])
    if spec is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    plant()
    _run_next()
    # The kit lists the files that a program imports; this one is no part of any program.
    sys.modules[__name__] = types.ModuleType(__name__)
