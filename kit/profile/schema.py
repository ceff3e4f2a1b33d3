"""The profile: one JSON file. Integer nanoseconds in `_ns`, joules in `_j`, watts in `_w`, bytes in `_b`.

It holds what was measured. What is concluded from it (verdicts, intervals, findings) is computed when it is read.
Schema version: MAJOR.MINOR; a reader accepts a newer minor version and refuses another major version.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from kit.files import read_limited
from kit.profile.cell import Cell, Variant
from kit.profile.clock import Certificate
from kit.profile.identity import Identity, State
from kit.profile.launch import Launch, StepPlan
from kit.profile.limits import Count, FileName, Int64, Precision, Quantity, Round, ThreadCount, TimeNs
from kit.profile.reason import Reason
from kit.profile.sensor import SensorReport, SensorResponse

SCHEMA_NAME = "steadykit.profile"
SCHEMA_MAJOR = 3
SCHEMA_MINOR = 2
SCHEMA = f"{SCHEMA_NAME}/{SCHEMA_MAJOR}.{SCHEMA_MINOR}"

FigureName = Literal[
    "train_time_s",  # of a fit: all epochs
    "test_time_s",  # one pass over the test split
    "epoch_time_s",  # of a fit, its first epoch left out
    "step_ns",  # of training
    "train_sample_ns",
    "infer_sample_ns",
    "accuracy",
    "precision",  # macro, as the two that follow
    "recall",
    "f1",
    "train_gain_pct",  # the CPU's time over this device's, as a percentage: 100 is as fast
    "test_gain_pct",
    "train_sample_gain_pct",
    "infer_sample_gain_pct",
]

# No one writes a file of so much Python; a pipe or a device is none.
PROGRAM_MAX_B = 16 << 20
# Between a group's key and the number of its part, where a group of more than four cells was split.
PART = "#"


class Kit(msgspec.Struct, frozen=True, kw_only=True):
    """Which kit measured."""

    version: str
    revision: str | None  # of its source, where known


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A backend that the suite names and this environment lacks."""

    backend: str
    reason: Reason


class ProgramSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the function is that makes a network of the user's own, and what its file held."""

    path: str  # of the file
    function: str
    module: str | None = None  # under which it is imported; null: the file is run by its path
    takes_task: bool  # it takes the task as an argument; otherwise it has one task
    sha256: str  # of the file; what it imports is not in it


def file_sha256(path: str | Path) -> str | None:
    """Return the SHA-256 of the bytes of a program's file; null where it cannot be read, or is no such file."""
    try:
        return hashlib.sha256(read_limited(Path(path), PROGRAM_MAX_B)).hexdigest()
    except OSError:
        return None


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
