"""What the parity proof runs, and what it holds the backends to."""

from __future__ import annotations

import msgspec

from kit.profile.cell import FRAMEWORKS_OWN, Cell
from kit.workloads.step_cost import cost_of
from kit.workloads.workload import SGD, Bottleneck, Workload

# Losses recorded per launch: long enough for a wrong gradient to show. Of 36 pairs of correct programs 7 differed by
# more than the tolerance within 16 losses, 1 within 8: updates enlarge rounding (docs/trust/measurements.md).
# Older profiles have 20, under the workload's own optimizer: losses of another number are not compared.
PARITY_STEPS = 8

# Samples in a parity step, whatever the cell's batch (at most the cell's own). A ReLU whose input is zero to within
# rounding may open in one framework and stay shut in another, and the chance grows with the batch.
PARITY_BATCH = 16

# Floating-point operations of a parity step at most, where that leaves two samples: two CPUs take ten seconds for it.
PARITY_FLOPS = 4e11
PARITY_BATCH_MIN = 2

# The one optimizer whose formula is the same in all frameworks. At this rate the losses of all networks move, and none
# diverges.
PARITY_OPTIMIZER = SGD(learning_rate=0.05)
# Batch norm enlarges rounding in every layer: at 0.05 the frameworks' losses of `resnet50` were 5e-3 apart after seven
# steps, at this rate 1.4e-7 after eight.
BATCH_NORM_OPTIMIZER = SGD(learning_rate=0.005)

# Largest relative difference between two backends' losses at any of these steps. Measured between all pairs of the
# three over 8 steps: at most 4.6e-7 (float32 keeps 1.2e-7). The smallest error planted, a learning rate 1 % off in
# `cnn_small`, moves a loss by 3e-4, GELU by its tanh form by 4e-4, a wrong layout by 1e-3 and more.
PARITY_TOLERANCE = 1e-5

# Times that tolerance in other precisions. bfloat16 keeps 4e-3, and frameworks round in other places: under RMSprop
# `mlp` differed by up to 5.5e-2, all others by at most 9.5e-3. This catches a wrong kernel; float32 is where formulas
# are proved. tf32 keeps more and was not measured; an accelerator's default is one of the two.
TOLERANCE_FACTORS = {"bfloat16": 1e4, "tf32": 1e4, FRAMEWORKS_OWN: 1e4}

# Times that tolerance in float32, of cells on unlike hardware, as CPU and GPU. cuDNN chooses Winograd's and FFT
# algorithms for convolutions, whose float32 results lie up to 1e-4 and more from the CPU's: 1.6e-4 of a 5 x 5 layer on
# an RTX 3090 (tensorflow/tensorflow issue 117663); PyTorch and Theano test them with wider tolerances for it
# (pytorch/pytorch 129796, Theano/Theano 5932: 1e-4). Updates carry that on. Formulas are proved on one device: in each
# run all frameworks are held to PARITY_TOLERANCE.
UNLIKE_HARDWARE_FACTOR = 1e2


def parity_form(workload: Workload) -> Workload:
    """Return the network that the proof runs: without dropout, trained by `PARITY_OPTIMIZER`."""
    has_norms = any(isinstance(layer, Bottleneck) for layer in workload.layers)
    optimizer = BATCH_NORM_OPTIMIZER if has_norms else PARITY_OPTIMIZER
    return msgspec.structs.replace(workload.without_dropout(), optimizer=optimizer)


def parity_batch(workload: Workload, cell: Cell) -> int:
    """Return the samples of a parity step of a cell, a multiple of its devices."""
    most = PARITY_BATCH
    if (sample_cost := cost_of(workload, cell.task, 1, cell.precision)) is not None:
        most = max(PARITY_BATCH_MIN, min(most, int(PARITY_FLOPS / max(1.0, sample_cost.flops))))
    return min(max(most // cell.devices, 1) * cell.devices, cell.batch)


def parity_tolerance(precision: str, *, like_hardware: bool = True) -> float:
    """Return the largest relative difference of losses that are called equal, of cells in this precision."""
    factor = TOLERANCE_FACTORS.get(precision, 1.0)
    return PARITY_TOLERANCE * (factor if like_hardware else max(factor, UNLIKE_HARDWARE_FACTOR))
