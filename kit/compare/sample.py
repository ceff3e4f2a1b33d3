"""Samples: a cell in a run, with what its launches gave, and the groups of a run whose parts are put together.

profile ─read_run─► Run ─► CellGroup ─► Sample          `kit.compare.metrics` reads values of it,
                                                        `kit.compare.paired_ratios` compares two,
                                                        `kit.audit` asks rules about it

What a run does not need to compute, it does not: its parts are computed when they are first asked for.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import msgspec

from kit.compare.ceilings import Ceiling, ceilings_of
from kit.compare.clean_cycles import CountedCycles, count_cycles, cpu_loss
from kit.compare.comparability import CellFacts, Facts, cell_facts, facts_of
from kit.compare.comparison import Headline, Note
from kit.compare.modes import Modes, group_modes
from kit.compare.naming import label_members
from kit.compare.notes import headline_of, left_out_notes, run_notes
from kit.printable import printable_line
from kit.profile.cell import Cell
from kit.profile.fields import Reason, reason
from kit.profile.schema import PART, CellResult, Group, Launch, Profile
from kit.profile.store import canonical_json

T = TypeVar("T")
# (round, process) -> key of each cell that it held -> when the cell's first step began; null: it had none.
Processes = Mapping[tuple[int, str], Mapping[str, int | None]]


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
    result: CellResult  # the cell, with the cycles that count
    key: str  # of the cell; on platforms, of what was asked
    group: str  # key of its whole group; on platforms, of what was asked
    name: str  # what tells it apart in its group
    together: CellGroup | None = None  # that it was measured in; null: none, or its launches were dropped
    side: str = ""  # of several: machine and label, or platform, of its run
    table: str = ""  # of several sides: the group of the same cell on the first side that has it
    computed: dict[object, Any] = field(default_factory=dict)

    @property
    def cell(self) -> Cell:
        """Which it is."""
        return self.result.cell

    @property
    def cell_key(self) -> str:
        """The key that it has in its profile."""
        return self.result.key

    @property
    def launches(self) -> list[Launch]:
        """All launches, with the cycles that count."""
        return self.result.launches

    def once(self, what: object, compute: Callable[[], T]) -> T:
        """Return what was computed before, or compute it."""
        if what not in self.computed:
            self.computed[what] = compute()
        value: T = self.computed[what]
        return value

    @cached_property
    def figures(self) -> list[Launch]:
        """The launches that its figures come from, and those that failed."""
        return [] if self.together is None else self.together.counted.figure_launches(self.result)

    @cached_property
    def good(self) -> list[Launch]:
        """The launches with a number that its figures come from."""
        return [launch for launch in self.figures if launch.gave_number]

    @cached_property
    def measured(self) -> list[Launch]:
        """All launches with a number."""
        return [launch for launch in self.launches if launch.gave_number]

    @cached_property
    def others_pct(self) -> float | None:
        """Without a clean cycle: what others took during its figures."""
        return None if self.together is None else self.together.counted.others_pct(self.result)

    @cached_property
    def failure(self) -> Reason | None:
        """Why the first launch that failed did."""
        return next((launch.failure.reason for launch in self.launches if launch.failure is not None), None)

    @cached_property
    def facts(self) -> CellFacts:
        """What keeps it apart from the same cell of another run."""
        return cell_facts(self.launches, self.run.incompatible)

    @property
    def baseline(self) -> Sample | None:
        """The baseline of the group that it was measured in."""
        return None if self.together is None else self.together.samples.get(self.together.baseline)

    def contention_pct(self, part: str | None = None) -> float:
        """Return what others took of the CPUs' time beside it in a part of its group; None: in all."""

        def compute() -> float:
            lost = cpu_loss(self.cell, [launch for launch in self.measured if part in (None, launch.group)])
            return 0.0 if lost is None else lost.contention_pct

        return self.once(("contention", part), compute)

    @property
    def taken_pct(self) -> float | None:
        """What others took of the CPUs' time during its figures; None: no more than a system's own work does."""

        def compute() -> float | None:
            lost = cpu_loss(self.cell, self.good)
            taken_pct = lost.contention_pct if lost is not None and lost.is_contended else None
            return taken_pct if self.others_pct is None else max(self.others_pct, taken_pct or 0.0)

        return self.once("taken_pct", compute)

    @cached_property
    def threads(self) -> int:
        """The number of threads that computed it; 0 if no launch recorded it."""
        recorded = [launch.threads for launch in self.measured if launch.threads is not None]
        return max((threads.used or threads.reported or 0 for threads in recorded), default=0)

    def is_warm(self, launch: Launch) -> bool:
        """Whether its process had run another program before."""
        begins_ns = self.run.processes.get((launch.round, launch.process), {})
        begin_ns = begins_ns.get(launch.cell_key)
        return begin_ns is not None and any(other is not None and other < begin_ns for other in begins_ns.values())

    @property
    def marks(self) -> list[Reason]:
        """What the launches of its figures were marked with."""
        return self.once("marks", lambda: [mark for launch in self.figures for mark in launch_marks(self.cell, launch)])


@dataclass(eq=False)
class CellGroup:
    """The cells of a run that answer one question, its parts put together."""

    key: str
    parts: list[Group]  # one where it was not split; each has the baseline
    counted: CountedCycles  # of the profile
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
        return any(part is not None and part.key in self.counted.disturbed for part in parts)

    def rounds(self, part: Group) -> dict[str, dict[int, Launch]]:
        """Return the launches of each cell that gave a number in a part, by round; cells without any are left out."""
        rounds = {
            key: {launch.round: launch for launch in self.samples[key].measured if launch.group == part.key}
            for key in part.cells
            if key in self.samples
        }
        return {key: launches for key, launches in rounds.items() if launches}

    @cached_property
    def modes(self) -> dict[tuple[str, str], Modes]:
        """The two modes of each cell that has them, by part and cell."""
        modes: dict[tuple[str, str], Modes] = {}
        for part in self.parts:
            cells = {key: (self.samples[key].cell, launches) for key, launches in self.rounds(part).items()}
            modes |= {(part.key, key): known for key, known in group_modes(cells).items()}
        return modes


@dataclass(eq=False)
class Run:
    """One profile, or one device of it."""

    label: str  # of its file
    profile: Profile  # whole, as it was read
    counted: CountedCycles  # of the profile
    by: str  # name of the metric that its cells are compared by
    id: str = field(init=False)
    given_label: str = field(init=False)  # the user's own; empty: none
    identity: bytes = field(init=False)  # alike in runs of the same machine and software
    hardware: str = field(init=False)  # hash of what no update of software changes
    host: str = field(init=False)  # hash of its machine's name; empty: of a container, whose name is drawn anew
    compared: list[str] = field(init=False)  # axes that its groups compare over
    without_all_reduce: set[str] = field(init=False)  # variants whose devices average nothing
    rule: str = field(init=False)  # by which its cycles count

    def __post_init__(self) -> None:
        profile, machine = self.profile, self.profile.identity
        self.id, self.given_label, self.compared = profile.id, printable_line(profile.label), profile.suite.compare
        self.without_all_reduce = {variant.name for variant in profile.suite.variants if not variant.all_reduces}
        self.rule = self.counted.rule
        self.identity = canonical_json(machine.setup())
        self.hardware, self.host = machine.hardware_sha256, machine.host

    @property
    def facts(self) -> Facts:
        """Its facts that are compared."""
        return self._facts[0]

    @property
    def incompatible(self) -> dict[str, str]:
        """Its facts that keep all of its cells apart from those of another run, by kind."""
        return self._facts[1]

    @cached_property
    def _facts(self) -> tuple[Facts, dict[str, str]]:
        return facts_of(self.profile)

    @cached_property
    def headline(self) -> Headline:
        """What ran, where and when."""
        return headline_of(self.label, self.counted.profile)

    @cached_property
    def times(self) -> RunTimes:
        """When it was."""
        return RunTimes.of(self.profile)

    @cached_property
    def notes(self) -> list[Note]:
        """What must be said of it in whichever comparison."""
        return [*run_notes(self.label, self.profile), *left_out_notes(self.label, self.counted)]

    @cached_property
    def processes(self) -> Processes:
        """Which cells the processes of its launches held."""
        return processes_shared(self.counted.profile)

    @cached_property
    def ceilings(self) -> list[Ceiling]:
        """What its operations reached."""
        return ceilings_of(self.counted.profile)

    @cached_property
    def groups(self) -> list[CellGroup]:
        """Its groups that have cells."""
        return _cell_groups(self)

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """Its cells by key, each once."""
        return {key: sample for group in self.groups for key, sample in group.samples.items()}

    def drop_launches(self) -> None:
        """Let go of everything but what was computed: a thousand runs fit into memory."""
        for name in ("facts", "headline", "times", "notes"):
            getattr(self, name)
        for sample in self.samples.values():
            for name in ("facts", "failure", "others_pct"):
                getattr(sample, name)
            for name in ("figures", "good", "measured"):
                sample.__dict__.pop(name, None)
            sample.result, sample.together = msgspec.structs.replace(sample.result, launches=[]), None
            sample.computed = {what: value for what, value in sample.computed.items() if not isinstance(what, tuple)}
        for name in ("profile", "counted", "processes", "ceilings", "groups"):
            self.__dict__.pop(name, None)


def read_run(label: str, profile: Profile, by: str = "step_ns", *, all_cycles: bool = False) -> Run:
    """Return a profile as samples.

    Args:
        label: of the profile.
        profile: whole.
        by: name of the metric that its cells are compared by.
        all_cycles: cycles that others disturbed count, too.
    """
    return Run(label, profile, count_cycles(profile, all_cycles=all_cycles), by)


def whole_key(group_key: str) -> str:
    """Return the key of the group that a part, or a whole group, is of."""
    return group_key.partition(PART)[0]


def _cell_groups(run: Run) -> list[CellGroup]:
    """Return the groups of a profile that have cells."""
    counted, profile = run.counted, run.counted.profile
    parts: dict[str, list[Group]] = {}
    for part in profile.groups:
        parts.setdefault(whole_key(part.key), []).append(part)
    groups = []
    for key, alike in parts.items():
        members = {cell for part in alike for cell in part.cells}
        results = [result for result in profile.cells if result.key in members]
        names = label_members({result.key: result.cell for result in results}, run.compared)
        group = CellGroup(key, alike, counted)
        group.samples = {
            result.key: Sample(run, result, result.key, key, names[result.key], group) for result in results
        }
        groups += [group] if results else []
    return groups


def group_samples(group: Group, results: Iterable[CellResult]) -> dict[str, Sample]:
    """Return the cells of one group, of a run that is not over, as samples by their keys."""
    together = CellGroup(group.key, [group], CountedCycles(None, {}, ""))  # type: ignore[arg-type]
    together.samples = {
        result.key: Sample(None, result, result.key, group.key, "", together)  # type: ignore[arg-type]
        for result in results
    }
    return together.samples


def launch_sample(result: CellResult, launch: Launch) -> Sample:
    """Return one launch of a cell as a sample by itself; percentiles are of all launches together."""
    alone = msgspec.structs.replace(result, launches=[launch], p50_ns=None, p95_ns=None, p99_ns=None)
    return group_samples(Group(key=launch.group, cells=[result.key], baseline=""), [alone])[result.key]


def processes_shared(profile: Profile) -> Processes:
    """Return which cells the processes of a profile's launches held."""
    held: dict[tuple[int, str], dict[str, int | None]] = defaultdict(dict)
    for result in profile.cells:
        for launch in result.launches:
            cells = held[launch.round, launch.process]
            if cells.get(result.key) is None:
                begins_ns = (phase.begin_ns for phase in launch.phases if phase.name == "first_step")
                cells[result.key] = next(begins_ns, None)
    return held


def launch_marks(cell: Cell, launch: Launch) -> list[Reason]:
    """Return what one launch was marked with when it ran, and what its counters say."""
    if not launch.gave_number:
        return []
    marks = {mark.code: mark for mark in launch.notes}
    lost, recompiles, certificate = cpu_loss(cell, [launch]), launch.recompiles, launch.certificate
    if lost is not None and lost.is_throttled:
        marks["throttled"] = reason("throttled", share_pct=lost.throttled_pct or 0.0)
    elif lost is not None and lost.is_contended:
        marks["contended"] = reason("contended", share_pct=lost.contention_pct)
    step_ns = min((median_ns for median_ns in launch.blocks.median_ns if median_ns is not None), default=math.inf)
    if certificate is not None and step_ns < certificate.shortest_step_ns:
        code = "step_too_short_for_clock"
        marks[code] = reason(code, step_ns=step_ns, shortest_ns=certificate.shortest_step_ns)
    if recompiles is not None and recompiles.count:
        marks.setdefault("recompiled", reason("recompiled", count=recompiles.count))
    if recompiles is not None and recompiles.graph_breaks:
        marks.setdefault("graph_breaks", reason("graph_breaks", count=recompiles.graph_breaks))
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
