"""One run as a comparison of several keeps it, and sides: the runs of one identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from kit.compare.cell_numbers import first_failure, launch_marks, numbers_of, processes_shared
from kit.compare.explaining_facts import CellFacts, Facts, cell_facts, facts_of
from kit.compare.naming import label_members
from kit.compare.notes import headline_of, run_notes
from kit.compare.pairs import Pairs
from kit.compare.rows import Headline, Note, Numbers
from kit.compare.within import launches_of, parts_of, whole_groups
from kit.errors import KitError
from kit.printable import printable_line
from kit.profile.canonical import canonical_json
from kit.profile.cell import Cell
from kit.profile.identity import Identity
from kit.profile.reason import Reason
from kit.profile.schema import Profile
from kit.stats.rounds import By


class CellRun(NamedTuple):
    """One cell of one run."""

    cell: Cell
    group: str  # key of its whole group
    name: str  # in its group
    numbers: Numbers
    facts: CellFacts
    marks: list[Reason]  # of all launches
    failure: Reason | None


class Run(NamedTuple):
    """What is kept of a profile: a thousand of them fit into memory."""

    label: str  # of its file
    given_label: str  # the user's own; empty: none
    id: str
    identity: bytes  # alike in runs of the same machine and software
    hardware: str  # hash of what no update of software changes
    cells: dict[str, CellRun]
    facts: Facts
    headline: Headline
    notes: list[Note]


class Side(NamedTuple):
    """Runs of one identity and one given label."""

    label: str
    runs: list[Run]

    def of_cell(self, key: str) -> list[CellRun]:
        """Return the cell of every run that has it."""
        return [run.cells[key] for run in self.runs if key in run.cells]


def reduce_run(label: str, profile: Profile, by: By = "step", *, details: bool = True) -> Run:
    """Return what a comparison needs of a profile, which can then be dropped.

    Args:
        label: of the profile.
        profile: whole.
        by: what its cells will be compared by.
        details: marks, phases, counters and sensors, too: a side of many runs does not show them.
    """
    shared, cells = processes_shared(profile), {}
    for group, members in whole_groups(profile).items():
        by_key = {result.key: result.cell for result in members}
        names, parts = label_members(by_key, profile.suite.compare), parts_of(profile, group)
        pairs = Pairs(parts, by_key, launches_of(profile, group), by=by)
        for member in members:
            cells[member.key] = CellRun(
                cell=member.cell,
                group=group,
                name=names[member.key],
                numbers=numbers_of(
                    member, member.launches, shared, pairs.shown_ns(member.key, parts[0].baseline), by, details=details
                ),
                facts=cell_facts(member.launches),
                marks=[mark for launch in member.launches for mark in launch_marks(launch)] if details else [],
                failure=first_failure(member.launches),
            )
    return Run(
        label=label,
        given_label=printable_line(profile.label),
        id=profile.id,
        identity=_identity_key(profile.identity),
        hardware=profile.identity.hardware_sha256,
        cells=cells,
        facts=facts_of(profile),
        headline=headline_of(label, profile),
        notes=run_notes(label, profile),
    )


def _identity_key(identity: Identity) -> bytes:
    """Return what is alike in runs of the same machine and software; a container's host name is drawn anew for each."""
    host = identity.hostname_sha256 if identity.container.engine is None else ""
    plain = msgspec.structs.replace(identity, hostname_sha256=host, reasons={}, hardware_sha256="", sha256="")
    return canonical_json(plain)


def sides_of(runs: Sequence[Run], against: Sequence[Run], baseline: str | None) -> tuple[Side, list[Side]]:
    """Return the baseline's side and the later ones, each the runs of one identity and one given label.

    The baseline is the side of the first run, or of the one that `baseline` names. Where all runs are alike in both
    and none was given apart, it is that run alone.
    """
    everyone = [*runs, *against]
    first = next((run for run in everyone if baseline in (None, run.label, run.given_label)), None)
    if first is None:
        raise KitError(f"no profile {baseline!r}; choose from {', '.join(run.label for run in everyone)}")
    alike = [*_alike(runs), *_alike(against)]
    if len(alike) == 1:
        alike = [[first], *_alike([run for run in everyone if run is not first])]
    sides = _named(alike)
    base = next(side for side in sides if any(run is first for run in side.runs))
    return base, [side for side in sides if side is not base]


def _alike(runs: Sequence[Run]) -> list[list[Run]]:
    sides: dict[tuple[bytes, str], list[Run]] = {}
    for run in runs:
        sides.setdefault((run.identity, run.given_label), []).append(run)
    return list(sides.values())


def _named(alike: Sequence[list[Run]]) -> list[Side]:
    """Return the sides by their given labels; where there is none, or two have it, by their files."""
    given = [runs[0].given_label for runs in alike]
    sides = []
    for label, runs in zip(given, alike, strict=True):
        files = runs[0].label + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")
        sides.append(Side(files if not label else label if given.count(label) == 1 else f"{label} ({files})", runs))
    return sides
