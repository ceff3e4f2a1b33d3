"""What a backend's `about.py` says about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from kit.environment import PROCESS_EACH, PYTHON_PREFIX
from kit.errors import KitError
from kit.profile.cell import Cell


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
    compile_modes: tuple[str, ...]  # the first is the default
    precisions: tuple[str, ...] = ("float32",)
    feeds: tuple[str, ...] = ("device", "host")
    environment_prefixes: tuple[str, ...] = ()  # the variables that it reads begin with these
    decided_by: tuple[str, ...] = ()  # patterns of the variables that decide its speed
    environment: Mapping[str, str] = {}  # its workers get these variables, unless the user has set them
    sharing: Mapping[str, str] = {}  # and these, so that workers share a GPU, unless the framework keeps its defaults
    compile_cache: Mapping[str, str] = {}  # variables that keep compilations in the folder FOLDER
    start_s: float = 6.0  # a worker's start and first build on two virtual CPUs take so long; estimates alone use it
    # By kind of device, how several devices share a batch: "ranks" have a process each, "devices" are all in one
    # process. A kind that is missing here has no such cells.
    data_parallel: Mapping[str, Literal["ranks", "devices"]] = {}
    keeps_to_interface: bool = False  # its ranks listen at their addresses alone, not on every interface
    builds_workloads: bool = True  # false: a user's function builds what it runs

    @property
    def interpreter_variable(self) -> str:
        """Return the environment variable that names the interpreter which has the framework."""
        return f"{PYTHON_PREFIX}{self.name.upper()}"

    def ranks(self, cell: Cell, variables: Mapping[str, str], hosts: int = 1) -> int:
        """Return how many processes a cell has on so many hosts, if its workers have these `variables`."""
        is_each = self.data_parallel.get(cell.device) == "ranks" or variables.get(PROCESS_EACH, "") not in ("", "0")
        return cell.devices if is_each else hosts

    def untranslated(self, layer: object) -> BackendError:
        """Return the error for a layer that this backend has no translation of."""
        return BackendError(f"{self.title} cannot run the layer {type(layer).__name__}: it has no translation; add one")
