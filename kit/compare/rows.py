"""What a comparison holds: numbers of each cell, the differences between them, and what has to be said beside them.

Codes and numbers only; `kit.report` puts them into words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from kit.profile.cell import Cell
from kit.profile.facts import Grade
from kit.profile.reason import Reason, Value
from kit.profile.sensor import SensorSummary, Tier
from kit.stats.break_even import BreakEven
from kit.stats.rounds import By
from kit.stats.verdict import RULE, Versus

if TYPE_CHECKING:
    from kit.audit.finding import Finding
    from kit.compare.ceilings import Reach

ScoreVerdict = Literal["agrees", "differs", "unresolved"]


class FitNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What the fits of one cell gave: means over repeats."""

    epochs: int
    updates: int
    total_ns: float  # of all steps but the first, which is in `compile_ns`
    is_computed: bool = False  # all updates × the mean step of the part that was measured
    pipeline_ratio: float | None  # over what resident steps took beside it: what its input pipeline costs
    test_ns: float | None  # one pass over the test split
    metric: Literal["accuracy", "mean_squared_error"]
    score: float | None
    score_sd: float | None  # over repeats
    repeats: int


class ScoreDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The mean difference of a cell's score from its baseline's over repeats that began alike, with its interval."""

    verdict: ScoreVerdict  # the interval lies within ± margin; leaves 0 out; neither
    difference: float
    low: float
    high: float
    margin: float
    repeats: int


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """Of a sweep: the point of best throughput, and the smallest within 5 % of it; names of rows.

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


class EnergyNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell's device drew, idle included unless it says net: over the long blocks, or a fit's own."""

    sensors: list[str]  # that together are the device
    tier: Tier | None  # null: not recorded
    method: str | None
    launches: int  # that have joules
    block_ns: float
    error_share: float | None  # at most, the sensor's own error left out
    align_error_ns: int | None  # of an external meter, in that: how far its readings may be off the run's clock
    per_sample_j: float
    with_package_per_sample_j: float | None  # an accelerator's with those of the packages that drive it
    per_step_j: float
    power_w: float
    power_max_w: float | None  # between two readings
    delay_product_js: float  # joules of a step times its seconds
    idle_w: float | None
    net_per_sample_j: float | None  # less idle
    net_error_j: float | None  # of that: at most
    compile_j: float | None  # from the build to the first step done
    epoch_j: float | None  # of a fit
    fit_j: float | None  # all of its epochs


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """What the launches of one cell gave, over rounds (of several runs: the geometric mean of the runs' numbers)."""

    launches: int  # that gave a number
    failed: int
    step_ns: float | None = None  # whole time over steps: the baseline's own times the ratio that is judged
    raw_step_ns: float | None = None  # the same, the cell's own: geometric mean over rounds, the machine's drift in it
    latency_ns: float | None = None  # median of the steps that p95 and p99 are of, too
    sample_ns: float | None = None  # step over batch
    step_interval_ns: tuple[float, float] | None = None  # 95 %, over rounds of this run: holds the machine's drift
    p95_ns: float | None = None  # of steps that were waited for one by one
    p99_ns: float | None = None
    samples_per_s: float | None = None  # batch over step
    start_ns: float | None = None  # from the process's start to the first step done
    compile_ns: float | None = None  # of that: trace, compile and first step
    warm_start: bool = False  # built in a process that had run another program
    peak_memory_b: float | None = None
    process_shared: bool = False  # of a process that held other cells, too
    energy_per_sample_j: float | None = None
    energy: EnergyNumbers | None = None  # null: of several runs, too
    sustained_ns: float | None = None  # step of the long block that joules are of
    sustained_differs: bool = False  # on an accelerator: from the step of the bursts that samples/s are of
    cpu_per_sample_ns: float | None = None  # of all CPUs together
    cpus: float | None = None  # CPUs used
    injected_ratio: float | None = None  # of steps with the injected delay over those without; null: none injected
    drift_pct: float | None = None  # spread over launches of a lone step: the machine's drift
    level_se: float | None = None  # standard error over rounds of the logarithm of what is judged; null: of one round
    rounds: int = 0
    is_disturbed: bool = False  # no cycle of its group counts: these numbers are of its least disturbed round
    cycles: int = 0  # that these numbers come from; of a fit, stretches
    # CPU time that others took meanwhile; null: it was not counted, or every cycle is clean.
    contention_pct: float | None = None
    fit: FitNumbers | None = None
    empty_wait_ns: float | None = None  # on an accelerator: of a wait with nothing to wait for
    reach: Reach | None = None  # against what was measured in its run; null: of several runs
    phases_ns: dict[str, float] = {}
    counters: dict[str, float] = {}  # per step
    sensors: dict[str, SensorSummary] = {}


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """One fact that is not the same in all profiles."""

    kind: str  # a key of `kit.profile.facts.FACTS`
    grade: Grade
    name: str  # dotted, such as ``software.package.torch``; the kind itself where there is only one
    values: list[tuple[Value | None, list[str]]]  # value (null: unknown) and labels of the profiles that have it


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a million samples cost, in the currency of the prices."""

    per_million: float
    low: float | None  # 95 % of the time, and the error of the joules; null: the time has no interval
    high: float | None
    of_time: float
    of_energy: float


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A share of 1, with the interval of its ratio of times; null: too few rounds."""

    value: float
    low: float | None
    high: float | None


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """Of a cell of more devices than its baseline."""

    resources_ratio: float  # its devices over the baseline's; on a CPU its threads, which ranks divide
    efficiency: Share | None  # its throughput over the baseline's, per resource; null: its devices average nothing
    all_reduce: Share | None  # of its step; null: the same step without averaging was not measured


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of one profile, or of several runs of one side."""

    name: str  # what tells it apart in its group: "jax", "tcmalloc", of several runs "jax · after"
    member: str = ""  # of several runs: what tells its cell apart in its group, "jax"
    side: str = ""  # of several runs: whose they are, "after"; a platform, "gpu · H100"
    cell: Cell
    profiles: list[str]  # labels
    numbers: Numbers
    is_baseline: bool = False
    versus: Versus | None = None  # null: the baseline, failed, or nothing to compare with
    energy_versus: Versus | None = None  # joules a sample against the baseline's; null: nothing to compare
    score_difference: ScoreDifference | None = None  # of fits
    scaling: Scaling | None = None  # null: no more devices than its baseline
    cost: Cost | None = None  # null: without a price
    break_even: BreakEven | None = None  # of another compile mode than its baseline's
    blocked: list[Mismatch] = []  # why the gate keeps it from its baseline; with `versus`, compared by force
    marks: list[Reason] = []  # with `launches`, how many of them have it
    failure: Reason | None = None  # of the first launch that failed


class Leaders(msgspec.Struct, frozen=True, kw_only=True):
    """Who is the fastest of a group: said only where verdicts support it."""

    tied: list[str]  # the fastest, and those without a significant difference from it
    slower_than_fastest: list[
        tuple[str, float | None]
    ]  # with a verdict: name, times as long its step takes; null: two modes
    modes: list[tuple[str, float, float]] = []  # without a verdict, slower in both modes: name, by how much


class PlatformBest(msgspec.Struct, frozen=True, kw_only=True):
    """The member with the least time on one platform."""

    platform: str
    member: str
    fastest: list[str]  # shown to be, and those without a significant difference from it; empty: not shown
    versus: Versus | None = None  # against the baseline platform's best; null: of that itself, or none


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Why a side has no row of a member."""

    member: str
    side: str
    reason: Reason


class GroupRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that answer the same question; those of one profile fastest first, points of a sweep in its order."""

    key: str
    title: list[str]  # coordinates that its cells share: "mlp", "train"
    baseline: str | None  # name of its row
    rows: list[Row]
    leaders: Leaders | None = None
    recommendation: Recommendation | None = None
    findings: list[Finding] = []  # what explains its numbers, gravest first
    best: list[PlatformBest] = []  # of platforms: what each is at its best, the baseline first
    missing: list[Missing] = []  # of platforms


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
    axes: dict[str, list[str]]  # axis of a cell -> its values
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


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a table, or another format, is made of."""

    # cells of one run; sides that are runs of one machine; sides that are platforms, a machine and a device of it each
    kind: Literal["cells", "runs", "platforms"]
    groups: list[GroupRows]
    headlines: list[Headline]
    mismatches: list[Mismatch] = []
    notes: list[Note] = []
    by: By = "step"  # what was compared
    rule: str = RULE  # by which cycles counted and verdicts were reached
