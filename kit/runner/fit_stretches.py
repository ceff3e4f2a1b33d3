"""A fit in a round: its updates, the stretches that it runs in, and the reference that runs between them.

build reference, fit │ warm up reference │ reference │ stretch │ reference │ stretch │ … │ reference │ score

The reference trains the same program on resident batches: what a fit takes longer, its input takes. A fit begins cold,
so its reference warms up in its place. A stretch ends for progress, an interrupt and the reference only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from kit.profile.cell import Cell
from kit.profile.fields import reason
from kit.profile.schema import Fit, StepPlan
from kit.profile.store import Steps
from kit.runner.warm_up_and_blocks import NO_STEPS, Groups, Pace, block_segments, filling, planned
from kit.runner.worker_processes import WorkerFailed
from kit.worker.messages import Measured, Segment

STRETCH_S = 1.0
# A reference is long enough for its own lead-in not to count, and short against a stretch. Where its steps are long,
# stretches are so many times as long as it was, or the references would cost more than the fit.
REFERENCE_S, STRETCH_REFERENCES = 0.25, 4
# What stretches take with the references between them.
WITH_REFERENCES = 1 + REFERENCE_S / STRETCH_S
# A fit takes at least this, besides its reference's warm-up: two builds, some stretches, two test passes. One of 50
# updates of mlp took 3 s, the one of cnn 8 (TensorFlow) to 25 s (JAX).
FIT_LEAST_S = 3.0

# Runs segments of a program; returns the answer, and the waits of each segment.
RunSegments = Callable[[list[Segment]], tuple[Measured, list[Steps]]]


class Stretch(NamedTuple):
    """A stretch of a fit that has run.

    Attributes:
        measured: its edges.
        step_ns: of each step that was waited for by itself, shape (steps,) or (0,).
        groups: its steps, where only the last was waited for.
        planned: steps that it would have, had it not been cut.
    """

    measured: Measured
    step_ns: Steps
    groups: Groups | None
    planned: int


class FitInRound:
    """The fit of a cell, as far as it has come.

    Args:
        cell: that is fitted.
        plan: how many epochs, or steps, it has.
        epoch_updates: of an epoch.

    Attributes:
        record: what its launch will know of it.

    Raises:
        WorkerFailed: no step of it would be timed.
    """

    def __init__(self, cell: Cell, plan: StepPlan, epoch_updates: int) -> None:
        whole = plan.epochs * epoch_updates
        self._updates = min(whole, plan.fit_steps or whole)
        if self._updates == 1:
            what = (
                "this fit has one update, and the first update is never timed; give a smaller batch, or more fit_steps"
            )
            raise WorkerFailed(reason("refused", message=what), goes_on=True)
        self.record = Fit(epochs=plan.epochs, updates=1, epoch_updates=epoch_updates, reference_ns=[], test_ns=None)
        self.reference_cell = replace(cell, task="train", feed="device")
        self._epoch_updates, self._lead_in_s = epoch_updates, plan.lead_in_s
        self._is_waited = cell.device == "cpu"  # each step of a stretch, or only the last
        self._step_ns = self._reference_s = 0.0  # of the stretch before; of the reference before

    @property
    def left(self) -> int:
        """How many updates it still has to make."""
        return self._updates - self.record.updates

    def refer(self, pace: Pace, run: RunSegments) -> Pace:
        """Let `run` run the reference, whose pace is `pace`; return its pace after that."""
        segments = block_segments(pace, REFERENCE_S, self._lead_in_s)
        measured, waits_ns = run(segments)
        self._reference_s = measured.span_ns / 1e9
        step_ns = float(waits_ns[-1].mean()) / segments[-1].per_wait
        # Before its first stretch the reference shows its pace.
        self._step_ns = self._step_ns or step_ns
        self.record = replace(self.record, reference_ns=[*self.record.reference_ns, step_ns])
        return pace.after(segments, waits_ns)

    def stretch(self, run: RunSegments) -> Stretch:
        """Let `run` run the next stretch, which ends with its epoch at the latest. What a cut one leaves comes next."""
        in_epoch = self._epoch_updates - self.record.updates % self._epoch_updates
        stretch_s = max(STRETCH_S, STRETCH_REFERENCES * self._reference_s)
        asked = min(filling(stretch_s, self._step_ns), in_epoch, self.left)
        waits, per_wait = (asked, 1) if self._is_waited else (1, asked)
        is_first = self.record.updates == 1
        measured, (waits_ns,) = run([planned(waits, self._step_ns, per_wait)])
        steps, duration_ns = waits_ns.size * per_wait, int(waits_ns.sum())
        self.record = replace(self.record, updates=self.record.updates + steps)
        self._step_ns = duration_ns / steps
        # The first plan is by the pace of the reference, which has no input: a fit that reads its data may be slower.
        planned_steps = steps if is_first else asked
        if self._is_waited:
            return Stretch(measured, waits_ns, None, planned_steps)
        return Stretch(measured, NO_STEPS, Groups(steps, steps, duration_ns), planned_steps)
