"""A fit: whole epochs over the training split with the cell's own feed, or a part of them, scored at the end.

    reference │ stretch of the fit │ reference │ stretch … │ reference │ score

Between stretches a second program of the cell runs a few steps on resident batches: what those would have taken,
beside what the fit took, is what its input pipeline costs, whatever the machine's speed does meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from kit.backends.protocol import DeviceBatch, Program
from kit.errors import KitError
from kit.profile.launch import Fit
from kit.profile.reason import reason
from kit.sensors.catalog import EdgeCounters
from kit.worker.ledger import PhaseLedger
from kit.worker.measured_program import HOST_DEVICE, MeasuredWorkload, Ran, Timing, raised
from kit.worker.messages import Done, ProgramRequest
from kit.worker.score import Score, score
from kit.workloads.data.batches import Epochs

# Long enough for its own lead-in not to count, short against a stretch of the fit.
REFERENCE_S = 0.25
# A reference has three steps or more. Where they are long, stretches are so many times as long as it was: else the
# references would cost more than the fit.
STRETCH_REFERENCES = 4


class MeasuredFit(MeasuredWorkload):
    """A cell of task `fit`: its blocks are stretches of the fit."""

    PHASE_BY_TIME = "steady"

    def build(self, timing: Timing) -> Done:
        """Build both programs; the first step is the first update of the fit."""
        self._cell = msgspec.structs.replace(self._cell, task="train")
        self._asked = msgspec.structs.replace(self._asked, seed=self._asked.seed + self._repeat)
        inputs, asked = self._inputs, self._asked
        self._epochs = Epochs(inputs.workload, inputs.data, inputs.samples("train"), self._cell.batch, seed=asked.seed)
        whole = asked.plan.epochs * self._epochs.steps
        self._left = self.updates = min(whole, asked.plan.fit_steps or whole)
        if self.updates == 1:
            raise KitError(
                "a fit of one update: its only step is the first, which is not timed; take a smaller batch, or give "
                "fit_steps more"
            )
        self._resident: list[DeviceBatch] = []
        self._reference_ns: list[float] = []
        # Its phases are nobody's: what it costs stands in no launch.
        resident = ProgramRequest(cell=msgspec.structs.replace(self._cell, feed="device"))
        unseen = PhaseLedger(lambda *_: None)
        self._reference = MeasuredWorkload(self._backend, asked, resident, inputs, unseen, self._parities)
        self._reference.build(timing)
        done = super().build(timing)
        self._left -= 1
        return done

    def warm_up(self) -> Done:
        """Warm the reference up: a fit begins cold, as its users' do."""
        return self._reference.warm_up()

    def block(self, seconds: float, counters: EdgeCounters, *, cycle: int = 0, by_time: bool = False) -> Done:  # noqa: ARG002
        """Run the reference, then the fit until `seconds`, or several references' time, are over or its epoch ends."""
        reference_s = self._refer(counters)
        if self._done % self._epochs.steps == 0:
            self._batches = self._epoch()
        done = super().block(max(seconds, STRETCH_REFERENCES * reference_s), counters, cycle=cycle, by_time=True)
        self._left -= done.part.blocks.steps[0]
        if not self._left:
            self._refer(counters)
        return msgspec.structs.replace(done, left=self._left)

    def conclude(self) -> Done:
        """Score the test split; of a part of the epochs the pass over it is timed alone."""
        done = super().conclude()
        if done.part.failure is not None:
            return done
        with self.ledger.phase("evaluate"):
            score = self._score()
        done.part.phases += self.ledger.take()
        done.part.fit = Fit(
            epochs=self._asked.plan.epochs,
            updates=self._done,
            epoch_updates=self._epochs.steps,
            reference_ns=self._reference_ns,
            test_ns=score.test_ns,
            confusion=score.confusion,
            mean_squared_error=score.mean_squared_error,
            reason=score.reason,
        )
        return done

    def _by_time(self, seconds: float) -> Callable[[], Ran]:
        """Return what runs a stretch of the fit: on an accelerator with one wait, at its end."""
        if self._cell.device == HOST_DEVICE:
            return super()._by_time(seconds)
        in_epoch = min(self._left, self._epochs.steps - self._done % self._epochs.steps)
        steps = max(1, min(in_epoch, round(seconds * 1e9 / self._reference_ns[-1])))
        return lambda: self._pipelined(steps, 0.0)

    def _device_events(self) -> None:
        """None: further steps would be further updates of what is scored."""

    def _score(self) -> Score:
        try:
            whole = score(self._fitted, self._inputs)
        except Exception as error:
            return Score(reason=raised(error))
        if whole.reason is None and self.updates < self._asked.plan.epochs * self._epochs.steps:
            return Score(whole.test_ns, reason=reason("part_of_a_fit"))
        return whole

    def _feed(self, program: Program) -> Iterator[DeviceBatch]:
        self._fitted = program
        if self._cell.feed == "device":
            self._resident = [program.put(self._epochs.host_batch(place)) for place in range(self._epochs.steps)]
        return self._epoch()

    def _epoch(self) -> Iterator[DeviceBatch]:
        """Return the batches of the next epoch: resident ones, or each gathered when its step wants it."""
        epochs = self._epochs
        order = islice(epochs.order(self._done // epochs.steps), self._left)
        if self._cell.feed == "device":
            return (self._resident[place] for place in order)
        return (epochs.host_batch(place) for place in order)

    @property
    def _done(self) -> int:
        """Updates that it has made."""
        return self.updates - self._left

    def _refer(self, counters: EdgeCounters) -> float:
        """Run the reference once; return how long it took, in seconds."""
        blocks = self._reference.block(REFERENCE_S, counters).part.blocks
        self._reference_ns.append(blocks.duration_ns[0] / blocks.steps[0])
        return blocks.span_ns[0] / 1e9
