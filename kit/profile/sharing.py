"""One object for what many profiles repeat: ten thousand of them come from few machines and suites."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import msgspec

from kit.profile.brief import CellBrief, CellRead, ProfileBrief, ProfileRead, cell_brief, profile_brief
from kit.profile.launch_brief import LaunchBrief
from kit.profile.launches_brief import condense

T = TypeVar("T")


class _Seen(NamedTuple):
    """A cell, with the launches that its brief was taken from."""

    brief: CellBrief
    launches: list[LaunchBrief]


class Sharing:
    """Has profiles share what they have in common with the one that was seen last in the same place.

    Equality is asked, not taken from a name or a hash: a profile cannot change what another one says.
    """

    def __init__(self) -> None:
        self._cells: dict[str, _Seen] = {}
        self._others: dict[Any, Any] = {}

    def brief_of(self, read: ProfileRead) -> ProfileBrief:
        """The profile's brief, with one object for whatever it has in common with those before."""
        host = (read.identity.hostname_sha256, read.identity.sha256)
        read.identity = self._seen(host, read.identity)
        read.suite = self._seen(read.suite.sha256, read.suite)
        read.sensors = self._seen("sensors", read.sensors)
        return profile_brief(read, [self._cell(cell) for cell in read.cells])

    def _seen(self, place: object, value: T) -> T:
        last: T | None = self._others.get(place)
        if last == value:
            return last
        self._others[place] = value
        return value

    def _cell(self, cell: CellRead) -> CellBrief:
        last = self._cells.get(cell.key)
        brief = _alone(cell) if last is None else _shared(cell, last)
        self._cells[cell.key] = _Seen(brief, cell.launches)
        return brief


def _alone(cell: CellRead) -> CellBrief:
    return cell_brief(cell, condense(cell.cell, cell.launches))


def _shared(cell: CellRead, last: _Seen) -> CellBrief:
    theirs = last.brief
    cell.key = theirs.key
    if cell.parity == theirs.parity:
        cell.parity = theirs.parity
    if cell.summary.reasons == theirs.summary.reasons:
        cell.summary = msgspec.structs.replace(cell.summary, reasons=theirs.summary.reasons)
    if cell.cell == theirs.cell:
        cell.cell = theirs.cell
        # Most launches differ from the last profile's in nothing that is read.
        if cell.launches == last.launches:
            return cell_brief(cell, theirs.condensed)
    own = condense(cell.cell, cell.launches)
    if own.parity is not None and own.parity == theirs.condensed.parity:
        own = msgspec.structs.replace(own, parity=theirs.condensed.parity)
    return cell_brief(cell, own)
