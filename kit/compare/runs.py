"""One run as comparisons see it: its groups, their parts put together, and what is kept of each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from kit.compare.ceilings import Ceiling, ceilings_of, reach_of
from kit.compare.cell_numbers import (
    Processes,
    combined,
    counted_marks,
    first_failure,
    judged_ns,
    launch_marks,
    numbers_of,
    processes_shared,
)
from kit.compare.clean_cycles import CountedCycles, count_cycles
from kit.compare.explaining_facts import CellFacts, Facts, cell_facts, facts_of
from kit.compare.leaders import leaders_of
from kit.compare.modes import Modes
from kit.compare.naming import label_members
from kit.compare.notes import headline_of, left_out_notes, run_notes
from kit.compare.pairs import Pairs
from kit.compare.rows import Headline, Note, Numbers, Row
from kit.printable import printable_line
from kit.profile.canonical import canonical_json
from kit.profile.cell import Cell
from kit.profile.reason import Reason
from kit.profile.schema import PART, CellResult, Group, Profile
from kit.stats.rounds import By


class WholeGroup(NamedTuple):
    """A group with its parts put together."""

    key: str
    parts: list[Group]  # one where it was not split; each has the baseline
    results: dict[str, CellResult]  # by key of the cell, each once, in the profile's order
    names: dict[str, str]  # what tells each cell apart
    counted: CountedCycles  # of the profile

    def pairs(
        self, by: By = "step", modes: Mapping[tuple[str, str], Modes] | None = None, baseline: str | None = None
    ) -> Pairs:
        """Return its cells against each other; the family is of comparisons with `baseline`; None: the group's own."""
        cells = {key: result.cell for key, result in self.results.items()}
        levels = {
            key: {(of.group, of.round) for of in self.counted.figure_launches(result) if of.gave_number}
            for key, result in self.results.items()
        }
        launches = {key: result.launches for key, result in self.results.items()}
        contended = [part.key for part in self.parts if self.counted.is_disturbed(part.key)]
        return Pairs(self.parts, cells, launches, modes, by, levels=levels, contended=contended, baseline=baseline)

    def cell_run(self, key: str, pairs: Pairs, run: RunFacts, by: By, *, details: bool = True) -> CellRun:
        """Return what is kept of a cell; `pairs` are those by step, other arguments as of `numbers_of`.

        Whatever it is compared with, a cell's step is the one beside the group's own baseline: one name, one number.
        Only a cell that has no verdict against that, as others disturbed both, has a step of its own.
        """
        result = self.results[key]
        others_pct = self.counted.others_pct(result)
        baseline = self.parts[0].baseline
        is_alone = others_pct is not None and (baseline not in self.results or pairs.is_contended(key, baseline))
        shown_ns = None if is_alone else pairs.shown_ns(key, baseline)
        launches = self.counted.figure_launches(result)
        numbers = numbers_of(result, launches, run.processes, shown_ns, by, others_pct=others_pct, details=details)
        if details:
            ratio = None if numbers.fit is None else numbers.fit.pipeline_ratio
            reach = reach_of(result.cell, numbers.step_ns, ratio, run.ceilings)
            numbers = msgspec.structs.replace(numbers, reach=reach)
        return CellRun(
            cell=result.cell,
            group=self.key,
            name=self.names[key],
            numbers=numbers,
            facts=cell_facts(result.launches, self.counted.profile),
            marks=[mark for launch in launches for mark in launch_marks(result.cell, launch)] if details else [],
            failure=first_failure(result.launches),
        )


class RunFacts(NamedTuple):
    """What the numbers of a run's cells are read with."""

    processes: Processes
    ceilings: list[Ceiling]

    @classmethod
    def of(cls, profile: Profile) -> RunFacts:
        """Return those of a profile."""
        return cls(processes_shared(profile), ceilings_of(profile))


class CellRun(NamedTuple):
    """One cell of one run."""

    cell: Cell
    group: str  # key of its whole group
    name: str  # in its group
    numbers: Numbers
    facts: CellFacts
    marks: list[Reason]  # of all launches
    failure: Reason | None


class RunTimes(NamedTuple):
    """When a run was: by the wall clock, and by a clock that nobody sets."""

    begin_s: float | None  # seconds since 1970; null: the profile does not say it
    end_s: float | None
    raw_s: float | None  # since the machine's boot, when its first phase began; null: none was recorded

    @classmethod
    def of(cls, profile: Profile) -> RunTimes:
        """Return those of a profile."""
        launches = [launch for result in profile.cells for launch in result.launches if launch.phases]
        first_round = min((launch.round for launch in launches), default=0)
        begins_ns = [launch.phases[0].begin_ns for launch in launches if launch.round == first_round]
        before, after = profile.state.before, profile.state.after
        # `created` has whole seconds, and the next of two runs may begin in the second in which the first ends.
        begins_s = [_seconds(profile.created), _seconds(before.taken)]
        begin_s = max(begins_s, key=lambda known: known or 0.0) if None not in begins_s else begins_s[0]
        ends_s = [begin_s, None if after is None else _seconds(after.taken)]
        end_s = max((known for known in ends_s if known is not None), default=None)
        return cls(begin_s, end_s, min(begins_ns) / 1e9 if begins_ns else None)


def _seconds(moment: str) -> float | None:
    """Return an ISO 8601 moment in seconds since 1970; None where it is none."""
    try:
        known = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (known if known.tzinfo else known.replace(tzinfo=UTC)).timestamp()


class Run(NamedTuple):
    """What is kept of a profile: a thousand of them fit into memory."""

    label: str  # of its file
    given_label: str  # the user's own; empty: none
    id: str
    identity: bytes  # alike in runs of the same machine and software
    hardware: str  # hash of what no update of software changes
    host: str  # hash of its machine's name; empty: of a container, whose name is drawn anew
    cells: dict[str, CellRun]
    facts: Facts
    headline: Headline
    times: RunTimes
    notes: list[Note]
    compared: list[str]  # axes that its groups compare over
    fastest: dict[str, list[str]]  # key of a group -> keys of the cells that verdicts show to be, or to be tied


def whole_key(group_key: str) -> str:
    """Return the key of the group that a part, or a whole group, is of."""
    return group_key.partition(PART)[0]


def whole_groups(counted: CountedCycles) -> list[WholeGroup]:
    """Return the groups of a profile that have cells."""
    parts: dict[str, list[Group]] = {}
    profile = counted.profile
    for group in profile.groups:
        parts.setdefault(whole_key(group.key), []).append(group)
    groups = []
    for key, of_key in parts.items():
        members = {cell for part in of_key for cell in part.cells}
        results = {result.key: result for result in profile.cells if result.key in members}
        names = label_members({member: result.cell for member, result in results.items()}, profile.suite.compare)
        if results:
            groups.append(WholeGroup(key, of_key, results, names, counted))
    return groups


def row_of(
    name: str, cell_runs: Sequence[CellRun], profiles: Sequence[str] = (), *, side: str = "", is_baseline: bool = False
) -> Row:
    """Return the row of a cell of one run, or of several of a side, without a verdict."""
    return Row(
        name=f"{name} · {side}" if side else name,
        member=name,
        side=side,
        cell=cell_runs[0].cell,
        profiles=list(profiles),
        numbers=combined([run.numbers for run in cell_runs]),
        is_baseline=is_baseline,
        marks=counted_marks(mark for run in cell_runs for mark in run.marks),
        failure=next((run.failure for run in cell_runs if run.failure is not None), None),
    )


def reduce_run(label: str, profile: Profile, by: By = "step", *, details: bool = True, all_cycles: bool = False) -> Run:
    """Return what a comparison needs of a profile, which can then be dropped.

    Args:
        label: of the profile.
        profile: whole.
        by: what its cells will be compared by.
        details: marks, phases, counters, sensors and who is the fastest, too: of many runs they are not shown.
        all_cycles: cycles that others disturbed count, too.
    """
    counted = count_cycles(profile, all_cycles=all_cycles)
    facts, cells, fastest = RunFacts.of(counted.profile), dict[str, CellRun](), dict[str, list[str]]()
    for group in whole_groups(counted):
        pairs = group.pairs()
        for key in group.results:
            cells[key] = group.cell_run(key, pairs, facts, by, details=details)
        if details:
            fastest[group.key] = _fastest(group, pairs if by == "step" else group.pairs(by), cells, by)
    return Run(
        label=label,
        given_label=printable_line(profile.label),
        id=profile.id,
        identity=canonical_json(profile.identity.setup()),
        hardware=profile.identity.hardware_sha256,
        host=profile.identity.host,
        cells=cells,
        facts=facts_of(profile),
        headline=headline_of(label, counted.profile),
        times=RunTimes.of(profile),
        notes=[*run_notes(label, profile), *left_out_notes(label, counted)],
        compared=profile.suite.compare,
        fastest=fastest,
    )


def _fastest(group: WholeGroup, pairs: Pairs, cells: Mapping[str, CellRun], by: By) -> list[str]:
    times_ns = {key: judged_ns(cells[key].numbers, by) for key in group.results}
    ordered = sorted((key for key, time_ns in times_ns.items() if time_ns), key=lambda key: times_ns[key] or 0)
    leaders = leaders_of(ordered, pairs, {key: key for key in ordered})
    return [] if leaders is None or leaders.modes else leaders.tied
