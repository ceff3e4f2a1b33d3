"""Refusing a cell that a backend cannot run, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping

from kit.backends.catalog import CATALOG
from kit.backends.errors import BackendError
from kit.profile.cell import Cell

PRECISIONS = ("float32",)


def require_supported(cell: Cell, devices: Mapping[str, int]) -> None:
    """Raise BackendError unless `cell` is one that its backend runs with these devices.

    Args:
        cell: what is asked for.
        devices: kind -> how many the framework sees.
    """
    entry = CATALOG[cell.backend]
    if cell.compile_mode not in entry.compile_modes:
        choices = ", ".join(entry.compile_modes)
        raise BackendError(f"{entry.title} has no compile mode {cell.compile_mode!r}; choose from: {choices}")
    if cell.precision not in PRECISIONS:
        choices = ", ".join(PRECISIONS)
        raise BackendError(f"{entry.title} cannot run in precision {cell.precision!r} here; choose from: {choices}")
    if cell.devices != 1:
        raise BackendError(f"{cell.devices} devices asked for; {entry.title} runs on 1 here")
    if devices.get(cell.device, 0) < 1:
        seen = ", ".join(f"{kind} ({count})" for kind, count in devices.items() if count)
        raise BackendError(f"{entry.title} sees no {cell.device} on this machine; it sees: {seen}")
