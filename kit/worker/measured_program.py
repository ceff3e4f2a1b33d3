"""One program of a member, from its build to its last block.

build ─ trace ─ compile ─ first_step │ warmup │ block … block │ parity
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import NamedTuple

import msgspec
import numpy as np
import psutil

from kit import clock
from kit.backends.catalog import load_operations
from kit.backends.program.backend import OwnProgram
from kit.backends.program.results import HOST, device_of, leaves
from kit.backends.protocol import Backend, DeviceBatch, Output, Program, Runnable, Stepping
from kit.backends.ranks import all_reduces
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.clock import Calibration, ClockSource
from kit.profile.launch import (
    INJECTED_NS,
    Blocks,
    DataUsed,
    DeviceEvents,
    Failure,
    LaunchPart,
    PhaseName,
    Threads,
)
from kit.profile.reason import Reason, reason
from kit.sensors.catalog import EdgeCounters
from kit.worker.device_events import timed_on_device
from kit.worker.injected_delay import InjectedDelay
from kit.worker.inputs import Inputs, feed
from kit.worker.ledger import PhaseLedger
from kit.worker.messages import Done, Prepare, ProgramRequest
from kit.worker.parity import record_parity
from kit.worker.pipelined import Pipelined, empty_wait_ns, run_pipelined, steps_per_wait
from kit.worker.ranks import Ranks
from kit.worker.step_loop import STEPS_MAX, StepTimes, block_steps, run_for, run_steps, run_until
from kit.worker.thread_use import ThreadUse
from kit.workloads.parity import PARITY_BATCH
from kit.workloads.weights import initial_weights

# Where a step has returned when it is done, or its wait costs next to nothing.
HOST_DEVICE = "cpu"
# Of a framework's message; XLA's can fill pages, and the stack stands in the tail of standard error.
MESSAGE_LENGTH = 500
# A word to all ranks takes tens of microseconds: in a long block they agree on its end no more often than this.
RANKS_AGREE_EVERY_S = 0.05
# Of an accelerator's block: enough steps for a median of their latency, most of the time for what is judged.
LATENCY_SHARE = 0.25


def raised(error: Exception) -> Reason:
    """Return an exception that is not the kit's own as a reason, in one line."""
    message = " ".join(str(error).split())[:MESSAGE_LENGTH]
    return reason("exception", type=type(error).__name__, message=message)


class Shared(NamedTuple):
    """What the programs of a member share."""

    asked: Prepare
    backend: Backend
    source: ClockSource  # of stamps
    calibration: Calibration | None  # of that
    counters: EdgeCounters
    threads: Threads
    ranks: Ranks
    proofs: dict[str, LaunchPart]  # by cell: the points of a sweep share one, which is of small batches


class Ran(NamedTuple):
    """The steps of one block."""

    lead_in: int
    step_ns: StepTimes  # of the lead-in, and of each step that was waited for by itself
    pipelined: Pipelined | None  # those without a time of their own; null: in the blocks of a CPU

    @property
    def waited_ns(self) -> StepTimes:
        """Those that were waited for one by one, after the lead-in."""
        return self.step_ns[self.lead_in :]

    def as_block(self, cycle: int, begin_ns: int, span_ns: int, counters: dict[str, int | None]) -> Blocks:
        """Return them as the one block of `Blocks`."""
        waited_ns, pipelined = self.waited_ns, self.pipelined
        return Blocks(
            cycle=[cycle],
            begin_ns=[begin_ns],
            span_ns=[span_ns],
            lead_in=[self.lead_in],
            steps=[waited_ns.size if pipelined is None else pipelined.steps],
            duration_ns=[int(waited_ns.sum()) if pipelined is None else pipelined.duration_ns],
            median_ns=[round(float(np.median(waited_ns))) if waited_ns.size else None],
            waited_steps=[] if pipelined is None else [waited_ns.size],
            per_wait=[] if pipelined is None else [pipelined.per_wait],
            counters={name: [difference] for name, difference in counters.items()},
        )


class MeasuredProgram:
    """A cell, running and stamped; `_make` says what runs."""

    PHASE_BY_TIME: PhaseName = "energy"  # of a block that is run by time

    def __init__(self, shared: Shared, request: ProgramRequest, ledger: PhaseLedger) -> None:
        self._shared = shared
        self._cell: Cell = request.cell
        self._slowdown_pct = request.slowdown_pct
        self._repeat = request.repeat
        self._ledger = ledger
        self._output: Output = None
        self._used: DataUsed | None = None  # data that the kit knows
        self._thread_use = ThreadUse()

    def build(self) -> Done:
        """Build, trace, compile and make the first step; the framework's own exceptions pass."""
        with self._ledger.phase("build"):
            self._program, self._batches = self._make()
        self._ledger.phase_of("trace", self._program.trace)
        self._ledger.phase_of("compile", self._program.compile)
        # What the build left behind is collected now, not in the middle of a step.
        gc.collect()
        gc.freeze()
        stamps = clock.stamps(2, self._shared.source)
        with self._ledger.phase("first_step"):
            first_ns, self._output = run_steps(self._program, self._batches, 1, stamps, self._shared.calibration)
        self._check(first_ns)
        self._check_place()
        self._last_ns = first_ns
        self._compiled_before = self._program.compilations()
        self._stepping: Stepping = self._program
        self._delay: InjectedDelay | None = None
        part = LaunchPart(
            phases=self._ledger.take(),
            data=self._used,
            settings=self._program.settings() if self._cell.device != HOST_DEVICE else {},
        )
        return Done(part=part, steps=first_ns.tobytes(), resident_b=psutil.Process().memory_info().rss)

    def warm_up(self) -> Done:
        """Run the warm-up; the pace of its last steps decides how many steps the first block has."""
        stamps, plan = clock.stamps(STEPS_MAX + 1, self._shared.source), self._shared.asked.plan
        agree = self._shared.ranks.agree
        with self._ledger.phase("warmup"):
            self._last_ns, self._output = run_until(
                self._program,
                self._batches,
                plan.warmup_s,
                plan.warmup_steps,
                stamps,
                self._shared.calibration,
                agree,
            )
        self._check(self._last_ns)
        part = LaunchPart(phases=self._ledger.take(), warmup_steps=self._last_ns.size)
        if self._cell.device != HOST_DEVICE:
            part.empty_wait_ns = empty_wait_ns(self._program)
            self._per_wait = agree(steps_per_wait(self._program, self._batches, agree(float(np.median(self._last_ns)))))
        if self._slowdown_pct:
            self._stepping = self._delay = InjectedDelay(self._program, self._slowdown_pct)
        return Done(part=part, steps=self._last_ns.tobytes())

    def block(self, seconds: float, *, cycle: int = 0, by_time: bool = False) -> Done:
        """Run one block. Counters are read before its first step and after its last."""
        self._ledger.current = self.PHASE_BY_TIME if by_time else "steady"
        run = self._by_time(seconds) if by_time else self._by_steps(seconds)
        counters = self._shared.counters
        injected_before_ns = self._delay.injected_ns if self._delay is not None else 0
        self._thread_use.block_begins()
        before = counters.read()
        begin_ns = clock.now_ns()
        ran = run()
        span_ns = clock.now_ns() - begin_ns
        after = counters.read()
        self._thread_use.block_ends()
        differences = {
            name: None if first is None or last is None else last - first
            for name, first, last in zip(counters.names, before, after, strict=True)
        }
        if self._delay is not None:
            differences[INJECTED_NS] = self._delay.injected_ns - injected_before_ns
        if ran.waited_ns.size:
            if ran.waited_ns.min() <= 0:
                raise KitError("this clock is too coarse for steps this short: a step took no time; use larger batches")
            self._last_ns = ran.step_ns
            self._check(ran.waited_ns)
        blocks = ran.as_block(cycle, begin_ns, span_ns, differences)
        return Done(part=LaunchPart(blocks=blocks), steps=ran.step_ns.tobytes())

    def _by_steps(self, seconds: float) -> Callable[[], Ran]:
        """Return what runs as many steps as fill `seconds` at the pace of the last ones."""
        on_cpu, lead_in_s = self._cell.device == HOST_DEVICE, self._shared.asked.plan.lead_in_s
        waited_s = seconds if on_cpu else seconds * LATENCY_SHARE
        lead_in, timed = self._shared.ranks.agree(block_steps(self._last_ns, lead_in_s, waited_s))
        stamps = clock.stamps(lead_in + timed + 1, self._shared.source)
        running = self._stepping, self._batches

        def run() -> Ran:
            step_ns, self._output = run_steps(*running, lead_in + timed, stamps, self._shared.calibration)
            if on_cpu:
                return Ran(lead_in, step_ns, None)
            pipelined = run_pipelined(*running, self._per_wait, seconds - waited_s, self._shared.ranks.agree)
            self._output = pipelined.output
            return Ran(lead_in, step_ns, pipelined)

        return run

    def _by_time(self, seconds: float) -> Callable[[], Ran]:
        """Return what runs until `seconds` are over, without a lead-in."""
        if self._cell.device != HOST_DEVICE:
            return lambda: self._pipelined(self._per_wait, seconds)

        ranks, pace_ns = self._shared.ranks, float(np.median(self._last_ns))
        looks_every = 1 if ranks.size == 1 else ranks.agree(max(1, round(RANKS_AGREE_EVERY_S * 1e9 / pace_ns)))

        def run() -> Ran:
            running = self._stepping, self._batches
            steps, duration_ns, self._output = run_for(*running, seconds, ranks.agree, looks_every)
            return Ran(0, np.array([], np.int64), Pipelined(1, steps, duration_ns, self._output))

        return run

    def _pipelined(self, per_wait: int, seconds: float) -> Ran:
        """Run nothing but pipelined steps, for no less than `seconds`."""
        running, agree = (self._stepping, self._batches), self._shared.ranks.agree
        pipelined = run_pipelined(*running, per_wait, seconds, agree, never_shorter=True)
        self._output = pipelined.output
        return Ran(0, np.array([], np.int64), pipelined)

    def conclude(self) -> Done:
        """Look at what was computed; in a proving launch, record the parity losses, and what ran."""
        before, after = self._compiled_before.count, self._program.compilations()
        if before is not None and after.count is not None:
            after = msgspec.structs.replace(after, count=after.count - before)
        part = LaunchPart(recompiles=after, threads=self._threads())
        if not np.isfinite(self._program.to_host(self._output)).all():
            # Nonsense is not timed: a network that diverged skips work on some hardware.
            part.failure = Failure(phase="steady", reason=reason("output_not_finite"))
            return Done(part=part)
        part.device_events = self._device_events()
        if self._shared.asked.prove:
            with self._ledger.phase("parity"):
                part.add(self._proof())
        part.phases = self._ledger.take()
        return Done(part=part)

    def _threads(self) -> Threads:
        used = self._thread_use.used()
        known = {"used_reason": used} if isinstance(used, Reason) else {"used": used}
        return msgspec.structs.replace(self._shared.threads, **known)

    def _device_events(self) -> DeviceEvents | None:
        return None if self._cell.device == HOST_DEVICE else timed_on_device(self._program, self._batches)

    def _check_place(self) -> None:
        """Raise a KitError where the first step's result lies on another device than the cell's."""
        devices = {device_of(leaf) for leaf in leaves(self._output)} - {None}
        places = {HOST_DEVICE if device == HOST else str(device) for device in devices}
        if places and self._cell.device not in places:
            where = " and ".join(sorted(places))
            raise KitError(f"the first step ran on the {where}, but --device is {self._cell.device}")

    def _make(self) -> tuple[Runnable, Iterator[DeviceBatch]]:
        """Build the program, and what its steps take."""
        raise NotImplementedError

    def _check(self, step_ns: StepTimes) -> None:
        """Look at the last of some steps, outside of their times; raise a KitError where they cannot stand."""

    def _proof(self) -> LaunchPart:
        """Record the parity losses and the kernels, where there are any."""
        return LaunchPart()


class MeasuredOwnProgram(MeasuredProgram):
    """A user's own program: it brings its batches, and what it returns is looked at after its steps."""

    def _make(self) -> tuple[OwnProgram, Iterator[DeviceBatch]]:
        self._user_program = OwnProgram(self._shared.asked.sources[self._cell.workload], self._cell)
        return self._user_program, self._user_program.batches

    def _check(self, step_ns: StepTimes) -> None:
        self._user_program.check(self._output, step_ns)

    def _check_place(self) -> None:
        """Done by `OwnProgram.check`, which knows what users' steps return."""


class MeasuredOperation(MeasuredProgram):
    """An operation: it has its arrays."""

    def _make(self) -> tuple[Runnable, Iterator[DeviceBatch]]:
        return load_operations(self._cell.backend)(self._cell), repeat(None)


class MeasuredWorkload(MeasuredProgram):
    """A workload in a framework."""

    def __init__(self, shared: Shared, request: ProgramRequest, ledger: PhaseLedger, inputs: Inputs) -> None:
        super().__init__(shared, request, ledger)
        self._inputs = inputs
        self._used = inputs.used

    def _make(self) -> tuple[Program, Iterator[DeviceBatch]]:
        workload, seed = self._inputs.workload, self._shared.asked.seed
        program = self._shared.backend.build(workload, self._cell, initial_weights(workload, seed), seed)
        return program, self._feed(program)

    def _feed(self, program: Program) -> Iterator[DeviceBatch]:
        return feed(program, list(map(self._inputs.part, self._inputs.pool)), self._cell)

    def _proof(self) -> LaunchPart:
        cell = self._cell
        if cell.devices > 1 and not all_reduces():
            return LaunchPart()  # its devices learn apart from each other: no losses are anybody else's
        # Every device has a part of it, as of the cell's own.
        batch = min(max(PARITY_BATCH // cell.devices, 1) * cell.devices, cell.batch)
        small = msgspec.structs.replace(cell, batch=batch)
        proofs, seed = self._shared.proofs, self._shared.asked.seed
        if small.key not in proofs:
            proofs[small.key] = record_parity(self._shared.backend, self._inputs, small, seed)
        return proofs[small.key]
