"""What a worker is asked (`LaunchRequest`) and what it answers (`Launch`).

engine ── request.json ──►  python -m kit.worker  ── launch.json ──►  engine ──► journal ──► profile
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.cell import Cell
from kit.profile.clock import Calibration, Certificate
from kit.profile.int64 import Int64
from kit.profile.sensor import SensorReport

DataChoice = Literal["mnist", "synthetic", "auto"]
PhaseName = Literal[
    "import", "data", "build", "trace", "compile", "first_step", "warmup", "steady", "evaluate", "observer", "parity"
]


class StepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How long one launch measures.

    Warm-up runs for `warmup_s` seconds (at least `warmup_steps_min` steps), then the number of steady steps is fixed
    once, from the pace of the warm-up, to fill `steady_s` within [`steps_min`, `steps_max`]: the steady loop itself
    takes no decision.
    """

    warmup_s: float
    warmup_steps_min: Int64
    steady_s: float
    steps_min: Int64
    steps_max: Int64


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One launch, as the engine asks for it."""

    cell: Cell
    round: Int64  # which pass over the cells this launch belongs to; launches of one round are paired
    plan: StepPlan
    data: DataChoice
    seed: Int64
    threads: Int64  # compute threads that the framework is told to use
    cpus: list[Int64]  # CPUs the worker pins itself to; empty: leave as inherited
    parity: bool  # also record the parity losses (first 20 steps from the seed's weights, dropout off)
    evaluate: bool  # also score the test split after the steady steps
    clock: Literal["auto", "monotonic_raw", "tsc", "cntvct"] = "monotonic_raw"  # what a stamp reads
    observer_s: float = 0.0  # after the steady steps, seconds of blocks with the sampler running and stopped in turn
    planted_slowdown_pct: float = 0.0  # self-test: every step waits for this share of the launch's own pace


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A named stretch of a launch. `begin_ns` is on CLOCK_MONOTONIC_RAW of the worker's host."""

    name: PhaseName
    begin_ns: Int64
    duration_ns: Int64


class DataUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Which data the launch ran on, and the proof."""

    name: Literal["mnist", "synthetic"]
    sha256: str  # over the bytes of the arrays the steps were fed from, before any device saw them
    train_samples: Int64 | None  # null: this launch did not read the split
    test_samples: Int64 | None
    pool_batches: Int64  # distinct batches that the steps cycle through


class Utilization(msgspec.Struct, frozen=True, kw_only=True):
    """What the sampler saw over the steady phase. Percent of one CPU: 200 means two CPUs busy."""

    process_cpu_pct: float | None  # worker and its children, the sampler left out
    machine_cpu_pct: float | None  # everything on the host
    rss_peak_b: Int64 | None  # resident set, highest sample
    frequency_mhz: float | None  # mean over CPUs and samples
    throttled_ns: Int64 | None  # cgroup CPU throttling within the steady phase
    cpu_taken_pct: float | None = None  # by other work, of the CPUs that the worker may use, while none was idle
    gpu_throttled_by: list[str] | None = None  # what slowed any GPU of the machine, "software power cap of GPU 0"
    samples: Int64
    missed_samples: Int64 | None = None  # deadlines within the steady phase at which the sampler got no CPU
    sampler_cpu_pct: float | None  # what watching cost, percent of one CPU
    reasons: dict[str, str] = {}  # field -> why it is null


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """Energy over the steady phase from one sensor, or why there is none."""

    sensor: str
    joules_j: float | None
    window_ns: Int64 | None
    reason: str | None


class Threads(msgspec.Struct, frozen=True, kw_only=True):
    """Compute threads asked for and what the framework says it uses; CPUs the worker was allowed on."""

    requested: Int64
    reported: Int64 | None
    reported_reason: str | None
    cpus: list[Int64]


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """Losses of the first steps from the seed's weights and batches, dropout off. Same cell, same arithmetic."""

    losses: list[float]
    weights_sha256: str  # of the initial weights, framework-neutral layout
    batches_sha256: str  # of the batches used


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """Score on the real test split after the launch's own training steps. Null on synthetic data, with the reason."""

    accuracy: float | None
    samples: Int64 | None  # how many were scored
    updates: Int64 | None = None  # optimizer updates before scoring: accuracies after different numbers do not compare
    reason: str | None = None


class ObserverBlocks(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of blocks with the sampler running and with it stopped. Entry i of each list belongs to pair i."""

    on_ns: list[Int64]  # median step of each block
    off_ns: list[Int64]
    on_mean_ns: list[Int64]  # mean step: most steps meet no sample, so a median alone would not see what one costs
    off_mean_ns: list[Int64]
    steps_per_block: Int64
    reason: str | None = None  # why there are no blocks


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a launch did not finish."""

    phase: PhaseName | None
    reason: str  # one line
    stderr_tail: str = ""
    exit_code: Int64 | None = None  # negative: the signal that ended it

    @property
    def in_words(self) -> str:
        """Where and why, in one line."""
        return f"in {self.phase}: {self.reason}" if self.phase else f"before its first phase: {self.reason}"


class Launch(msgspec.Struct, kw_only=True):
    """One fresh process that measured one cell once.

    With `failure` set, fields hold what had been measured until then; no summary is made of them.
    """

    cell_key: str
    round: Int64
    started: str  # UTC, ISO 8601
    python: str
    backend_version: str | None
    phases: list[Phase] = []
    # One entry a step, from step 0 (= the first step), warm-up and steady alike; on disk possibly in the sidecar.
    step_ns: list[Int64] | None = None
    steps: Int64 = 0
    warmup_steps: Int64 = 0  # steps before the steady phase began, step 0 included
    steps_per_sync: Int64 = 1
    recompiles: Int64 | None = None  # compilations during warm-up and steady
    recompiles_reason: str | None = None
    graph_breaks: Int64 | None = None
    threads: Threads | None = None
    data: DataUsed | None = None
    utilization: Utilization | None = None
    energy: list[Energy] = []
    sensors: list[SensorReport] = []  # in a profile: only where they are not the profile's own
    calibration_start: Calibration | None = None
    calibration_end: Calibration | None = None
    certificate: Certificate | None = None
    peak_memory_b: Int64 | None = (
        None  # high-water resident set of the worker to the end of the steps, data and framework included
    )
    observer: ObserverBlocks | None = None
    planted_slowdown_pct: float = 0.0  # a self-test's launch; never in a suite's profile
    evaluation: Evaluation | None = None
    parity: Parity | None = None
    warnings: list[str] = []
    failure: Failure | None = None
