"""From a backend's name to the backend. The framework is imported here and not before."""

from __future__ import annotations

import importlib
from typing import cast

from kit.backends.catalog import CATALOG
from kit.backends.errors import BackendError
from kit.backends.protocol import Backend


def load(name: str) -> Backend:
    """Import the framework called `name` and return its backend.

    Raises:
        BackendError: no such backend, or its framework (or a part of it) is not installed.
    """
    if name not in CATALOG:
        raise BackendError(f"no backend is called {name!r}; choose from: {', '.join(CATALOG)}")
    try:
        module = importlib.import_module(f"kit.backends.{name}")
    except ImportError as error:
        raise BackendError(f"{CATALOG[name].title} cannot be imported ({error}); install it or leave it out") from error
    return cast(Backend, module.create_backend())
