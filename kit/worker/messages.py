"""What a member's runner asks and what the member answers: one line of JSON each, through the member's pipes.

runner ── Prepare ─► Build ─► WarmUp ─► RunBlock … ─► Conclude … ─► Finish ──►  member
       ◄─ Prepared ─ Built ── WarmedUp ─ BlockDone ─── Concluded ─── Finished ──

Before any of these the member may say `Entered(phase)`, and in the place of any `Failed`.
"""

from __future__ import annotations

import msgspec

from kit.profile.cell import Cell, Int64
from kit.profile.clock import Calibration, Certificate, ClockChoice
from kit.profile.launch import (
    Compilations,
    DataUsed,
    DeviceEvents,
    Failure,
    Fit,
    Parity,
    Phase,
    PhaseName,
    StepPlan,
    Threads,
)
from kit.profile.program import ProgramSource


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One program of a member."""

    cell: Cell
    slowdown_pct: float = 0.0  # planted in every timed step
    repeat: int = 0  # of a fit: which one; each is drawn anew


class Prepare(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="prepare"):
    """Import the framework; its programs are built one by one, when they are wanted."""

    programs: list[ProgramRequest]  # of one backend
    sources: dict[str, ProgramSource] = {}  # workload -> where its function is, of users' own programs
    plan: StepPlan
    data: dict[str, str]  # data set -> what is used: itself, or "synthetic"
    seed: Int64
    threads: Int64  # compute threads that the framework is told to use
    cpus: list[Int64]  # the worker pins itself to these
    clock: ClockChoice
    memory_share: float = 1.0  # of a GPU's memory that the process may take: the members of a round share it equally
    prove: bool  # at the end, record parity losses and score the test split


class Build(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="build"):
    """Load data, build and compile a program, and run its first step."""

    program: Int64


class WarmUp(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="warm_up"):
    """Run a program until its plan's warm-up is over."""

    program: Int64


class RunBlock(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="block"):
    """Run one block of about `seconds`: lead-in, then as many timed steps as the pace says."""

    program: Int64
    seconds: float
    by_time: bool = False  # no lead-in, and until `seconds` are over: a sensor refuses a shorter window


class Conclude(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="conclude"):
    """Prove a program, and give its memory back."""

    program: Int64


class Finish(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="finish"):
    """Certify the clock, and end."""


Command = Prepare | Build | WarmUp | RunBlock | Conclude | Finish


class Entered(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="entered"):
    """A phase begins: a member that dies in it leaves this behind."""

    phase: PhaseName
    program: Int64 | None = None


class Prepared(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="prepared"):
    """The framework is there."""

    python: str
    phases: list[Phase]  # of the process: import
    threads: Threads
    calibration: Calibration | None


class Built(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="built"):
    """A program has made its first step."""

    backend_version: str
    phases: list[Phase]
    data: DataUsed | None  # null: a user's own program has its own
    settings: dict[str, str] = {}  # of the framework that decide its arithmetic and kernels on an accelerator
    first_step_ns: Int64
    resident_b: Int64 | None  # of the process


class WarmedUp(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="warmed_up"):
    """A program is warm."""

    phase: Phase
    step_ns: list[Int64]


class BlockDone(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="block_done"):
    """One block: `kit.profile.launch.Blocks` has the picture."""

    begin_ns: Int64
    span_ns: Int64
    lead_in: Int64
    step_ns: list[Int64]  # of the lead-in, and of each step that was waited for by itself
    steps: Int64  # timed together
    duration_ns: Int64
    per_wait: Int64 | None = None  # of them; null: each is in `step_ns`
    counters: dict[str, Int64 | None]
    left: Int64 | None = None  # steps that a fit still has to do; null: no fit


class Concluded(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="concluded"):
    """What is known of a program at its end."""

    recompiles: Compilations
    phases: list[Phase]  # evaluate, parity
    parity: Parity | None = None
    kernels: list[str] = []
    device_events: DeviceEvents | None = None
    fit: Fit | None = None
    failure: Failure | None = None  # it measured, and what it measured cannot stand


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="finished"):
    """The last answer."""

    peak_memory_b: Int64 | None
    peak_device_memory_b: Int64 | None = None
    device_ids: list[str] = []
    calibration: Calibration | None
    certificate: Certificate


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="failed"):
    """An exception, or a cell that cannot run here. Where a program is at fault, the member goes on without it."""

    program: Int64 | None
    failure: Failure


Answer = Entered | Prepared | Built | WarmedUp | BlockDone | Concluded | Finished | Failed
