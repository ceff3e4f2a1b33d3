"""What is known of a backend before its framework is imported: its `about.py`, and variables that decide its speed.

Some environment variables set a worker's threads, and some are read by its framework: all are recorded.
`KIT_FRAMEWORK_DEFAULTS` leaves an accelerator's settings to each framework. Otherwise Steadykit makes them the same in
all frameworks.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Literal, NamedTuple

from packaging.version import InvalidVersion, Version

from kit import backends
from kit.environment import CHOICES, FRAMEWORK_DEFAULTS, NOT_OF_FRAMEWORKS, PROCESS_EACH, PYTHON_PREFIX
from kit.errors import KitError
from kit.nearest import choices
from kit.profile.cell import FRAMEWORKS_OWN, Cell
from kit.profile.fields import Reason, reason

# Libraries read these when they are loaded, before the worker can set their threads. A variant that sets one of them
# takes over the threads of its workers.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC",
    "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
)  # fmt: skip
# cuBLAS and cuDNN obey this variable and not the framework that calls them.
TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
# Where the driver keeps what it has compiled of PTX, for a GPU that a library has no binary for (CUDA C++ Programming
# Guide, "CUDA Environment Variables").
CUDA_CACHE = "CUDA_CACHE_PATH"
# oneDNN's own, under both of its names: what it computes float32 in where nobody asks for a precision.
ONEDNN_PRECISION = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
# Every process reads these, whichever framework is in it.
EVERY_PROCESS = (
    "LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_*", "TCMALLOC_*", "JEMALLOC_*", "OPENBLAS_*", "BLIS_*", "GOTO_*",
    "CUDA_*", "CUBLAS_*", "CUDNN_*", "NVIDIA_*",
    "NCCL_[!V]*",  # NCCL_VERSION sets nothing: it names what an NVIDIA image contains
)  # fmt: skip


class BackendError(KitError):
    """A backend that is unknown or not installed, or that cannot run a layer or a user program."""


class BackendEntry(NamedTuple):
    """What is known about a framework before it is imported."""

    name: str  # in cells; its folder has the same name
    title: str  # in tables
    rank: int  # tables list smaller ranks first
    module: str  # the module to import
    distributions: tuple[str, ...]  # any of these provides the module
    packages: tuple[str, ...]  # a fingerprint lists the versions of these distributions
    compile_modes: tuple[str, ...]  # the first is the framework's own default
    compiled_mode: str = ""  # the default of a GPU's cells, so that compilers are compared; empty: the first
    precisions: tuple[str, ...] = ("float32",)
    feeds: tuple[str, ...] = ("device", "host")
    environment_prefixes: tuple[str, ...] = ()  # its own variables begin with these
    decided_by: tuple[str, ...] = ()  # patterns of others that it reads and that decide its speed
    environment: Mapping[str, str] = {}  # its workers get these variables, unless the user has set them
    sharing: Mapping[str, str] = {}  # and these, so that workers share a GPU, unless the framework keeps its defaults
    compile_cache: Mapping[str, str] = {}  # variables that keep compilations in the folder FOLDER
    # Variables without which nothing is found that was compiled in an earlier process: their values, in which FOLDER is
    # the process's own; None: they are not set; of a variable of flags, the flags that are left out.
    compile_anew: Mapping[str, str | None] = {}
    start_s: float = 6.0  # a worker's start and first build on two virtual CPUs take so long; estimates alone use it
    # By kind of device, how several devices share a batch: "ranks" have a process each, "devices" are all in one
    # process. A kind that is missing here has no such cells.
    data_parallel: Mapping[str, Literal["ranks", "devices"]] = {}
    keeps_to_interface: bool = False  # its ranks listen at their addresses alone, not on every interface
    builds_workloads: bool = True  # false: a user's function builds what it runs
    tested_to: str = ""  # the newest release that the tests have run with, as "2.15"; empty: nobody says

    @property
    def interpreter_variable(self) -> str:
        """Return the environment variable that names the interpreter which has the framework."""
        return f"{PYTHON_PREFIX}{self.name.upper()}"

    def ranks(self, cell: Cell, variables: Mapping[str, str], hosts: int = 1) -> int:
        """Return how many processes a cell has on so many hosts, if its workers have these `variables`."""
        is_each = self.data_parallel.get(cell.device) == "ranks" or variables.get(PROCESS_EACH, "") not in ("", "0")
        return cell.devices if is_each else hosts

    def default_mode(self, device: str) -> str:
        """Return the compile mode of cells for which none is named."""
        return self.compiled_mode if device == "gpu" and self.compiled_mode else self.compile_modes[0]

    def newer_than_tested(self, version: str) -> Reason | None:
        """Return that this version of the framework is of a later release than the tests have run with."""
        with suppress(InvalidVersion):  # what somebody built may be called anything
            tested = Version(self.tested_to).release
            if Version(version).release[: len(tested)] > tested:
                return reason("newer_than_tested", title=self.title, version=version, tested=self.tested_to)
        return None

    def untranslated(self, layer: object) -> BackendError:
        """Return the error for a layer that this backend has no translation of."""
        return BackendError(f"{self.title} cannot run the layer {type(layer).__name__}: it has no translation; add one")


def kit_entries() -> dict[str, BackendEntry]:
    """Return the entry of each folder of `kit.backends` by its name; nothing else of a folder is imported."""
    folders = [module.name for module in pkgutil.iter_modules(backends.__path__) if module.ispkg]
    return {name: import_module(f"{__package__}.{name}.about").ENTRY for name in folders}


def read_from_environment(entry: BackendEntry, variables: Mapping[str, str], threads_set: bool) -> dict[str, str]:
    """Return the `variables` that a framework reads; without those of threads if Steadykit set the threads."""
    patterns = (*EVERY_PROCESS, *entry.decided_by)
    return {
        name: variables[name]
        for name in sorted(variables)
        if (name.startswith(entry.environment_prefixes) or any(fnmatchcase(name, pattern) for pattern in patterns))
        and not name.startswith(NOT_OF_FRAMEWORKS)
        and not (threads_set and name in THREAD_VARIABLES)
    }


def keeps_defaults() -> bool:
    """Return whether the framework keeps its own search for kernels and its own use of memory."""
    return os.environ.get(FRAMEWORK_DEFAULTS, "") not in ("", "0")


def keeps_precision(cell: Cell) -> bool:
    """Return whether the framework decides what float32 is computed in."""
    return cell.device != "cpu" and cell.precision == FRAMEWORKS_OWN


def tf32_setting(value: object) -> str:
    """Return a switch of float32's precision on a GPU, with the variable that overrides it if that is set."""
    override = os.environ.get(TF32_OVERRIDE)
    return str(value) if override is None else f"{value} ({TF32_OVERRIDE}={override})"


def choice_set(variable: str, variables: Mapping[str, str] = os.environ) -> str:
    """Return which of its choices a variable names; empty: it is not set."""
    value, able = variables.get(variable, ""), CHOICES[variable]
    if value and value not in able:
        raise BackendError(f"{variable}={value}: {choices(value, able)}")
    return value


def variables_set(*names: str) -> dict[str, str]:
    """Return those of FRAMEWORK_DEFAULTS and `names` that are set, with their values."""
    return {name: value for name in (FRAMEWORK_DEFAULTS, *names) if (value := os.environ.get(name))}
