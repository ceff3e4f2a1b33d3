"""One program of a member, from its build to its last block.

build ─ trace ─ compile ─ first_step │ warmup │ block … block │ evaluate ─ parity
"""

from __future__ import annotations

import gc
from typing import NamedTuple

import numpy as np

from kit import clock
from kit.backends.program.backend import OwnProgram
from kit.backends.protocol import Backend, Output, Program
from kit.errors import KitError
from kit.profile.clock import Calibration, Certificate, ClockSource
from kit.profile.launch import PLANTED_NS, Compilations, Failure
from kit.profile.reason import Reason, reason
from kit.sensors.catalog import EdgeCounters
from kit.worker.inputs import Inputs, evaluate, feed
from kit.worker.ledger import PhaseLedger
from kit.worker.messages import BlockDone, FinishedProgram, Prepare, PreparedProgram, ProgramRequest, WarmedUp
from kit.worker.parity import record_parity
from kit.worker.planted import Planted
from kit.worker.step_loop import STEPS_MAX, BlockSteps, Stepping, StepTimes, block_steps, run_steps, run_until
from kit.workloads.catalog import workload
from kit.workloads.weights import initial_weights


class LaunchError(KitError):
    """A program ran, but what it measured cannot stand."""


class Timing(NamedTuple):
    """What stamps read, and what their units are."""

    source: ClockSource
    calibration: Calibration | None


class MeasuredProgram:
    """A cell, running and stamped. Without inputs it is a user's own program, which brings them."""

    def __init__(
        self, backend: Backend, asked: Prepare, own: ProgramRequest, inputs: Inputs | None, ledger: PhaseLedger
    ) -> None:
        self._backend = backend
        self._asked = asked
        self._cell = own.cell
        self._slowdown_pct = own.slowdown_pct
        self._inputs = inputs
        self.ledger = ledger
        self._steps_done = 0
        self._shortest_ns: float | None = None
        self._output: Output = None

    def prepare(self, timing: Timing) -> PreparedProgram:
        """Build, trace, compile and make the first step; the framework's own exceptions pass."""
        self._timing = timing
        with self.ledger.phase("build"):
            self._build()
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
        self._steps_done = 1
        self._check(first_ns)
        self._compiled_before = self._program.compilations()
        self._stepping: Stepping = self._program
        used = None if self._inputs is None else self._inputs.used
        return PreparedProgram(phases=self.ledger.take(), data=used, first_step_ns=int(first_ns[0]))

    def warm_up(self) -> WarmedUp:
        """Run the warm-up; the pace of its last steps decides how many steps the first block has."""
        stamps, plan = clock.stamps(STEPS_MAX + 1, self._timing.source), self._asked.plan
        self._last_ns: StepTimes
        with self.ledger.phase("warmup"):
            self._last_ns, self._output = run_until(
                self._program, self._batches, plan.warmup_s, plan.warmup_steps, stamps, self._timing.calibration
            )
        self._steps_done += len(self._last_ns)
        self._check(self._last_ns)
        if self._slowdown_pct:
            pace_ns = float(np.median(self._last_ns))
            self._stepping = Planted(self._program, round(pace_ns * self._slowdown_pct / 100))
        (phase,) = self.ledger.take()
        return WarmedUp(phase=phase, step_ns=self._last_ns.tolist())

    def block(self, seconds: float, counters: EdgeCounters, *, by_time: bool = False) -> BlockDone:
        """Run one block. Counters are read before its first step and after its last."""
        steps = BlockSteps(0, STEPS_MAX) if by_time else block_steps(self._last_ns, self._asked.plan.lead_in_s, seconds)
        stamps = clock.stamps(steps.lead_in + steps.timed + 1, self._timing.source)
        running = self._stepping, self._batches
        self.ledger.current = "energy" if by_time else "steady"
        planted_before = self._planted_ns
        before = counters.read()
        begin_ns = clock.now_ns()
        if by_time:
            self._last_ns, self._output = run_until(*running, seconds, 1, stamps, self._timing.calibration)
        else:
            self._last_ns, self._output = run_steps(
                *running, steps.lead_in + steps.timed, stamps, self._timing.calibration
            )
        span_ns = clock.now_ns() - begin_ns
        after = counters.read()
        self._steps_done += len(self._last_ns)
        timed_ns = self._last_ns[steps.lead_in :]
        if timed_ns.min() <= 0:
            raise LaunchError("a step took no time by this clock: too coarse for steps this short; use larger batches")
        self._check(timed_ns)
        self._shortest_ns = min(self._shortest_ns or np.inf, float(np.median(timed_ns)))
        found = {
            name: None if first is None or last is None else last - first
            for name, first, last in zip(counters.names, before, after, strict=True)
        }
        if self._slowdown_pct:
            found[PLANTED_NS] = self._planted_ns - planted_before
        return BlockDone(
            begin_ns=begin_ns,
            span_ns=span_ns,
            lead_in=steps.lead_in,
            step_ns=self._last_ns.tolist(),
            counters=found,
        )

    def finish(self, certificate: Certificate) -> FinishedProgram:
        """Look at what was computed; in a proving launch, score the test split and record the parity losses."""
        recompiles = _since(self._compiled_before, self._program.compilations())
        values = self._program.to_host(self._output)
        if not np.isfinite(values).all():
            # Nonsense is not timed: a network that diverged skips work on some hardware.
            failure = Failure(phase="steady", reason=reason("output_not_finite"))
            return FinishedProgram(recompiles=recompiles, marks=[], phases=[], failure=failure)
        evaluation = parity = None
        if self._asked.prove and self._inputs is not None and not isinstance(self._program, OwnProgram):
            if self._cell.task == "train":
                with self.ledger.phase("evaluate"):
                    evaluation = evaluate(self._program, self._workload, self._inputs, self._steps_done)
            with self.ledger.phase("parity"):
                parity = record_parity(self._backend, self._workload, self._cell, self._asked.seed, self._inputs.pool)
        return FinishedProgram(
            recompiles=recompiles,
            marks=self._marks(certificate),
            phases=self.ledger.take(),
            parity=parity,
            evaluation=evaluation,
        )

    def _build(self) -> None:
        self._program: Program | OwnProgram
        if self._inputs is None:
            self._program = own = OwnProgram(self._asked.sources[self._cell.workload], self._cell)
            self._batches = own.batches
            return
        self._workload = workload(self._cell.workload, self._cell.parameters)
        weights = initial_weights(self._workload, self._asked.seed)
        self._program = built = self._backend.build(self._workload, self._cell, weights, self._asked.seed)
        self._batches = feed(built, self._inputs.pool, self._cell)

    def _check(self, step_ns: StepTimes) -> None:
        if isinstance(self._program, OwnProgram):
            self._program.check(self._output, step_ns)

    @property
    def _planted_ns(self) -> int:
        return self._stepping.planted_ns if isinstance(self._stepping, Planted) else 0

    def _marks(self, certificate: Certificate) -> list[Reason]:
        if self._shortest_ns is not None and self._shortest_ns < certificate.shortest_step_ns:
            return [
                reason(
                    "step_too_short_for_clock",
                    step_ns=round(self._shortest_ns),
                    shortest_ns=certificate.shortest_step_ns,
                )
            ]
        return []


def _since(before: Compilations, after: Compilations) -> Compilations:
    if before.count is None or after.count is None:
        return after
    return Compilations(count=after.count - before.count, graph_breaks=after.graph_breaks)
