"""What a runner asks a worker, and what the worker answers: one line of JSON each, bytes as base64.

runner ── Prepare ─► Join ─► Load ─► Build ─► Trace ─► Compile ─► Measure, Measure … ──► Conclude ─► Finish ──► worker
       ◄── Done ──── Done ── Done ── Done ─── Done ─── Done ───── Measured, Measured … ─ Done ────── Done ─────

The worker takes no decision: a request says how many steps run, and where the worker waits for them. Each request is
one phase, so the runner knows in which phase a worker died. `Failed` or `Ended` can take the place of any answer.
Lines are used because `srun` passes output on line by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kit.profile.cell import Cell
from kit.profile.fields import Int64, Reason
from kit.profile.instruments import ClockChoice
from kit.profile.program_source import ProgramSource
from kit.profile.schema import Fit, LaunchPart
from kit.profile.store import Steps

# In standard error, between what a program has printed and the traceback of what it raised.
RAISED = "The worker raised:"


class Segment(NamedTuple):
    """`waits` times: run `per_wait` steps, then wait for the last of them. The first wait past the limit is the last.

    Ranks have no limit: each would meet its own at another step, and one would wait for the other for good.
    """

    waits: int
    per_wait: int = 1
    limit_ns: int = 0  # 0: none

    @property
    def steps(self) -> int:
        """Return how many steps run."""
        return self.waits * self.per_wait


class Request(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A request to a worker."""


class Prepare(Request, frozen=True, kw_only=True):
    """Take CPUs and devices, and import the framework."""

    backend: str
    device: str
    clock: ClockChoice
    sources: list[ProgramSource] = []  # of the user programs that the worker will build
    has_own_threads: bool = False  # a variant sets variables for threads, and the framework obeys or ignores these
    compiles_anew: bool = True  # it does without what was compiled in an earlier process
    cpus: list[Int64] = []  # of the host that this worker may use; none: all that the host allows it
    part: Int64 = 0  # of those CPUs, and of the host's devices, that this rank takes
    parts: Int64 = 1  # ranks on this host
    devices: Int64 = 1  # of all ranks on this host
    hides_devices: bool = False  # the worker itself hides the other devices of its host from the framework


class Reach(Request, frozen=True, kw_only=True):
    """Hold a port of this host at an address that another host reaches, until `Join`."""

    towards: str = ""  # an address of the other host; empty: of the host on which srun was called


class Join(Request, frozen=True, kw_only=True):
    """Become one of the ranks at these addresses, and set threads and memory."""

    devices: Int64  # of this rank; 0: the cell has one device and no ranks
    addresses: list[str] = []  # host:port of each rank, for the framework's own rendezvous; none: a single rank
    folder: str = ""  # that all ranks share and other users cannot enter; empty: they are on several hosts
    rank: Int64 = 0
    threads: Int64  # that the framework is to use
    memory_fraction: float = 1.0  # of a GPU's memory that the process may take


class Load(Request, frozen=True, kw_only=True):
    """Read the data of a workload."""

    program: Int64
    cell: Cell
    data: str  # name of the data set that is used, or "synthetic"
    seed: Int64


class Build(Request, frozen=True, kw_only=True):
    """Build a program: a workload on the data that was loaded, an operation, or a user program."""

    program: Int64
    cell: Cell
    seed: Int64
    source: ProgramSource | None = None  # of a user program
    variables: dict[str, str | None] = {}  # of a command, as its user set them; null: not at all


class Trace(Request, frozen=True, kw_only=True):
    """Trace a program."""

    program: Int64


class Compile(Request, frozen=True, kw_only=True):
    """Compile a program."""

    program: Int64


class Measure(Request, frozen=True, kw_only=True):
    """Run steps, and stamp the end of each wait."""

    program: Int64
    segments: Sequence[Segment]
    slowdown_pct: float = 0.0  # injected into every step
    is_block: bool = False  # the worker counts the threads that compute, from the first such request on
    is_summed: bool = False  # the answer has one time, the sum of all
    begins_block: bool = False  # weights and optimizer state are put back first, outside of what is timed and counted


class Conclude(Request, frozen=True, kw_only=True):
    """Check what a program computed, and let it prove itself."""

    program: Int64
    proves: bool
    event_steps: Int64 = 0  # of a group that host and device time together; 0: none


class Score(Request, frozen=True, kw_only=True):
    """Score a fit on the test split."""

    program: Int64
    fit: Fit  # without its score


class Release(Request, frozen=True, kw_only=True):
    """Give back what a program holds."""

    program: Int64


class Finish(Request, frozen=True, kw_only=True):
    """Certify the clock, and end."""


Requests = Prepare | Reach | Join | Load | Build | Trace | Compile | Measure | Conclude | Score | Release | Finish


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An answer of a worker, or of the supervisor in front of it."""


class Done(Answer, frozen=True, kw_only=True):
    """The request is done."""

    part: LaunchPart = msgspec.field(default_factory=LaunchPart)
    begin_ns: Int64 = 0
    span_ns: Int64 | None = None  # null: nothing of what was asked happens in this framework, so there was no phase
    kit_version: str = ""  # after `Prepare`
    address: str = ""  # after `Reach`: host:port
    counters: list[str] = []  # after `Join`: names of the counters that every `Measured` reads
    epoch_updates: Int64 = 0  # after `Load`: steps of an epoch of a fit


class Measured(Answer, frozen=True, kw_only=True):
    """The steps of one `Measure`, between two readings of the counters."""

    begin_ns: Int64  # CLOCK_MONOTONIC_RAW of the worker's host
    span_ns: Int64
    waits: bytes  # 64-bit integers: nanoseconds from wait to wait, of all segments in their order
    ran: list[Int64]  # waits of each segment: fewer than were asked for where it passed its limit
    counters: list[Int64 | None]  # differences, as `Done.counters` names them; null: a reading failed
    restored_ns: Int64 = 0  # before the first step: what it took to put weights and optimizer state back
    injected_ns: Int64 = 0
    resident_b: Int64 | None = None  # of the process, after a program's first step
    failed_runs: Int64 = 0  # of a command
    figures: list[float] = []  # of each step of a command that has figures

    def waits_ns(self) -> list[Steps]:
        """Return the waits of each segment; of the only one their sum, where that was asked for."""
        return np.split(np.frombuffer(self.waits, np.int64), np.cumsum(self.ran)[:-1])


class Failed(Answer, frozen=True, kw_only=True):
    """The request raised. Where a program is at fault the worker has released it, and goes on."""

    reason: Reason
    program: Int64 | None = None


class Stopped(Answer, frozen=True, kw_only=True):
    """From the supervisor: no thread of the worker runs."""


class Ended(Answer, frozen=True, kw_only=True):
    """From the supervisor: the worker has ended."""

    reason: Reason


Answers = Done | Measured | Failed | Stopped | Ended
