"""A fit: whole epochs over the training split with the cell's own feed, or the first part of them, and their score."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import ceil

import numpy as np
from msgspec.structs import replace

from kit.backends.protocol import DeviceBatch, Program
from kit.clock import now_ns
from kit.profile.cell import Feed
from kit.profile.fields import reason
from kit.profile.schema import SYNTHETIC, Fit
from kit.worker.inputs import Inputs
from kit.workloads.seeded_arrays import Epochs, scoring_batches

# Samples of a batch that is scored, at most: its activations fit beside any cell's own.
SCORING_BATCH = 500


class FitFeed:
    """The batches of a fit, epoch after epoch: resident ones, or each gathered when its step takes it.

    Attributes:
        program: that is fitted.
    """

    program: Program

    def __init__(self, epochs: Epochs, feed: Feed) -> None:
        self._epochs, self._feed = epochs, feed
        self._resident: list[DeviceBatch] = []
        self._epoch: Iterator[int] = iter(())
        self._left, self._number = 0, 0

    def hold(self, program: Program) -> None:
        """Take the program; under feed "device", make all batches resident."""
        self.program = program
        if self._feed == "device":
            self._resident = [program.put(self._epochs.host_batch(index)) for index in range(self._epochs.steps)]

    def batches(self, count: int) -> Iterator[DeviceBatch]:
        """Return the next `count` batches, which end with their epoch at the latest; its order is drawn here."""
        if not self._left:
            self._epoch, self._left = iter(self._epochs.order(self._number)), self._epochs.steps
            self._number += 1
        self._left -= count
        indices = islice(self._epoch, count)
        if self._feed == "device":
            return (self._resident[index] for index in indices)
        return map(self._epochs.host_batch, indices)

    def give_back(self, count: int) -> None:
        """Take that the last `count` batches of those that were returned have not been taken: they come next."""
        self._left += count


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
