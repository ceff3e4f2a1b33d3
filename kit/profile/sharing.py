"""One object for what many profiles repeat: ten thousand of them come from few machines and suites."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kit.profile.brief import CellBrief, LaunchBrief, ProfileBrief

T = TypeVar("T")


class Sharing:
    """Has profiles share what they have in common with the one that was seen last in the same place.

    Equality is asked, not taken from a name or a hash: a profile cannot change what another one says.
    """

    def __init__(self) -> None:
        self._cells: dict[str, CellBrief] = {}
        self._others: dict[Any, Any] = {}

    def share(self, brief: ProfileBrief) -> ProfileBrief:
        """The same profile, with one object for whatever it has in common with those before."""
        host = (brief.identity.hostname_sha256, brief.identity.sha256)
        brief.identity = self._seen(host, brief.identity)
        brief.suite = self._seen(brief.suite.sha256, brief.suite)
        brief.sensors = self._seen("sensors", brief.sensors)
        for cell in brief.cells:
            last = self._cells.get(cell.key)
            if last is not None:
                _share_cell(cell, last)
            self._cells[cell.key] = cell
        return brief

    def _seen(self, place: object, value: T) -> T:
        last: T | None = self._others.get(place)
        if last == value:
            return last
        self._others[place] = value
        return value


def _share_cell(cell: CellBrief, last: CellBrief) -> None:
    cell.key = last.key
    if cell.cell == last.cell:
        cell.cell = last.cell
    if cell.parity == last.parity:
        cell.parity = last.parity
    if cell.summary.reasons == last.summary.reasons:
        cell.summary = msgspec.structs.replace(cell.summary, reasons=last.summary.reasons)
    # Most launches differ from the last profile's in nothing that is read here.
    pairs = zip(last.launches, cell.launches, strict=False)
    launches = [theirs if theirs == own else _with_losses(own, theirs) for theirs, own in pairs]
    cell.launches = launches + cell.launches[len(launches) :]


def _with_losses(own: LaunchBrief, theirs: LaunchBrief) -> LaunchBrief:
    if own.parity is None or own.parity != theirs.parity:
        return own
    return msgspec.structs.replace(own, parity=theirs.parity)
