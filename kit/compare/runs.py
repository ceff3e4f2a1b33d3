"""Runs: the cells of a profile as samples, with what their launches gave, and the groups whose parts are put together.

profile ─run_of─► Run ─► CellGroup ─► Sample ─► LaunchRow      `kit.compare.metrics` reads values of a sample,
                                                               `kit.compare.ratios` compares two,
                                                               `kit.audit` asks rules about it
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import msgspec

from kit.compare.ceilings import Ceiling, ceilings_of
from kit.compare.clean import (
    THROTTLED_LEAST_PCT,
    CleanRounds,
    contended_pct,
    contention_pct,
    count_blocks,
    throttled_pct,
)
from kit.compare.comparability import CellFacts, RunFacts, cell_facts, facts_of
from kit.compare.contradictions import against_mode, left_out
from kit.compare.modes import Modes, fill_modes
from kit.compare.naming import label_members
from kit.compare.rows import Headline, Note
from kit.compare.table import BlockTable, LaunchRow, showing_start
from kit.printable import printable_line
from kit.profile.cell import Cell
from kit.profile.fields import Reason, reason
from kit.profile.program_source import ProgramSource
from kit.profile.schema import PART, CellResult, Group, Profile, SuiteUsed
from kit.profile.store import canonical_json
from kit.stats.sessions import RunLevel

T = TypeVar("T")
PercentilesNs = tuple[float | None, float | None, float | None]  # p50, p95 and p99


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
        begin_s = max(begins_s, key=lambda moment_s: moment_s or 0.0) if None not in begins_s else begins_s[0]
        ends_s = [begin_s, None if after is None else _seconds(after.taken)]
        end_s = max((moment_s for moment_s in ends_s if moment_s is not None), default=None)
        return cls(begin_s, end_s, min(begins_ns) / 1e9 if begins_ns else None)


def _seconds(moment: str) -> float | None:
    """Return an ISO 8601 moment in seconds since 1970; None where it is none."""
    try:
        taken = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (taken if taken.tzinfo else taken.replace(tzinfo=UTC)).timestamp()


@dataclass(eq=False)
class Sample:
    """One cell in one run."""

    run: Run
    cell: Cell
    cell_key: str  # that it has in its profile
    key: str  # on platforms, of what was asked; else the cell's
    group: str  # key of its whole group; on platforms, of what was asked
    name: str  # what tells it apart in its group
    launches: Sequence[LaunchRow]
    percentiles_ns: PercentilesNs = (None, None, None)  # of its steps that were waited for one by one
    cell_group: CellGroup | None = None  # that it was measured in; null: none, or its launches were dropped
    side: str = ""  # of several: machine and label, or platform, of its run
    table: str = ""  # of several sides: the group of the same cell on the first side that has it
    values: dict[str, Any] = field(default_factory=dict)  # by metric, as far as they were read
    levels: dict[str, RunLevel | None] = field(default_factory=dict)  # by metric, without the times of its run
    loaded: frozenset[Any] | None = None  # what its launches had imported; null: nobody has asked
    series: dict[str, Any] = field(default_factory=dict)  # by metric, as far as `kit.compare.ratios.series` made them
    figures: Sequence[LaunchRow] = field(init=False)  # that its figures come from, and those that failed
    good: Sequence[LaunchRow] = field(init=False)  # with a number that its figures come from
    measured: Sequence[LaunchRow] = field(init=False)  # all with a number
    _known: dict[object, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.figures = [launch for launch in self.launches if launch.is_listed]
        self.good = [launch for launch in self.launches if launch.gives_figures]
        self.measured = [launch for launch in self.launches if launch.counting.steps]

    def once(self, what: object, compute: Callable[[], T]) -> T:
        """Return what was computed of its launches before, or compute it."""
        if what not in self._known:
            self._known[what] = compute()
        value: T = self._known[what]
        return value

    @cached_property
    def starts(self) -> Sequence[LaunchRow]:
        """The launches that show how it starts: of those that count, else of all that finished where some reuse it.

        Where later rounds reuse compilations, the only one that shows them may be a round that others disturbed.
        """
        finished = [launch for launch in self.launches if launch.record.failure is None]
        is_reused = any(launch.record.reused_compilation for launch in finished)
        return showing_start(self.good) or (showing_start(finished) if is_reused else [])

    @property
    def was_never_first(self) -> bool:
        """Whether the processes that show how it starts had all run another program before it."""
        return bool(self.starts) and all(launch.is_warm for launch in self.starts)

    @cached_property
    def others_pct(self) -> float | None:
        """Without a clean cycle: what others took during its figures."""
        return None if self.cell_group is None else self.cell_group.rounds.others_pct(self.good)

    @cached_property
    def failure(self) -> Reason | None:
        """Why the first launch that failed did."""
        failures = [failure.reason for launch in self.launches if (failure := launch.record.failure) is not None]
        return failures[0] if failures else None

    @cached_property
    def facts(self) -> CellFacts:
        """What keeps it apart from the same cell of another run."""
        return cell_facts([launch.record for launch in self.launches], self.run.incompatible)

    @property
    def baseline(self) -> Sample | None:
        """The baseline of the group that it was measured in."""
        return None if self.cell_group is None else self.cell_group.samples.get(self.cell_group.baseline)

    def contention_pct(self, part: str | None = None) -> float:
        """Return what others took of the CPUs' time beside it in a part of its group; None: in all."""

        def compute() -> float:
            return contention_pct([launch for launch in self.measured if part in (None, launch.group)])

        return self.once(("contention", part), compute)

    @cached_property
    def taken_pct(self) -> float | None:
        """What others took of the CPUs' time during its figures; None: no more than a system's own work does."""
        taken_pct = contended_pct(self.good)
        return taken_pct if self.others_pct is None else max(self.others_pct, taken_pct or 0.0)

    @cached_property
    def threads(self) -> int:
        """The number of threads that computed it; 0 if no launch recorded it."""
        recorded = [launch.record.threads for launch in self.measured if launch.record.threads is not None]
        return max((threads.used or threads.reported or 0 for threads in recorded), default=0)

    @cached_property
    def marks(self) -> list[Reason]:
        """What the launches of its figures were marked with."""
        return [mark for launch in self.good for mark in launch_marks(launch)]


@dataclass(eq=False)
class CellGroup:
    """The cells of a run that answer one question, its parts put together."""

    key: str
    parts: list[Group]  # one where it was not split; each has the baseline
    rounds: CleanRounds  # of the run
    programs: Mapping[str, ProgramSource] = field(default_factory=dict)  # of the run, by workload
    samples: dict[str, Sample] = field(default_factory=dict)  # by key of the cell, each once, in the profile's order

    @property
    def baseline(self) -> str:
        """The key of its baseline."""
        return self.parts[0].baseline

    def part_of(self, *keys: str) -> Group | None:
        """Return the first part that these cells are in; two cells have at most one in common."""
        return next((part for part in self.parts if all(key in part.cells for key in keys)), None)

    def is_disturbed(self, *keys: str) -> bool:
        """Whether others disturbed every round of the part of these cells, or of either's part."""
        part = self.part_of(*keys)
        parts = [part] if part is not None else [self.part_of(key) for key in keys]
        return any(part is not None and part.key in self.rounds.disturbed for part in parts)

    def by_round(self, part: Group) -> dict[str, dict[int, LaunchRow]]:
        """Return the launches of each cell that gave a number in a part, by round; cells without any are left out."""
        by_round = {
            key: {launch.round: launch for launch in self.samples[key].measured if launch.group == part.key}
            for key in part.cells
            if key in self.samples
        }
        return {key: launches for key, launches in by_round.items() if launches}

    @cached_property
    def modes(self) -> dict[tuple[str, str], Modes]:
        """The two modes of each cell that has them, by part and cell. Which blocks are slow is known from then on."""
        modes: dict[tuple[str, str], Modes] = {}
        for part in self.parts:
            modes |= {(part.key, key): known for key, known in fill_modes(self.by_round(part)).items()}
        return modes


@dataclass(eq=False)
class Run:
    """One profile, or one device of it."""

    label: str  # of its file
    profile: Profile  # whole, as it was read
    table: BlockTable
    rounds: CleanRounds
    by: str  # name of the metric that its cells are compared by
    headline: Headline = field(init=False)  # what ran, where and when: `kit.compare.notes.read_run` fills it
    notes: list[Note] = field(init=False)  # what must be said of it in whichever comparison: the same does
    id: str = field(init=False)
    given_label: str = field(init=False)  # the user's own; empty: none
    identity: bytes = field(init=False)  # alike in runs of the same machine and software
    hardware: str = field(init=False)  # hash of what no update of software changes
    host: str = field(init=False)  # hash of its machine's name; empty: of a container, whose name is drawn anew
    compared: list[str] = field(init=False)  # axes that its groups compare over
    programs: dict[str, ProgramSource] = field(init=False)  # user programs, by name
    without_all_reduce: set[str] = field(init=False)  # variants whose devices average nothing

    def __post_init__(self) -> None:
        profile, machine = self.profile, self.profile.identity
        self.id, self.given_label, self.compared = profile.id, printable_line(profile.label), profile.suite.compare
        self.programs = profile.suite.programs
        self.without_all_reduce = {variant.name for variant in profile.suite.variants if not variant.all_reduces}
        self.identity = canonical_json(machine.setup())
        self.hardware, self.host = machine.hardware_sha256, machine.host

    @property
    def rule(self) -> str:
        """Name of the rule by which its cycles count."""
        return self.rounds.rule

    @property
    def facts(self) -> RunFacts:
        """Its facts that are compared."""
        return self._facts[0]

    @property
    def incompatible(self) -> dict[str, str]:
        """Its facts that keep all of its cells apart from those of another run, by kind."""
        return self._facts[1]

    @cached_property
    def _facts(self) -> tuple[RunFacts, dict[str, str]]:
        return facts_of(self.profile)

    @cached_property
    def times(self) -> RunTimes:
        """When it began, in which order its cells ran, and on which boot of the machine."""
        return RunTimes.of(self.profile)

    @cached_property
    def ceilings(self) -> list[Ceiling]:
        """What its operations reached."""
        return ceilings_of(self.table)

    @cached_property
    def groups(self) -> list[CellGroup]:
        """Its groups that have cells."""
        return _cell_groups(self)

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """Its cells by key, each once: in the first of its groups."""
        samples: dict[str, Sample] = {}
        for group in self.groups:
            samples |= {key: sample for key, sample in group.samples.items() if key not in samples}
        return samples

    @property
    def samples_of_groups(self) -> list[Sample]:
        """Its cells in each of their groups, without those that a filter left out; once where launches were dropped."""
        if "profile" not in vars(self):
            return [*self.samples.values()]
        return [sample for group in self.groups for key, sample in group.samples.items() if key in self.samples]

    def sample_of(self, group: str, key: str) -> Sample:
        """Return a cell in a group, both given by their keys."""
        return next(whole.samples[key] for whole in self.groups if whole.key == group)

    def complete_table(self) -> BlockTable:
        """Return its table with every column filled: `modes` fills which blocks are slow when a group is asked."""
        for group in self.groups:
            _ = group.modes
        return self.table

    def drop_launches(self, *, has_marks: bool = True) -> None:
        """Let go of everything but what was computed: a thousand runs fit into memory. `has_marks`: marks are kept."""
        for name in ("facts", "times"):
            getattr(self, name)
        for sample in self.samples.values():
            for name in ("facts", "failure", "others_pct", "taken_pct"):
                getattr(sample, name)
            sample.marks = sample.marks if has_marks else []
            sample.launches = sample.figures = sample.good = sample.measured = ()
            sample.values = {name: known for name, known in sample.values.items() if known is not None}
            sample.series, sample._known = {}, {}
            # A field that it lacks has its default.
            for name in ("cell_group", "percentiles_ns"):
                del vars(sample)[name]
            sample.__dict__ = dict(vars(sample))  # a dictionary that lost entries stays as large as it was
        self.rounds = CleanRounds({}, self.rounds.is_all)
        for name in ("profile", "table", "ceilings", "groups"):
            self.__dict__.pop(name, None)


def run_of(label: str, profile: Profile, by: str = "step_ns", *, all_cycles: bool = False) -> Run:
    """Return a profile as samples.

    Args:
        label: of the profile.
        profile: whole.
        by: name of the metric that its cells are compared by.
        all_cycles: cycles that others disturbed count, too.
    """
    table, rounds = count_blocks(profile.cells, profile.suite.plan.cycles, all_cycles=all_cycles)
    return Run(label, profile, table, rounds, by)


def _cell_groups(run: Run) -> list[CellGroup]:
    """Return the groups of a profile that have cells."""
    profile, parts = run.profile, dict[str, list[Group]]()
    for part in profile.groups:
        parts.setdefault(whole_key(part.key), []).append(part)
    groups = []
    for key, alike in parts.items():
        members = {cell for part in alike for cell in part.cells}
        results = [result for result in profile.cells if result.key in members]
        names = label_members({result.key: result.cell for result in results}, run.compared)
        group = CellGroup(key, alike, run.rounds, profile.suite.programs)
        for result in results:
            every = run.table.by_cell[result.key]
            launches = [launch for launch in every if whole_key(launch.group) == key]
            # Percentiles were recorded of all launches together.
            is_alone = len(launches) == len(every)
            percentiles_ns = _percentiles_ns(result, every, run.rounds) if is_alone else (None, None, None)
            group.samples[result.key] = Sample(
                run, result.cell, result.key, result.key, key, names[result.key], launches, percentiles_ns, group
            )
        groups += [group] if results else []
    return groups


def _percentiles_ns(result: CellResult, launches: Iterable[LaunchRow], rounds: CleanRounds) -> PercentilesNs:
    """Return the percentiles of the steps that count, as they were recorded.

    Those without a median beside them are of all cycles: what they are of those that count is unknown.
    """
    recorded_ns = result.p50_ns, result.p95_ns, result.p99_ns
    if rounds.is_all:
        all_ns = result.all_cycles_ns if result.p50_ns is not None else None
        return recorded_ns if not all_ns else (all_ns[0], all_ns[1], all_ns[2])
    if result.p50_ns is not None:
        return recorded_ns
    is_changed = any(
        (launch.counting is not launch.blocks and launch.record.gave_number) or launch.group in rounds.disturbed
        for launch in launches
    )
    return (None, None, None) if is_changed else recorded_ns


def group_samples(suite: SuiteUsed, group: Group, cells: Iterable[Cell], table: BlockTable) -> dict[str, Sample]:
    """Return the cells of one group, of a run that is not over, as samples by their keys."""
    cell_group = CellGroup(group.key, [group], CleanRounds({}), suite.programs)
    for cell in cells:
        launches = [launch for launch in table.by_cell[cell.key] if launch.group == group.key]
        cell_group.samples[cell.key] = Sample(
            None,  # type: ignore[arg-type]
            cell,
            cell.key,
            cell.key,
            group.key,
            "",
            launches,
            cell_group=cell_group,
        )
    return cell_group.samples


def launch_sample(launch: LaunchRow) -> Sample:
    """Return one launch of a cell as a sample by itself; percentiles are of all launches together."""
    key, group = launch.cell.key, Group(key=launch.group, cells=[launch.cell.key], baseline="")
    cell_group = CellGroup(group.key, [group], CleanRounds({}))
    return Sample(None, launch.cell, key, key, group.key, "", [launch], cell_group=cell_group)  # type: ignore[arg-type]


def whole_key(group_key: str) -> str:
    """Return the key of the group that a part, or a whole group, is of."""
    return group_key.partition(PART)[0]


def same_host(runs: Iterable[Run]) -> bool:
    """Whether all ran on one machine; of containers, whose names are drawn anew, on like hardware."""
    return len({(run.hardware, run.host) for run in runs}) == 1


def launch_marks(launch: LaunchRow) -> list[Reason]:
    """Return what one launch was marked with when it ran, and what its counters say."""
    if not launch.has_counting:
        return []
    record = launch.record
    marks = {mark.code: mark for mark in record.notes}
    recompiles, certificate = record.recompiles, record.certificate
    stopped_pct = throttled_pct(launch)
    if stopped_pct >= THROTTLED_LEAST_PCT:
        marks["throttled"] = reason("throttled", share_pct=stopped_pct)
    elif (taken_pct := contended_pct([launch])) is not None:
        marks["contended"] = reason("contended", share_pct=taken_pct)
    if certificate is not None:
        step_ns = min(filter(None, launch.counting.median_ns), default=math.inf)
        if step_ns < certificate.shortest_step_ns:
            code = "step_too_short_for_clock"
            marks[code] = reason(code, step_ns=step_ns, shortest_ns=certificate.shortest_step_ns)
    if record.compile_cache is not None:
        marks["keeps_compilations"] = reason("keeps_compilations", settings=record.compile_cache)
    if recompiles is not None and recompiles.count:
        marks.setdefault("recompiled", reason("recompiled", count=recompiles.count))
    if recompiles is not None and recompiles.graph_breaks:
        marks.setdefault("graph_breaks", reason("graph_breaks", count=recompiles.graph_breaks))
    for against in (against_mode(launch.cell, record), left_out(record)):
        if against is not None:
            marks.setdefault(against.code, against)
    return list(marks.values())


def counted_marks(marks: Iterable[Reason]) -> list[Reason]:
    """Return each mark once, the gravest launch's values with it, and how many launches have it."""
    by_code = defaultdict(list)
    for mark in marks:
        by_code[mark.code].append(mark)

    def severity(mark: Reason) -> float:
        return max((value for value in mark.values.values() if isinstance(value, int | float)), default=0)

    worst = [(max(alike, key=severity), len(alike)) for alike in by_code.values()]
    return [msgspec.structs.replace(mark, values={**mark.values, "launches": count}) for mark, count in worst]
