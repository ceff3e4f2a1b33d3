"""The parity losses: the first steps from the seed's weights and batches, dropout off.

Two cells whose losses agree ran the same arithmetic; the comparison itself is `kit.stats.parity`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kit.backends.protocol import Backend, HostBatch
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.launch import Parity
from kit.workloads.data.batches import pool_sha256
from kit.workloads.parity import PARITY_BATCH, PARITY_STEPS
from kit.workloads.weights import initial_weights, weights_sha256
from kit.workloads.workload import Workload


def parity_cell(cell: Cell) -> Cell:
    """Return the cell that proves for `cell`: its own task, in a small batch."""
    return msgspec.structs.replace(cell, batch=min(PARITY_BATCH, cell.batch))


class Proof(NamedTuple):
    """What a program of the cell's own task, apart from the timed one, has shown."""

    parity: Parity
    kernels: list[str]  # as `kit.backends.protocol.Program` names them


def record_parity(backend: Backend, workload: Workload, cell: Cell, seed: int, pool: list[HostBatch]) -> Proof:
    """Run `PARITY_STEPS` steps of a `parity_cell` on a fresh program and keep their losses, and what ran.

    Raises:
        KitError: a loss is not finite.
    """
    weights = initial_weights(workload, seed)
    program = backend.build(workload.without_dropout(), cell, weights, seed)
    program.trace()
    program.compile()
    whole = [pool[index % len(pool)] for index in range(PARITY_STEPS)]
    batches = [HostBatch(batch.inputs[: cell.batch], batch.targets[: cell.batch]) for batch in whole]
    losses: list[float] = []
    for batch in batches:
        output = program.step(program.put(batch) if cell.feed == "device" else batch)
        program.synchronize()
        values = program.to_host(output)
        losses.append(float(values) if values.ndim == 0 else loss_of(workload, values, batch))
        if not math.isfinite(losses[-1]):
            raise KitError(f"parity loss of step {len(losses) - 1} is {losses[-1]}: this program computes nonsense")
    parity = Parity(losses=losses, weights_sha256=weights_sha256(weights), batches_sha256=pool_sha256(batches))
    return Proof(parity, program.kernels())


def loss_of(workload: Workload, outputs: NDArray[np.float32], batch: HostBatch) -> float:
    """Return the workload's loss of what a forward pass gave, in float64. Outputs (batch, …)."""
    if workload.loss == "reconstruction":
        return float(np.square(outputs.astype(np.float64) - batch.inputs).mean())
    return cross_entropy(outputs, batch.targets)


def cross_entropy(logits: NDArray[np.float32], targets: NDArray[np.int32]) -> float:
    """Return the mean softmax cross-entropy, in float64. Logits (batch, classes), targets (batch,)."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    log_softmax = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-log_softmax[np.arange(len(targets)), targets].mean())
