"""What a backend's `about.py` says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kit.errors import KitError


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
    builds_workloads: bool = True  # false: it runs what a user's own function has built

    @property
    def interpreter_variable(self) -> str:
        """Return the environment variable that names the interpreter which has the framework."""
        return f"KIT_PYTHON_{self.name.upper()}"

    def untranslated(self, layer: object) -> BackendError:
        """Return the error of a backend that has no translation of a kind of layer."""
        return BackendError(f"{self.title} cannot run the layer {type(layer).__name__} here: it has no translation yet")
