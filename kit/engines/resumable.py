"""Whether a run may go on here: launches of two machines, or of two kits, are not one measurement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kit.engines.interpreters import interpreter_for
from kit.errors import KitError
from kit.fingerprint.identity import identity
from kit.profile.cell import Cell
from kit.profile.identity import Identity, State
from kit.profile.journal import JournalHeader
from kit.version import __version__

# Hashes say that something differs; the fields under them say what.
HASHES = frozenset({"sha256", "hardware_sha256"})
# Cumulative since the machine was started: after a pause, or a reboot, before and after do not belong together.
COUNTERS = ("context_switches", "steal_ns", "cgroup_throttled", "cgroup_throttled_ns", "pressure_cpu_some_ns")
WHY_NO_COUNTERS = "the run was resumed: the difference would count the pause, and a reboot sets the counter back"


class NotResumableError(KitError):
    """The run was begun on another machine, with other software, or on other CPUs."""


def check_resumable(header: JournalHeader, cpus: list[int]) -> None:
    """Compare what the run was begun on with what is here. Takes about a second.

    Args:
        header: of the interrupted run's journal.
        cpus: that this process may run on.

    Raises:
        NotResumableError: naming what differs.
    """
    if header.kit != __version__:
        raise _differs("the kit", header.kit, __version__)
    begun_on = header.plan.cpus
    if begun_on != cpus:
        raise _differs("usable CPUs", begun_on, cpus)
    here = identity(interpreters(header.plan.cells))
    # A container's host name is drawn anew for each; everything else must be as it was there, too.
    renamed = {"hostname_sha256"} if here.container.engine and header.identity.container.engine else set()
    for path, before, now in _differences(header.identity, here):
        if path not in renamed:
            raise _differs(path, before, now)


def interpreters(cells: list[Cell]) -> tuple[str, ...]:
    """The Pythons that run the cells' frameworks."""
    return tuple(dict.fromkeys(interpreter_for(backend) for backend in sorted({cell.backend for cell in cells})))


def without_counters(before: State) -> State:
    """The state before a run that is resumed: its counters are null, with the reason."""
    nulls: dict[str, Any] = dict.fromkeys(COUNTERS)
    return msgspec.structs.replace(before, **nulls, reasons=before.reasons | dict.fromkeys(COUNTERS, WHY_NO_COUNTERS))


def _differs(what: str, begun_on: object, here: object) -> NotResumableError:
    return NotResumableError(
        f"the run cannot go on: {what} was {begun_on} when it began and is {here} now; "
        "resume it where it began, or begin a run with another --out"
    )


def _differences(begun_on: Identity, here: Identity) -> Iterator[tuple[str, object, object]]:
    yield from _walk("", msgspec.to_builtins(begun_on), msgspec.to_builtins(here))


def _walk(path: str, before: object, now: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted((before.keys() | now.keys()) - HASHES):
            yield from _walk(f"{path}.{name}".lstrip("."), before.get(name), now.get(name))
    elif before != now:
        yield path, before, now
