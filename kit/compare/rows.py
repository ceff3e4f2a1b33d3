"""What a comparison holds: rows, the estimates between them, and what has to be said beside them.

Plain data: everything in it was computed when the comparison was made. Codes and numbers only; `kit.report` puts them
into words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from kit.profile.cell import Cell
from kit.profile.facts import Grade
from kit.profile.fields import Reason, Value
from kit.stats.break_even import BreakEven
from kit.stats.estimate import RULE, Estimate

if TYPE_CHECKING:
    from kit.audit.finding import Finding


# Kinds of mismatches that keep cells of one run apart: two were to differ in code and loaded the same, one does not
# compute what the other does, and threads of one have fewer CPUs than they could use.
SAME_CODE, OTHER_LOSSES, BOUND_THREADS = "same_code", "other_losses", "bound_threads"


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """One fact that is not the same in all profiles."""

    kind: str  # a key of `kit.profile.facts.FACTS`
    grade: Grade
    name: str  # dotted, such as ``software.package.torch``; the kind itself where there is only one
    values: list[tuple[Value | None, list[str]]]  # value (null: unknown) and labels of the profiles that have it


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be said beside the tables, once."""

    what: Reason
    because: Reason | None = None


class UsedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The device of one kind that cells of a run used."""

    kind: str
    model: str
    device_ids: list[str]  # of the boards, where the driver tells
    used: int  # boards at a time
    present: int  # boards of this kind that the machine has


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """Which run or runs a comparison reads."""

    label: str
    given_label: str  # the user's own, of `kit run --label`; empty: none
    suite: str
    axes: Mapping[str, Sequence[str]]  # axis of a cell -> its values
    data: list[str]
    rounds: int  # of several runs the fewest
    rounds_max: int
    cycles: int
    cpu: str
    cpus: int | None
    devices: list[UsedDevice]
    hypervisor: str | None
    power_sensor: bool
    created: str
    kit: str
    profiles: int = 1


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A fraction of 1, with the interval of its ratio of times; null: too few rounds."""

    value: float
    low: float | None
    high: float | None


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell scales that has more devices than its baseline."""

    resources_ratio: float  # its devices over the baseline's; on a CPU its threads, which ranks divide
    efficiency: Share | None  # its throughput over the baseline's, per resource; null: its devices average nothing
    all_reduce: Share | None  # of its step; null: the same step without averaging was not measured


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep's point of best throughput, and the smallest within 5 % of it; names of rows.

    `unresolved`: points that the best is neither shown to beat nor to equal.
    `smallest`: that is shown to be within; null where none is, and a smaller one than the best may be.
    `ratio`, `low`, `high`: time per sample of the smallest over the best's; null where they are one.
    """

    best: str
    samples_per_s: float | None
    unresolved: list[str]
    smallest: str | None
    ratio: float | None
    low: float | None
    high: float | None


class Leaders(msgspec.Struct, frozen=True, kw_only=True):
    """Who is the fastest of a group: said only where verdicts support it."""

    tied: list[str]  # the fastest, and those without a significant difference from it
    # With a verdict: name, times as long its step takes; null: two modes.
    slower_than_fastest: list[tuple[str, float | None]]
    modes: list[tuple[str, float, float]] = []  # without a verdict, slower in both modes: name, by how much


class PlatformBest(msgspec.Struct, frozen=True, kw_only=True):
    """The member with the least time on one platform."""

    platform: str
    member: str
    fastest: list[str]  # shown to be, and those without a significant difference from it; empty: not shown
    versus: Estimate | None = None  # against the baseline platform's best; null: of that itself, or none


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Why a side has no row of a member."""

    member: str
    side: str
    reason: Reason


@dataclass(eq=False, kw_only=True)
class Row:
    """One cell of one profile, or of several runs of one side; one place of a table that a user asked for."""

    name: str  # what tells it apart in its group: "jax", "tcmalloc", of several runs "jax · after"
    member: str  # what tells its cell apart in its group, "jax"
    side: str = ""  # of several runs: whose they are, "after"; a platform, "gpu · H100"
    cell: Cell  # the first run's
    cell_key: str  # of the cell, in the first run's profile
    key: str  # the same; on platforms, of what was asked
    is_operation: bool = False  # of its framework, and no network's: what networks are held against
    has_samples: bool = True  # a step handles as many samples as its batch says; False: nobody gave a program a batch
    profiles: list[str] = field(default_factory=list)  # the labels of the runs that it is of; none: of one table's run
    hosts: list[str] = field(default_factory=list)  # hashes of the machines that it was measured on, each once
    is_baseline: bool = False
    metric: str  # name of the metric that is judged
    judged: float | None = None  # the value that rows are sorted and runs compared by
    values: dict[str, Any] = field(default_factory=dict)  # by metric: a number, a text or null
    values_of_runs: list[dict[str, Any]] = field(default_factory=list)  # the same of each of its runs
    details: dict[str, Value] = field(default_factory=dict)  # of one run: phases, counters and sensors, as CSV has them
    failure: Reason | None = None  # why the first launch that failed did
    versus: Estimate | None = None  # null: the baseline, failed, or nothing to compare with
    energy_versus: Estimate | None = None  # joules a sample against the baseline's; null: nothing to compare
    score_difference: Estimate | None = None  # of fits
    scaling: Scaling | None = None  # null: no more devices than its baseline
    break_even: BreakEven | None = None  # of another compile mode than its baseline's
    blocked: list[Mismatch] = field(default_factory=list)  # why the gate keeps it apart; with `versus`: by force
    marks: list[Reason] = field(default_factory=list)  # with `launches`, how many of them have it

    def value(self, name: str) -> Any:  # noqa: ANN401 - a number, a text or null
        """Return a metric's value; null: it has none, or nobody asked for it."""
        return self.values.get(name)

    @property
    def kept_apart(self) -> str:
        """Return for which of these kinds it gets no verdict, the gravest first; empty: it may get one."""
        kinds = {mismatch.kind for mismatch in self.blocked if self.versus is None}
        return next((kind for kind in (SAME_CODE, OTHER_LOSSES, BOUND_THREADS) if kind in kinds), "")

    @property
    def has_number(self) -> bool:
        """Whether any launch gave a number."""
        return self.value("step_ns") is not None


@dataclass(eq=False, kw_only=True)
class GroupRows:
    """Rows that answer the same question; those of one profile fastest first, points of a sweep in its order."""

    key: str
    title: list[str]  # coordinates that its cells share: "mlp", "train"
    baseline: str | None  # name of its row
    rows: list[Row]
    leaders: Leaders | None = None
    recommendation: Recommendation | None = None
    findings: list[Finding] = field(default_factory=list)  # what explains its numbers, gravest first
    best: list[PlatformBest] = field(default_factory=list)  # of platforms: each at its best, the baseline first
    missing: list[Missing] = field(default_factory=list)  # of platforms

    @property
    def are_operations(self) -> bool:
        """Whether its rows are operations, and no networks."""
        return self.rows[0].is_operation


@dataclass(eq=False, kw_only=True)
class Comparison:
    """Everything that a table, or another format, is made of."""

    # cells of one run; sides that are runs of one machine; sides that stand side by side, as platforms do
    kind: Literal["cells", "runs", "platforms"]
    groups: list[GroupRows]
    headlines: list[Headline]
    mismatches: list[Mismatch] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    by: str = "step_ns"  # name of the metric that was compared
    rule: str = RULE  # by which cycles counted and verdicts were reached
    sides: list[str] = field(default_factory=list)  # that stand side by side; empty: those of the headlines

    @property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return [row for group in self.groups for row in group.rows]
