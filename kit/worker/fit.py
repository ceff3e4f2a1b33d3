"""A fit: whole epochs over the training split with the cell's own feed, or a part of them, scored at the end.

    reference │ stretch of the fit │ reference │ stretch … │ reference │ score

Between stretches a second program of the cell runs a few steps on resident batches: what those would have taken,
beside what the fit took, is what its input pipeline costs, whatever the machine's speed does meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import ceil

import numpy as np
from msgspec.structs import replace

from kit import clock
from kit.backends.protocol import DeviceBatch, Program
from kit.clock import Stamps, now_ns
from kit.errors import KitError
from kit.profile.launch import SYNTHETIC, Fit
from kit.profile.reason import reason
from kit.worker.inputs import Inputs
from kit.worker.ledger import PhaseLedger
from kit.worker.measured_program import HOST_DEVICE, MeasuredWorkload, Ran, raised
from kit.worker.messages import Done, ProgramRequest
from kit.worker.step_loop import STEPS_MAX, run_steps, run_until
from kit.workloads.data.batches import Epochs, scoring_batches

# Long enough for its own lead-in not to count, short against a stretch of the fit.
REFERENCE_S = 0.25
# A reference has three steps or more. Where they are long, stretches are so many times as long as it was: else the
# references would cost more than the fit.
STRETCH_REFERENCES = 4
# Samples of a batch that is scored, at most: its activations fit beside any cell's own.
SCORING_BATCH = 500


class MeasuredFit(MeasuredWorkload):
    """A cell of task `fit`: its blocks are stretches of the fit."""

    PHASE_BY_TIME = "steady"

    def build(self) -> Done:
        """Build both programs; the first step is the first update of the fit."""
        asked, inputs = self._shared.asked, self._inputs
        asked = replace(asked, seed=asked.seed + self._repeat)
        self._cell = replace(self._cell, task="train")
        self._shared = self._shared._replace(asked=asked)
        self._epochs = Epochs(inputs.workload, inputs.data, inputs.samples("train"), self._cell.batch, seed=asked.seed)
        whole = asked.plan.epochs * self._epochs.steps
        self._left = self.updates = min(whole, asked.plan.fit_steps or whole)
        if self.updates == 1:
            raise KitError(
                "this fit has one update, and the first update is never timed; give a smaller batch, or more fit_steps"
            )
        self._resident: list[DeviceBatch] = []
        self._reference_ns: list[float] = []
        # Its phases are nobody's: what it costs stands in no launch.
        resident = ProgramRequest(cell=replace(self._cell, feed="device"))
        self._reference = MeasuredWorkload(self._shared, resident, PhaseLedger(lambda *_: None), inputs)
        self._reference.build()
        done = super().build()
        self._left -= 1
        return done

    def warm_up(self) -> Done:
        """Warm the reference up: a fit begins cold, as its users' do."""
        return self._reference.warm_up()

    def block(self, seconds: float, *, cycle: int = 0, by_time: bool = False) -> Done:  # noqa: ARG002
        """Run the reference, then the fit until `seconds`, or several references' time, are over or its epoch ends."""
        reference_s = self._refer()
        if self._done % self._epochs.steps == 0:
            self._batches = self._epoch()
        seconds = self._shared.ranks.agree(max(seconds, STRETCH_REFERENCES * reference_s))
        done = super().block(seconds, cycle=cycle, by_time=True)
        self._left -= done.part.blocks.steps[0]
        if not self._left:
            self._refer()
        return replace(done, left=self._left)

    def conclude(self) -> Done:
        """Score the test split; of a part of the epochs the pass over it is timed alone."""
        done = super().conclude()
        if done.part.failure is not None:
            return done
        fit = Fit(
            epochs=self._shared.asked.plan.epochs,
            updates=self._done,
            epoch_updates=self._epochs.steps,
            reference_ns=self._reference_ns,
            test_ns=None,
        )
        with self._ledger.phase("evaluate"):
            try:
                done.part.fit = scored(fit, self._fitted, self._inputs)
            except Exception as error:
                done.part.fit = replace(fit, reason=raised(error))
        done.part.phases += self._ledger.take()
        return done

    def _by_time(self, seconds: float) -> Callable[[], Ran]:
        """Return what runs a stretch of the fit: on an accelerator with one wait, at its end."""
        if self._cell.device == HOST_DEVICE:
            stamps = clock.stamps(STEPS_MAX + 1, self._shared.source)
            return lambda: self._stamped(seconds, stamps)
        steps = self._stretch(seconds)
        return lambda: self._pipelined(steps, 0.0)

    def _stretch(self, seconds: float) -> int:
        """Return how many steps fill `seconds` at the reference's pace, an epoch's end at most."""
        in_epoch = min(self._left, self._epochs.steps - self._done % self._epochs.steps)
        return int(self._shared.ranks.agree(max(1, min(in_epoch, round(seconds * 1e9 / self._reference_ns[-1])))))

    def _stamped(self, seconds: float, stamps: Stamps) -> Ran:
        running, ranks = (self._stepping, self._batches), self._shared.ranks
        if ranks.size == 1:
            step_ns, self._output = run_until(*running, seconds, 1, stamps, self._shared.calibration, ranks.agree)
        else:  # no rank waits for another's clock between steps that count
            step_ns, self._output = run_steps(*running, self._stretch(seconds), stamps, self._shared.calibration)
        return Ran(0, step_ns, None)

    def _device_events(self) -> None:
        """None: further steps would be further updates of what is scored."""

    def _feed(self, program: Program) -> Iterator[DeviceBatch]:
        self._fitted = program
        if self._cell.feed == "device":
            batches = map(self._epochs.host_batch, range(self._epochs.steps))
            self._resident = [program.put(self._inputs.part(batch)) for batch in batches]
        return self._epoch()

    def _epoch(self) -> Iterator[DeviceBatch]:
        """Return the batches of the next epoch: resident ones, or each gathered when its step wants it."""
        epochs = self._epochs
        order = islice(epochs.order(self._done // epochs.steps), self._left)
        if self._cell.feed == "device":
            return (self._resident[place] for place in order)
        return (self._inputs.part(epochs.host_batch(place)) for place in order)

    @property
    def _done(self) -> int:
        """Updates that it has made."""
        return self.updates - self._left

    def _refer(self) -> float:
        """Run the reference once; return how long it took, in seconds."""
        blocks = self._reference.block(REFERENCE_S).part.blocks
        self._reference_ns.append(blocks.duration_ns[0] / blocks.steps[0])
        return blocks.span_ns[0] / 1e9


def scored(fit: Fit, program: Program, inputs: Inputs) -> Fit:
    """Predict every test sample, dropout off, and count; of a part of the epochs only the time is kept."""
    samples = inputs.samples("test")
    total, workload = len(samples.targets), inputs.workload
    batches = scoring_batches(workload, inputs.data, samples, ceil(total / ceil(total / SCORING_BATCH)))
    program.predict(batches[0])  # what is compiled in it is not timed
    begin_ns = now_ns()
    outputs = np.concatenate([program.predict(batch) for batch in batches])[:total]
    fit = replace(fit, test_ns=now_ns() - begin_ns)
    if inputs.used.name == SYNTHETIC:
        return replace(fit, reason=reason("synthetic_data"))
    if not np.isfinite(outputs).all():
        return replace(fit, reason=reason("output_not_finite"))
    if fit.is_part:
        return replace(fit, reason=reason("part_of_a_fit"))
    if workload.loss == "reconstruction":
        wanted = np.concatenate([batch.inputs for batch in batches])[:total]
        return replace(fit, mean_squared_error=float(np.mean((outputs - wanted) ** 2, dtype=np.float64)))
    classes = workload.classes
    pairs = samples.targets.astype(np.int64) * classes + outputs.argmax(1)
    confusion = np.bincount(pairs, minlength=classes**2).reshape(classes, classes)  # [true][predicted]
    return replace(fit, confusion=confusion.tolist())
