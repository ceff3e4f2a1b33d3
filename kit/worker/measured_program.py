"""One program of a member, from its build to its last block.

build ─ trace ─ compile ─ first_step │ warmup │ block … block │ parity
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import psutil

from kit import clock
from kit.backends.program.results import HOST, device_of, leaves
from kit.backends.protocol import Backend, DeviceBatch, Output, Program, Runnable
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.clock import Calibration, ClockSource
from kit.profile.launch import (
    INJECTED_NS,
    Blocks,
    Compilations,
    DataUsed,
    DeviceEvents,
    Failure,
    LaunchPart,
    PhaseName,
)
from kit.profile.reason import Reason, reason
from kit.sensors.catalog import EdgeCounters
from kit.worker.device_events import timed_on_device
from kit.worker.injected_delay import InjectedDelay
from kit.worker.inputs import Inputs, feed
from kit.worker.ledger import PhaseLedger
from kit.worker.messages import Done, Prepare, ProgramRequest
from kit.worker.parity import Proof, parity_cell, record_parity
from kit.worker.pipelined import Pipelined, run_pipelined, steps_per_wait
from kit.worker.step_loop import STEPS_MAX, Stepping, StepTimes, block_steps, run_steps, run_until
from kit.workloads.weights import initial_weights

# Where a step has returned when it is done, or its wait costs next to nothing.
HOST_DEVICE = "cpu"
# Of a framework's message; XLA's can fill pages, and the stack stands in the tail of standard error.
MESSAGE_LENGTH = 500
# Of an accelerator's block: enough steps for a median of their latency, most of the time for what is judged.
LATENCY_SHARE = 0.25
# The points of a sweep share a proof: it is of small batches, whatever the cell's own.
ParityCache = dict[str, Proof]
NO_STEPS: StepTimes = np.array([], np.int64)


def raised(error: Exception) -> Reason:
    """Return an exception that is not the kit's own as a reason, in one line."""
    message = " ".join(str(error).split())[:MESSAGE_LENGTH]
    return reason("exception", type=type(error).__name__, message=message)


class Timing(NamedTuple):
    """What stamps read, and what their units are."""

    source: ClockSource
    calibration: Calibration | None


class Ran(NamedTuple):
    """The steps of one block."""

    lead_in: int
    step_ns: StepTimes  # of the lead-in, and of each step that was waited for by itself
    pipelined: Pipelined | None  # null: on a CPU

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


class MeasuredProgram(ABC):
    """A cell, running and stamped."""

    PHASE_BY_TIME: PhaseName = "energy"  # of a block that is run by time

    def __init__(self, asked: Prepare, request: ProgramRequest, ledger: PhaseLedger) -> None:
        self._asked = asked
        self._cell: Cell = request.cell
        self._slowdown_pct = request.slowdown_pct
        self._repeat = request.repeat
        self.ledger = ledger
        self._output: Output = None

    def build(self, timing: Timing) -> Done:
        """Build, trace, compile and make the first step; the framework's own exceptions pass."""
        self._timing = timing
        with self.ledger.phase("build"):
            self._program, self._batches = self._make()
        with self.ledger.phase("trace"):
            traced = self._program.trace()
        if not traced:
            self.ledger.drop("trace")
        with self.ledger.phase("compile"):
            compiled = self._program.compile()
        if not compiled:
            self.ledger.drop("compile")
        # What the build left behind is collected now, not in the middle of a step.
        gc.collect()
        gc.freeze()
        stamps = clock.stamps(2, timing.source)
        with self.ledger.phase("first_step"):
            first_ns, self._output = run_steps(self._program, self._batches, 1, stamps, timing.calibration)
        self._last_ns: StepTimes = first_ns
        self._check(first_ns)
        self._check_place()
        self._compiled_before = self._program.compilations()
        self._stepping: Stepping = self._program
        part = LaunchPart(
            phases=self.ledger.take(),
            data=self._used(),
            settings=self._program.settings() if self._cell.device != HOST_DEVICE else {},
        )
        return Done(part=part, steps=first_ns.tobytes(), resident_b=psutil.Process().memory_info().rss)

    def warm_up(self) -> Done:
        """Run the warm-up; the pace of its last steps decides how many steps the first block has."""
        stamps, plan = clock.stamps(STEPS_MAX + 1, self._timing.source), self._asked.plan
        with self.ledger.phase("warmup"):
            self._last_ns, self._output = run_until(
                self._program, self._batches, plan.warmup_s, plan.warmup_steps, stamps, self._timing.calibration
            )
        self._check(self._last_ns)
        if self._cell.device != HOST_DEVICE:
            self._per_wait = steps_per_wait(self._program, self._batches, float(np.median(self._last_ns)))
        if self._slowdown_pct:
            self._stepping = InjectedDelay(self._program, self._slowdown_pct)
        part = LaunchPart(phases=self.ledger.take(), warmup_steps=self._last_ns.size)
        return Done(part=part, steps=self._last_ns.tobytes())

    def block(self, seconds: float, counters: EdgeCounters, *, cycle: int = 0, by_time: bool = False) -> Done:
        """Run one block. Counters are read before its first step and after its last."""
        self.ledger.current = self.PHASE_BY_TIME if by_time else "steady"
        run = self._by_time(seconds) if by_time else self._by_steps(seconds)
        injected_before_ns = self._injected_ns
        before = counters.read()
        begin_ns = clock.now_ns()
        ran = run()
        span_ns = clock.now_ns() - begin_ns
        after = counters.read()
        differences = {
            name: None if first is None or last is None else last - first
            for name, first, last in zip(counters.names, before, after, strict=True)
        }
        if self._slowdown_pct:
            differences[INJECTED_NS] = self._injected_ns - injected_before_ns
        if ran.waited_ns.size:
            self._last_ns = ran.step_ns
            self._check_times(ran.waited_ns)
        return Done(
            part=LaunchPart(blocks=ran.as_block(cycle, begin_ns, span_ns, differences)), steps=ran.step_ns.tobytes()
        )

    def _check_times(self, waited_ns: StepTimes) -> None:
        if waited_ns.min() <= 0:
            raise KitError("a step took no time by this clock: too coarse for steps this short; use larger batches")
        self._check(waited_ns)

    def _by_steps(self, seconds: float) -> Callable[[], Ran]:
        """Return what runs as many steps as fill `seconds` at the pace of the last ones."""
        on_cpu, lead_in_s = self._cell.device == HOST_DEVICE, self._asked.plan.lead_in_s
        waited_s = seconds if on_cpu else seconds * LATENCY_SHARE
        steps = block_steps(self._last_ns, lead_in_s, waited_s)
        stamps = clock.stamps(steps.lead_in + steps.timed + 1, self._timing.source)
        running = self._stepping, self._batches

        def run() -> Ran:
            count = steps.lead_in + steps.timed
            step_ns, self._output = run_steps(*running, count, stamps, self._timing.calibration)
            pipelined = None
            if not on_cpu:
                pipelined = run_pipelined(*running, self._per_wait, seconds - waited_s)
                self._output = pipelined.output
            return Ran(steps.lead_in, step_ns, pipelined)

        return run

    def _by_time(self, seconds: float) -> Callable[[], Ran]:
        """Return what runs until `seconds` are over, without a lead-in."""
        running = self._stepping, self._batches
        if self._cell.device != HOST_DEVICE:
            return lambda: self._pipelined(self._per_wait, seconds)
        stamps = clock.stamps(STEPS_MAX + 1, self._timing.source)

        def run() -> Ran:
            step_ns, self._output = run_until(*running, seconds, 1, stamps, self._timing.calibration)
            return Ran(0, step_ns, None)

        return run

    def _pipelined(self, per_wait: int, seconds: float) -> Ran:
        """Run nothing but pipelined steps, for no less than `seconds`."""
        pipelined = run_pipelined(self._stepping, self._batches, per_wait, seconds, never_shorter=True)
        self._output = pipelined.output
        return Ran(0, NO_STEPS, pipelined)

    def conclude(self) -> Done:
        """Look at what was computed; in a proving launch, record the parity losses, and what ran."""
        part = LaunchPart(recompiles=_since(self._compiled_before, self._program.compilations()))
        if not np.isfinite(self._program.to_host(self._output)).all():
            # Nonsense is not timed: a network that diverged skips work on some hardware.
            part.failure = Failure(phase="steady", reason=reason("output_not_finite"))
            return Done(part=part)
        part.device_events = self._device_events()
        if self._asked.prove:
            with self.ledger.phase("parity"):
                proof = self._proof()
            if proof is not None:
                part.parity, part.kernels = proof.parity, proof.kernels
        part.phases = self.ledger.take()
        return Done(part=part)

    def _device_events(self) -> DeviceEvents | None:
        return None if self._cell.device == HOST_DEVICE else timed_on_device(self._program, self._batches)

    def _check_place(self) -> None:
        """Raise a KitError where the first step's result lies on another device than the cell's."""
        devices = {device_of(leaf) for leaf in leaves(self._output)} - {None}
        places = {HOST_DEVICE if device == HOST else str(device) for device in devices}
        if places and self._cell.device not in places:
            where = " and ".join(sorted(places))
            raise KitError(f"its first step ran on the {where}, not on the {self._cell.device} that was asked for")

    @abstractmethod
    def _make(self) -> tuple[Runnable, Iterator[DeviceBatch]]:
        """Build the program, and what its steps take."""

    @abstractmethod
    def _used(self) -> DataUsed | None:
        """Return which data it runs on, where the kit knows."""

    @abstractmethod
    def _check(self, step_ns: StepTimes) -> None:
        """Look at the last of some steps, outside of their times; raise a KitError where they cannot stand."""

    @abstractmethod
    def _proof(self) -> Proof | None:
        """Record the parity losses and the kernels, where there are any."""

    @property
    def _injected_ns(self) -> int:
        return self._stepping.injected_ns if isinstance(self._stepping, InjectedDelay) else 0


class MeasuredWorkload(MeasuredProgram):
    """A workload in a framework."""

    def __init__(  # noqa: PLR0917
        self,
        backend: Backend,
        asked: Prepare,
        request: ProgramRequest,
        inputs: Inputs,
        ledger: PhaseLedger,
        parities: ParityCache,
    ) -> None:
        super().__init__(asked, request, ledger)
        self._backend = backend
        self._inputs = inputs
        self._parities = parities

    def _make(self) -> tuple[Program, Iterator[DeviceBatch]]:
        workload = self._inputs.workload
        weights = initial_weights(workload, self._asked.seed)
        program = self._backend.build(workload, self._cell, weights, self._asked.seed)
        return program, self._feed(program)

    def _feed(self, program: Program) -> Iterator[DeviceBatch]:
        return feed(program, self._inputs.pool, self._cell)

    def _used(self) -> DataUsed:
        return self._inputs.used

    def _check(self, step_ns: StepTimes) -> None:
        pass

    def _proof(self) -> Proof:
        small = parity_cell(self._cell)
        if small.key not in self._parities:
            self._parities[small.key] = record_parity(
                self._backend, self._inputs.workload, small, self._asked.seed, self._inputs.pool
            )
        return self._parities[small.key]


def _since(before: Compilations, after: Compilations) -> Compilations:
    if before.count is None or after.count is None:
        return after
    return Compilations(count=after.count - before.count, graph_breaks=after.graph_breaks)
