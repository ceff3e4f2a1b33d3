"""The profile: one JSON file. Integer nanoseconds in `_ns`, joules in `_j`, watts in `_w`, bytes in `_b`.

Schema version: MAJOR.MINOR. A reader accepts a newer minor version and refuses a newer major by name.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.cell import Cell
from kit.profile.clock import Certificate
from kit.profile.identity import Identity, State
from kit.profile.int64 import Int64
from kit.profile.launch import DataChoice, Failure, Launch, StepPlan
from kit.profile.sensor import SensorReport

SCHEMA_NAME = "steadykit.profile"
SCHEMA_MAJOR = 1
SCHEMA_MINOR = 2
SCHEMA = f"{SCHEMA_NAME}/{SCHEMA_MAJOR}.{SCHEMA_MINOR}"

SteadyVerdict = Literal["flat", "warmup", "slowdown", "no_steady_state"]


class LaunchSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one launch says. Null steady numbers: no steady state, by `verdict`, or not its CPUs; `reason` says why."""

    round: Int64
    verdict: SteadyVerdict
    warmup_steps: Int64 | None  # steps before the steady state was reached, step 0 included
    steady_steps: Int64
    median_ns: Int64 | None
    p95_ns: Int64 | None
    autocorrelation: float | None  # lag 1, of the steady steps
    contended: bool = False  # other work took its CPUs (`Utilization.cpu_taken_pct`): not the framework's step time
    reason: str | None = None  # why there are no steady numbers; null where there are, and before schema 1.2


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A centre with its 95 % interval over launches (the launch is the unit). One launch has no interval."""

    value: float
    low: float | None
    high: float | None
    launches: Int64


class ParityVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether this cell's losses agree with the other backends' in the same profile."""

    agrees: bool | None  # null: nothing to compare with, see `reason`
    against: list[str]  # cell keys compared with
    max_relative_difference: float | None
    tolerance: float
    steps: Int64  # losses that this cell recorded
    reason: str | None = None


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell says over its launches. Derived from the launches; kept so that reading is quick."""

    step_ns: Estimate | None  # geometric mean of launch medians
    step_p95_ns: Estimate | None
    samples_per_s: Estimate | None
    sample_ns: Estimate | None
    compile_ns: Estimate | None  # trace + compile + first step: from a built program to its first result
    warmup_steps: Int64 | None  # median over launches
    process_cpu_pct: Estimate | None
    peak_memory_b: Int64 | None  # highest over launches
    joules_per_sample_j: Estimate | None
    accuracy: Estimate | None
    reasons: dict[str, str] = {}  # field -> why it is null


class CellResult(msgspec.Struct, kw_only=True):
    """A cell with everything that was measured of it."""

    key: str
    cell: Cell
    status: Literal["ok", "failed", "incomplete"]
    launches: list[Launch]
    launch_summaries: list[LaunchSummary]
    summary: CellSummary
    parity: ParityVerdict | None = None
    failures: list[Failure] = []


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A backend that the suite names and this environment lacks."""

    backend: str
    reason: str


class ObserverOverhead(msgspec.Struct, frozen=True, kw_only=True):
    """What sampling costs the measured step: step time with the sampler running over step time with it stopped.

    Geometric means over pairs of neighbouring blocks, with the 95 % interval of the paired logarithms.
    """

    cell_key: str
    ratio: float | None  # of median steps, as a launch is summarized
    low: float | None
    high: float | None
    mean_ratio: float | None  # of mean steps: of the whole time, spikes of the machine's other work included
    mean_low: float | None
    mean_high: float | None
    pairs: Int64
    reason: str | None = None  # why `ratio` is null


class HostBand(msgspec.Struct, frozen=True, kw_only=True):
    """By how much this host differs from itself: a cell against itself, as `kit selftest` measured it."""

    band: float  # relative difference that 95 % of comparisons of two runs should stay within
    band_in_turns: float | None = None  # of launches that took turns, as the backends of one run do
    taken: str  # UTC, ISO 8601
    cell_key: str
    launches: Int64  # that nothing was changed in, and that had a steady state: what the band was taken from
    hardware_sha256: str  # of the host it was taken on


class SuiteUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Which suite ran, and how."""

    name: str
    sha256: str
    launches: Int64  # asked for, per cell; with `precision_pct` the least
    plan: StepPlan
    data: DataChoice
    data_note: str | None = None  # why synthetic, when `auto` fell back
    seed: Int64
    skipped: list[Skipped] = []
    precision_pct: float | None = None  # asked for: launches go on until each cell's interval is this narrow
    observer_s: float = 0.0  # of the observer test, in the first cell's first launch


class StateSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The machine before the first launch and after the last."""

    before: State
    after: State | None


class Sidecar(msgspec.Struct, frozen=True, kw_only=True):
    """Raw step times kept beside the profile, when they are many."""

    file: str  # a bare file name in the profile's folder
    sha256: str
    steps: Int64


class Profile(msgspec.Struct, kw_only=True):
    """One run on one machine."""

    schema: str
    id: str
    created: str  # UTC, ISO 8601
    kit: str
    identity: Identity
    state: StateSpan
    clock: Certificate | None
    sensors: list[SensorReport]
    suite: SuiteUsed
    cells: list[CellResult]
    sidecar: Sidecar | None = None
    interrupted: bool = False
    observer: ObserverOverhead | None = None  # null: the suite had no time for it
    host_band: HostBand | None = None  # null: no self-test was run on this host
    digest: str = ""  # SHA-256 over the canonical JSON of everything else
