"""What a member's runner asks and what the member answers: one line of JSON each, through the member's pipes.

runner ── Prepare ─► Do build ─► Do warm_up ─► Do block … ─► Do conclude … ─► Finish ──►  member
       ◄─── Done ───── Done ─────── Done ─────── Done ───────── Done ────────── Done ──

Before its answer to any of these the member may say `Entered`, and in its place `Failed`.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from kit.profile.cell import Cell, Int64
from kit.profile.clock import ClockChoice
from kit.profile.launch import Failure, LaunchPart, PhaseName, StepPlan
from kit.profile.schema import ProgramSource
from kit.profile.store import Steps


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One program of a member."""

    cell: Cell
    slowdown_pct: float = 0.0  # injected into every timed step
    repeat: int = 0  # of a fit: which one; each is drawn anew


class Prepare(msgspec.Struct, frozen=True, kw_only=True, tag_field="ask", tag="prepare"):
    """Import the framework; its programs are built one by one, when they are wanted."""

    programs: list[ProgramRequest]  # of one backend
    sources: dict[str, ProgramSource] = {}  # workload -> where its function is, of users' own programs
    plan: StepPlan
    data: dict[str, str]  # data set -> what is used: itself, or "synthetic"
    seed: Int64
    threads: Int64  # compute threads that the framework is told to use in each rank
    tells_threads: bool = True  # false: a variant sets variables for them, and the framework obeys or ignores these
    cpus: list[Int64]  # the worker pins itself to these; ranks divide them
    ranks: Int64 = 1  # processes of the member
    hosts: list[str] = []  # that they are divided over, the runner's first; none: its own alone
    rank: Int64 = 0  # which of them this one is
    addresses: list[str] = []  # host:port of each rank, free for the framework's own rendezvous
    clock: ClockChoice
    memory_share: float = 1.0  # of a GPU's memory that the process may take: the members of a round share it equally
    prove: bool  # at the end, record parity losses and score the test split


class Do(msgspec.Struct, frozen=True, kw_only=True, tag_field="ask", tag="do"):
    """One thing, of one program."""

    # build: load data, build and compile it, run its first step; warm_up: run until its plan's warm-up is over;
    # block: run a lead-in, then as many timed steps as fill `seconds`; conclude: prove it, and give its memory back.
    verb: Literal["build", "warm_up", "block", "conclude"]
    program: Int64
    cycle: Int64 = 0  # of a block
    seconds: float = 0.0  # of a block
    by_time: bool = False  # of a block: no lead-in, and until `seconds` are over: a sensor refuses a shorter window


class Finish(msgspec.Struct, frozen=True, kw_only=True, tag_field="ask", tag="finish"):
    """Certify the clock, and end."""


Command = Prepare | Do | Finish


class Entered(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="entered"):
    """A phase begins: a member that dies in it leaves this behind."""

    phase: PhaseName
    program: Int64 | None = None


class Done(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="done"):
    """What was asked for is done."""

    part: LaunchPart
    steps: bytes = b""  # 64-bit integers: nanoseconds of each step that was waited for by itself, lead-in included
    resident_b: Int64 | None = None  # after a build: of the process
    left: Int64 | None = None  # after a block: steps that a fit still has to do; null: no fit

    @property
    def step_ns(self) -> Steps:
        """The step times, (steps,)."""
        return np.frombuffer(self.steps, np.int64)


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="failed"):
    """An exception, or a cell that cannot run here. Where a program is at fault, the member goes on without it."""

    program: Int64 | None
    failure: Failure


Answer = Entered | Done | Failed
