"""Is a framework installed for this interpreter, and which version? Answered without importing it."""

from __future__ import annotations

import importlib.metadata
import importlib.util

import msgspec

from kit.backends.catalog import CATALOG


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """`version` is null if the framework is not installed."""

    backend: str
    version: str | None


def probe(backend: str) -> Probe:
    """Look for the framework's module and the distribution that provides it."""
    entry = CATALOG[backend]
    if importlib.util.find_spec(entry.module) is None:
        return Probe(backend=backend, version=None)
    for distribution in entry.distributions:
        try:
            return Probe(backend=backend, version=importlib.metadata.version(distribution))
        except importlib.metadata.PackageNotFoundError:
            continue
    return Probe(backend=backend, version=None)
