"""The profile: one JSON file. Integer nanoseconds in `_ns`, joules in `_j`, watts in `_w`, bytes in `_b`.

    Profile ─ groups, cells ─ CellResult ─ launches ─ Launch ─ Blocks

It holds what was measured. What is concluded from it (verdicts, intervals, findings) is computed when it is read. A
launch is one fresh process that measured one cell once, in blocks that took turns with the others of its round:

    import ─ data ─ build ─ trace ─ compile ─ first_step ─ warmup ─ steady: block … block … block ─ energy ─ evaluate

Schema version: MAJOR.MINOR; a reader accepts a newer minor version and refuses another major version.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress, repeat
from operator import add, lt
from typing import Literal

import msgspec

from kit.profile.cell import Cell, Variant
from kit.profile.facts import Identity, State
from kit.profile.fields import (
    Count,
    CpuNumber,
    Difference,
    DivisorNs,
    FewSteps,
    FileName,
    Fraction,
    Int64,
    Loss,
    MeanNs,
    Positive,
    Precision,
    Quantity,
    Reason,
    Round,
    Seconds,
    SpanNs,
    StampNs,
    ThreadCount,
    TimeNs,
)  # fmt: skip
from kit.profile.instruments import (
    Calibration,
    Certificate,
    Energy,
    SensorReadings,
    SensorReport,
    SensorResponse,
    SensorSummary,
)  # fmt: skip
from kit.profile.program_source import ProgramSource

SCHEMA_NAME = "steadykit.profile"
SCHEMA_MAJOR = 3
SCHEMA_MINOR = 5
SCHEMA = f"{SCHEMA_NAME}/{SCHEMA_MAJOR}.{SCHEMA_MINOR}"

SYNTHETIC = "synthetic"  # data of the shapes of a real set, made up
DataChoice = str  # "auto", SYNTHETIC, or the name of a data set
# Fields of `Blocks` with an entry a turn; all others have one a block.
OF_TURNS = ("turn_begin_ns", "turn_span_ns")
INJECTED_NS = "injected_ns"  # a counter of `Blocks`: the delay that was injected, by the worker's clock
FAILED_RUNS = "failed_runs"  # another: runs of a command with another exit code than 0, which was accepted
# "start": from the process's creation to the runner's first command.
PhaseName = Literal[
    "start", "import", "data", "build", "trace", "compile", "first_step", "warmup", "steady", "energy", "evaluate",
    "parity", "finish",
]  # fmt: skip
# With which weights and optimizer state a block begins: "restored": those of the launch's begin; "reset": the user
# program's own function was called; "left": as the steps before have left them, which inference and a fit keep.
BlockBegin = Literal["restored", "reset", "left"]
# "blocks": workers took turns within a cycle; "sequential": each ran all its blocks before the next began.
Turns = Literal["blocks", "sequential"]
FigureName = Literal[
    "train_time_s",  # of a fit: all epochs
    "test_time_s",  # one pass over the test split
    "epoch_time_s",  # of a fit, its first epoch left out
    "step_ns",  # of training
    "train_sample_ns",
    "infer_sample_ns",
    "first_token_ns",  # from a whole prompt, which is a step of inference on tokens
    "input_tokens_per_s",
    "output_tokens_per_s",  # of decoding, as the next
    "output_token_j",
    "accuracy",
    "precision",  # macro, as the two that follow
    "recall",
    "f1",
    "train_gain_pct",  # the CPU's time over this device's, as a percentage: 100 is as fast
    "test_gain_pct",
    "train_sample_gain_pct",
    "infer_sample_gain_pct",
]

# Between a group's key and the number of its part, where a group of more than four cells was split.
PART = "#"


class StepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How long one launch measures. Defaults and their reasons are in `kit.suites.suite`."""

    cycles: Round  # blocks of each cell in a round
    block_s: Seconds
    lead_in_s: Seconds  # at the begin of each block, not timed
    warmup_s: Seconds
    warmup_steps: Count  # at least
    epochs: Positive = 1  # of a fit
    fit_rounds: Round | None = None  # in which fits are repeated; null: all
    fit_steps: Positive | None = None  # updates of a fit at most; null: whole epochs
    ceiling_rounds: Round | None = None  # of operations that are measured with networks; null: all, and whole ones
    energy_s: Seconds  # one long block at the end of a round, where an energy sensor answers; 0: not requested
    energy_rounds: Literal["all", "last"] = "all"  # that have it; "last": of the requested rounds
    turn_s: Seconds = 0.0  # a block is taken in turns of about so long, lead-in included; 0: in one
    warmup_least_s: Seconds | None = None  # a warm-up ends from here on when its steps say so; null: it has a length


class Phase(msgspec.Struct, frozen=True, kw_only=True, gc=False):  # it holds nothing that could refer to it
    """A named stretch of a launch. `begin_ns` is on CLOCK_MONOTONIC_RAW of the worker's host."""

    name: PhaseName
    begin_ns: StampNs
    duration_ns: SpanNs


class Blocks(msgspec.Struct, kw_only=True):
    """A launch's blocks, entry i of every list of block i, in the order in which they ran.

    On a CPU each step is waited for, as its users' programs do it. An accelerator's are waited for once in `per_wait`
    steps; before them some are waited for one by one, which shows their latency.

        CPU          edge ├ lead-in ┤├ step ┤├ step ┤├ step ┤ … edge
                                     └───── duration_ns ─────┘
        accelerator  edge ├ lead-in ┤├ step, wait ┤├ step, wait ┤ … ├ steps, wait ┤├ steps, wait ┤ … edge
                                     └── waited_steps ─────────┘   └──────── duration_ns ───────┘
                          └───────────────────────────── span_ns ──────────────────────────────────┘

    The blocks of a cycle may be taken in several turns that alternate. Each turn has its edges and its lead-in, and a
    block is all its turns together: their spans, steps and counters are summed.

        one cell    edge ├ lead-in ┤├ step ┤├ step ┤ edge                      edge ├ lead-in ┤├ step ┤├ step ┤ edge …
        another                                           edge ├ lead-in ┤├ …

    A block's step time is duration_ns / steps. Counters are differences between the two edges; per step means per step
    of all that ran between them. A block that took several times as long as planned was cut: it has fewer steps than
    planned, and their whole time.
    """

    cycle: list[Count] = []
    begin_ns: list[StampNs] = []  # of the first edge
    span_ns: list[TimeNs] = []
    lead_in: list[FewSteps] = []  # steps
    steps: list[Positive] = []  # timed together
    duration_ns: list[TimeNs] = []  # of these
    median_ns: list[TimeNs | None] = []  # of steps that were waited for one by one; null: none was
    # Medians of the first and of the last third of these steps; both empty: not recorded.
    early_ns: list[TimeNs | None] = []
    late_ns: list[TimeNs | None] = []
    waited_steps: list[FewSteps] = []  # on an accelerator: waited for one by one, before `steps`
    per_wait: list[Positive] = []  # on an accelerator: steps a wait
    planned_steps: list[Positive] = []  # more than `steps` in a block that was cut; empty: not recorded
    figure: list[Quantity] = []  # of a command that has one: the mean over its runs, in its unit
    turn_count: list[Positive] = []  # turns in which it was taken; empty: each block was one
    # Of all turns of all blocks, one after the other; empty: as the blocks.
    turn_begin_ns: list[StampNs] = []
    turn_span_ns: list[TimeNs] = []
    counters: dict[str, list[Difference | None]] = {}  # sensor name -> difference; null: a read failed

    def __post_init__(self) -> None:
        count = len(self.cycle)
        if not (
            count == len(self.begin_ns) == len(self.span_ns) == len(self.lead_in)
            == len(self.steps) == len(self.duration_ns) == len(self.median_ns)
            and {len(self.early_ns), len(self.late_ns), len(self.waited_steps)} <= {0, count}
            and {len(self.per_wait), len(self.planned_steps), len(self.turn_count), len(self.figure)} <= {0, count}
            and sum(self.turn_count) == len(self.turn_begin_ns) == len(self.turn_span_ns)
            and {count, *map(len, self.counters.values())} == {count}
        ):  # fmt: skip
            raise ValueError("the lists of blocks differ in length")

    def extend(self, later: Blocks) -> None:
        """Append the blocks of `later`, which the same program ran."""
        for name in self.__struct_fields__:
            if name != "counters":
                getattr(self, name).extend(getattr(later, name))
        for name, differences in later.counters.items():
            self.counters.setdefault(name, []).extend(differences)

    def chosen(self, keep: Sequence[bool]) -> Blocks:
        """Return the blocks for which `keep` is true."""
        of_turns = [*chain.from_iterable(map(repeat, keep, self.turn_count))]
        lists = {
            name: [*compress(getattr(self, name), of_turns if name in OF_TURNS else keep)]
            for name in self.__struct_fields__
            if name != "counters"
        }
        return Blocks(**lists, counters={name: [*compress(values, keep)] for name, values in self.counters.items()})

    def windows(self) -> list[tuple[int, int]]:
        """Return begin and end of each turn of every block, in the order in which they ran."""
        begins_ns, spans_ns = self.turn_begin_ns or self.begin_ns, self.turn_span_ns or self.span_ns
        return [(begin_ns, begin_ns + span_ns) for begin_ns, span_ns in zip(begins_ns, spans_ns, strict=True)]

    def block_of_windows(self) -> list[int]:
        """Return the index of the block that each of the windows is a part of."""
        counts = self.turn_count or [1] * len(self.cycle)
        return [*chain.from_iterable(map(repeat, range(len(counts)), counts))]

    def cut(self) -> int:
        """Return how many blocks were cut."""
        return sum(map(lt, self.steps, self.planned_steps))

    def raw_steps(self) -> list[int]:
        """Return how many steps of each block have a time of their own in the sidecar, lead-in steps included."""
        return [*map(add, self.lead_in, self.waited_steps or self.steps)]

    def all_steps(self) -> list[int]:
        """Return how many steps ran between the edges of each block."""
        return [*map(add, self.raw_steps(), self.steps)] if self.waited_steps else self.raw_steps()


class DeviceEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The same steps by the host's clock and by the device's own event timers."""

    steps: Positive
    host_ns: DivisorNs  # a step of a group that ends with one wait
    device_ns: MeanNs  # a step between events recorded before and after the group


class DataUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Which data the launch ran on, and the proof."""

    name: str
    sha256: str  # over the bytes of the arrays that the steps were fed from, before any device saw them
    pool_batches: Count  # distinct batches that the steps cycle through


class ThreadsOnCpus(msgspec.Struct, frozen=True, kw_only=True):
    """So many of the threads that computed, each of which the kernel lets run on any of these CPUs."""

    threads: ThreadCount
    cpus: list[CpuNumber]


class Threads(msgspec.Struct, frozen=True, kw_only=True):
    """Compute threads: requested, reported by the framework, seen to compute; CPUs the worker was allowed on."""

    requested: ThreadCount  # by the kit; of a variant that sets variables for threads, what it would have been
    reported: ThreadCount | None
    reason: Reason | None
    cpus: list[CpuNumber]
    used: Count | None = None  # threads that had CPU time in the blocks
    used_reason: Reason | None = None
    placement: list[ThreadsOnCpus] | None = None  # of those used, of the first host; null: not recorded


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One of the processes that measured a cell together, each with its part of every batch."""

    host_sha256: str  # of its host's name, as in the profile's identity
    cpus: list[CpuNumber]  # that it was allowed on
    threads: ThreadCount | None  # compute threads, as its framework reports them


class ImportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of code that a launch imported."""

    path: str  # relative to its repository, else to the folder that it was imported from
    sha256: str  # of its content


class ImportedCode(msgspec.Struct, frozen=True, kw_only=True):
    """Which code a launch had imported at its end, Steadykit left out."""

    files: list[ImportedFile]  # from outside the environment, or of packages that pip built from a folder or repository
    left_out: Count = 0  # of such files: beyond the limits of their number and size, or not readable
    left_out_sha256: str = ""  # over where these lie, their sizes and when they were changed
    environment_sha256: str  # of the interpreter, names and versions of the other packages, and native libraries


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """Losses of the first steps from the seed's weights and batches, dropout off. Same cell, same arithmetic."""

    losses: list[float]
    weights_sha256: str  # of the initial weights, framework-neutral layout
    batches_sha256: str  # of the batches used


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Whole epochs over the training split, and the score on the test split after them; or the first part of them.

    The launch's blocks are stretches of the fit, of every step but the very first, which is the phase `first_step`; a
    block ends with its epoch.

        reference 0 │ block 0 │ reference 1 │ block 1 │ … │ reference n

    A reference is a short run of a second program of the cell, its batches resident on the device: the pace at which
    steps alone would have gone, on a machine whose speed changes. The launch's warm-up is the reference's, too.
    """

    epochs: Positive
    updates: Positive  # optimizer updates, the first step included
    epoch_updates: Positive | None = None  # of a whole epoch; null: not recorded, all epochs were whole
    reference_ns: list[DivisorNs]  # mean step of each reference
    test_ns: TimeNs | None  # one pass over the test split: from host memory to outputs back on the host
    confusion: list[list[Count]] | None = None  # [true class][predicted class], over the test split
    mean_squared_error: Quantity | None = None  # of a network that reconstructs its input
    reason: Reason | None = None  # why there is no score

    @property
    def all_updates(self) -> int:
        """Return the updates of whole epochs."""
        return self.updates if self.epoch_updates is None else self.epochs * self.epoch_updates

    @property
    def is_part(self) -> bool:
        """Whether it ended before its epochs did."""
        return self.updates < self.all_updates


class Compilations(msgspec.Struct, frozen=True, kw_only=True):
    """Compilations, counted by the framework itself; null with the reason."""

    count: Count | None  # after the first step; of a user program in its blocks
    before: Count | None = None  # with the first step; of a user program also of its warm-up; null: not known
    tried: Count | None = None  # of a user program: functions that TorchDynamo was to compile, and did or not
    reason: Reason | None = None  # why `count` is null, or why the framework's compiler is switched off
    graph_breaks: Count | None = None


class WhatRan(msgspec.Struct, frozen=True, kw_only=True):
    """What ran in one more step after the blocks, as the framework's own profiler shows it."""

    # What ran -> how often: "operation" (by itself), "graph" (TensorFlow's), "dynamo" (what PyTorch captured),
    # "inductor" and "xla" (what these compiled).
    runs: dict[str, Count] = {}
    flops: Quantity | None = None  # of these, by the framework's own count; null: it does not count all of them
    flops_asked: Quantity | None = None  # of the same step without a compiler, which leaves out what nobody needs
    products: Count | None = None  # matrix products and convolutions that TensorFlow's graphs ran
    products_asked: Count | None = None  # that these graphs had when they were traced
    arguments_b: Count | None = None  # that XLA's programs take; 0: they knew everything when they were compiled
    launches: Count | None = None  # calls that gave a GPU work: kernels, copies, graphs; null: not seen
    graphs: Count | None = None  # of these, replays of captured graphs
    reason: Reason | None = None  # why it is not known what ran


class ComputedNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps of a launch computed with: whether each block began alike, and what became of the numbers.

    A loss is the one number that a step returns: of the very first step, and of the last step of a block.
    """

    blocks_begin: BlockBegin
    first_step_loss: Loss | None = None
    first_block_loss: Loss | None = None
    last_block_loss: Loss | None = None  # each null where it was not finite, too
    loss_reason: Reason | None = None  # why no block has a loss
    state_numbers: Count = 0  # floating-point numbers of weights and optimizer state that were looked at, at the end
    denormal_share: Fraction | None = None  # of these
    denormal_reason: Reason | None = None  # why null
    was_not_finite: bool = False  # a loss was not, or one of these numbers is NaN; infinities belong to masks


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a launch did not finish."""

    phase: PhaseName
    reason: Reason
    stderr_tail: str = ""


class LaunchPart(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a worker knows of a launch after one of its verbs: the fields of `Launch` that it fills."""

    python: str | None = None
    untested: Reason | None = None  # that its framework is newer than what Steadykit's tests have run with
    backend_version: str | None = None  # of a user program, those of the frameworks whose results its step returned
    frameworks: dict[str, str] = {}  # version of each that its process had loaded, with packages that belong to them
    phases: list[Phase] = []
    warmup_steps: Count = 0
    blocks: Blocks = msgspec.field(default_factory=Blocks)
    tokens: Positive | None = None  # that a step handles, as the user program says; null: it does not say
    recompiles: Compilations | None = None
    ran: WhatRan | None = None  # where it proved itself, with parity; null: not recorded
    threads: Threads | None = None
    # Variables that the framework reads, as the worker had them; not what the kit sets for all.
    environment: dict[str, str] | None = None  # null: not recorded
    # Settings by which its process kept compilations for later ones, although the run did not ask for it; null: none.
    compile_cache: str | None = None
    imported: ImportedCode | None = None  # null: not recorded
    data: DataUsed | None = None  # null: a user program has data of its own
    ranks: list[Rank] = []  # none: one process measured it alone
    calibration_start: Calibration | None = None
    calibration_end: Calibration | None = None
    certificate: Certificate | None = None
    peak_memory_b: Count | None = None  # high-water resident set of the process
    peak_device_memory_b: Count | None = None  # of the framework's allocator on its accelerator
    device_memory_fraction: Fraction | None = None  # of the accelerator's memory that the framework got; null: all
    device_ids: list[str] = []  # PCI bus ids of the accelerators that the cell used
    settings: dict[str, str] = {}  # of the framework that decide its arithmetic and kernels on an accelerator
    empty_wait_ns: SpanNs | None = None  # on an accelerator: of a wait with nothing to wait for, by the framework's own
    device_events: DeviceEvents | None = None  # where the framework has them
    output_unchecked: Reason | None = None  # why infinities and NaN were not looked for in what a user program returns
    fit: Fit | None = None
    numbers: ComputedNumbers | None = None  # null: not recorded, or an operation, which has none
    parity: Parity | None = None
    kernels: list[str] = []  # with parity: the framework's names of the kernels that its layers run on
    kernels_unnamed: Reason | None = None  # why it does not name them
    failure: Failure | None = None

    def add(self, part: LaunchPart) -> None:
        """Take what `part` holds: append its phases and blocks, replace everything else."""
        self.phases = [*self.phases, *part.phases]
        self.blocks.extend(part.blocks)
        nothing = LaunchPart()
        for name in LaunchPart.__struct_fields__:
            value = getattr(part, name)
            if name not in ("phases", "blocks") and value != getattr(nothing, name):
                setattr(self, name, value)


class Launch(LaunchPart, kw_only=True, omit_defaults=False):
    """One worker's measurement of one cell. With `failure` set, fields hold what had been measured until then.

    Launches of one round and one process shared that process: their import, data and memory are one.
    """

    cell_key: str
    group: str
    round: Round
    process: str
    started: str  # UTC, ISO 8601
    reused_compilation: bool = False  # its compilation found what the first round's had left, as it was asked to
    who_reaches: Reason | None = None  # the sockets of its ranks; null: it has none, or a profile before 3.2
    turns: Turns = "blocks"
    turns_reason: Reason | None = None  # why not in blocks
    p95_ns: TimeNs | None = None  # over all timed steps that were waited for one by one; null: of fewer than 20
    p99_ns: TimeNs | None = None  # null: of fewer than 100
    # Readings come from the blocks on a CPU, and on an accelerator from the long block for energy, where there is one.
    sensors: dict[str, SensorSummary] = {}
    sensor_reasons: dict[str, Reason] = {}  # why a gauge that was sampled says nothing of this launch
    # On an accelerator: power and clock of its boards during the long block. Empty: none ran, or a profile before 3.5.
    long_block_readings: list[SensorReadings] = []
    energy: list[Energy] = []
    notes: list[Reason] = []  # what disturbed or bounded it

    @property
    def gave_number(self) -> bool:
        """Whether it finished and has blocks."""
        return self.failure is None and bool(self.blocks.steps)


class Kit(msgspec.Struct, frozen=True, kw_only=True):
    """Which kit measured."""

    version: str
    revision: str | None  # of its source, where known


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A backend that the suite names and this environment lacks."""

    backend: str
    reason: Reason


class SuiteUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Which suite ran, and how."""

    name: str
    sha256: str
    compare: list[str]  # axes that its groups compare over
    process_axes: list[str]  # axes over which cells share a process
    rounds: Round  # requested; with `precision_pct` the first look
    precision_pct: Precision | None = None  # requested: rounds go on until each difference's interval is this narrow
    plan: StepPlan
    variants: list[Variant] = []
    programs: dict[str, ProgramSource] = {}  # user programs, by the workload that their cells name
    batch_is_default: bool = False  # nobody gave a batch to these user programs, which may not use the default
    data: dict[str, str]  # data set of the workloads -> what was used: itself, or "synthetic"
    data_reason: Reason | None = None  # why synthetic, when `auto` fell back
    seed: Int64
    skipped: list[Skipped] = []
    hosts: ThreadCount = 1  # that cells of several devices were divided over
    reuse_compiled: bool = False  # later rounds start from what the first round compiled


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that answer the same question and were measured together; the first is the baseline by default."""

    key: str
    cells: list[str]  # cell keys
    baseline: str  # cell key


class StateSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The machine before the first round and after the last."""

    before: State
    after: State | None


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that a document gives of a cell. Nobody here has measured it."""

    figure: FigureName
    value: Quantity


class CellResult(msgspec.Struct, kw_only=True):
    """A cell with everything that was measured of it."""

    key: str
    cell: Cell
    launches: list[Launch]
    # Percentiles of the steps that were waited for one by one, in the cycles that count by the rule of the kit that
    # measured. Null where that kit did not record the median; then the others are over all cycles.
    p50_ns: TimeNs | None = None
    p95_ns: TimeNs | None = None  # null: of fewer than 20
    p99_ns: TimeNs | None = None  # null: of fewer than 100
    all_cycles_ns: list[TimeNs | None] | None = None  # the same three over all cycles; null: all count
    published: list[Published] = []  # of a profile that was not measured


class Sidecar(msgspec.Struct, frozen=True, kw_only=True):
    """Every raw step time, in a file next to the profile."""

    file: FileName  # a bare file name in the profile's folder
    sha256: str
    steps: Count


class Profile(msgspec.Struct, kw_only=True):
    """One run on one machine."""

    schema: str
    id: str
    created: str  # UTC, ISO 8601
    label: str = ""  # the user's name for the run; runs of one machine with one label are one side
    kit: Kit
    identity: Identity
    state: StateSpan
    clock: Certificate | None
    sensors: list[SensorReport]
    responses: list[SensorResponse] = []  # of a device's sensors to loads, where the self-test measured them
    suite: SuiteUsed
    groups: list[Group]
    cells: list[CellResult]
    sidecar: Sidecar | None = None
    measured: bool = True  # false: figures out of a document, `source`
    source: str | None = None
    interrupted: bool = False  # rounds are missing; the run can be resumed
    digest: str = ""  # SHA-256 over the canonical JSON of everything else
