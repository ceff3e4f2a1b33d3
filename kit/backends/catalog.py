"""Which backends there are, named without importing any framework, and loading one.

A backend is a folder in `kit/backends/`: `about.py` with its `BackendEntry`, importable without the framework, and
`backend.py` with `BACKEND`, which imports it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from kit import backends
from kit.errors import KitError
from kit.workloads.catalog import discover

if TYPE_CHECKING:
    from kit.backends.protocol import Backend


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
    environment_prefixes: tuple[str, ...] = ()  # of the variables that it reads
    environment: Mapping[str, str] = {}  # what its members are started with, unless the user has set it

    @property
    def interpreter_variable(self) -> str:
        """Return the environment variable that names the interpreter which has the framework."""
        return f"KIT_PYTHON_{self.name.upper()}"

    def untranslated(self, layer: object) -> BackendError:
        """Return the error of a backend that has no translation of a kind of layer."""
        return BackendError(f"{self.title} cannot run the layer {type(layer).__name__} here: it has no translation yet")


CATALOG: dict[str, BackendEntry] = dict(
    sorted(discover(backends, BackendEntry, "about").items(), key=lambda item: (item[1].rank, item[0]))
)


def load(name: str) -> Backend:
    """Import the framework called `name` and return its backend.

    Raises:
        BackendError: no such backend, or its framework (or a part of it) is not installed.
    """
    if name not in CATALOG:
        raise BackendError(f"no backend is called {name!r}; choose from: {', '.join(CATALOG)}")
    for variable, value in CATALOG[name].environment.items():
        os.environ.setdefault(variable, value)
    try:
        module = import_module(f"kit.backends.{name}.backend")
    except ImportError as error:
        raise BackendError(f"{CATALOG[name].title} cannot be imported ({error}); install it or leave it out") from error
    return cast("Backend", module.BACKEND)
