"""What a backend's `about.py` says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from kit.environment import PROCESS_EACH, PYTHON_PREFIX
from kit.errors import KitError
from kit.profile.cell import Cell


class BackendError(KitError):
    """A backend's name, an installation, or a layer that cannot work."""


class BackendEntry(NamedTuple):
    """What can be said of a framework before it is imported."""

    name: str  # as in cells; also of its folder
    title: str  # as in tables
    rank: int  # its place in tables: smaller ranks stand first
    module: str  # what is imported
    distributions: tuple[str, ...]  # any of these provides it
    packages: tuple[str, ...]  # distributions whose versions belong to it in a fingerprint
    compile_modes: tuple[str, ...]  # first: the default
    precisions: tuple[str, ...] = ("float32",)
    feeds: tuple[str, ...] = ("device", "host")
    environment_prefixes: tuple[str, ...] = ()  # of the variables that it reads
    decided_by: tuple[str, ...] = ()  # patterns of variables that it reads and that decide its speed
    environment: Mapping[str, str] = {}  # what its members are started with, unless the user has set it
    sharing: Mapping[str, str] = {}  # as much, so that members can share a GPU; not where it keeps its defaults
    start_s: float = 6.0  # of a member's start on two virtual CPUs, its first build included: for estimates alone
    # Kind of device -> how several of them work on one batch: "ranks": a process each; "devices": all in one process.
    # A kind that is not here: on one device alone.
    data_parallel: Mapping[str, Literal["ranks", "devices"]] = {}
    builds_workloads: bool = True  # false: it runs what a user's own function has built

    @property
    def interpreter_variable(self) -> str:
        """Return the environment variable that names the interpreter which has the framework."""
        return f"{PYTHON_PREFIX}{self.name.upper()}"

    def ranks(self, cell: Cell, variables: Mapping[str, str], hosts: int = 1) -> int:
        """Return how many processes a cell of this framework has on so many hosts; members have these `variables`."""
        is_each = self.data_parallel.get(cell.device) == "ranks" or variables.get(PROCESS_EACH, "") not in ("", "0")
        return cell.devices if is_each else hosts

    def untranslated(self, layer: object) -> BackendError:
        """Return the error of a backend that has no translation of a kind of layer."""
        return BackendError(f"{self.title} cannot run the layer {type(layer).__name__}: it has no translation; add one")
