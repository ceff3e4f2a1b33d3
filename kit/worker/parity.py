"""The parity losses: the first steps of SGD from the seed's weights and batches, dropout off.

Two cells whose losses agree ran the same arithmetic; the comparison itself is `kit.compare.parity`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kit.backends.protocol import Backend, HostBatch
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.schema import LaunchPart, Parity
from kit.worker.inputs import Inputs
from kit.workloads.parity_proof import PARITY_STEPS, parity_form
from kit.workloads.seeded_arrays import initial_weights, pool_sha256, weights_sha256
from kit.workloads.workload import Workload


def record_parity(backend: Backend, inputs: Inputs, cell: Cell, seed: int) -> LaunchPart:
    """Run `PARITY_STEPS` steps of `cell`, which is small, on a fresh program; return their losses and what ran.

    Losses are of this rank's part of each batch, or of the whole of it.

    Raises:
        KitError: a loss is not finite.
    """
    workload, pool = inputs.workload, inputs.pool
    weights = initial_weights(workload, seed)
    program = backend.build(parity_form(workload), cell, weights, seed)
    program.trace()
    program.compile()
    whole = [pool[index % len(pool)] for index in range(PARITY_STEPS)]
    batches = [HostBatch(batch.inputs[: cell.batch], batch.targets[: cell.batch]) for batch in whole]
    losses: list[float] = []
    for batch in map(inputs.part, batches):
        output = program.step(program.put(batch) if cell.feed == "device" else batch)
        program.synchronize()
        values = program.to_host(output)
        losses.append(float(values) if values.ndim == 0 else _loss_of(workload, values, batch))
        if not math.isfinite(losses[-1]):
            raise KitError(f"parity check: the loss is {losses[-1]} at step {len(losses) - 1}; check the learning rate")
    parity = Parity(losses=losses, weights_sha256=weights_sha256(weights), batches_sha256=pool_sha256(batches))
    return LaunchPart(parity=parity, kernels=program.kernels())


def _loss_of(workload: Workload, outputs: NDArray[np.float32], batch: HostBatch) -> float:
    """Return the workload's loss of what a forward pass gave, in float64. Outputs (batch, …)."""
    if workload.loss == "reconstruction":
        return float(np.square(outputs.astype(np.float64) - batch.inputs).mean())
    logits = outputs.astype(np.float64)
    target_logits = logits[np.arange(len(logits)), batch.targets]
    return float((np.logaddexp.reduce(logits, axis=1) - target_logits).mean())
