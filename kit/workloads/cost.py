"""What a step of a network computes and moves at least, from its layers: the same for every framework.

FLOPs   2 a multiply-add of matrix products, convolutions and attention; elementwise work is not counted.
        train: forward, and twice that backward, less what the first layer's input gradient would take: nobody wants it.
bytes   every array once for each time that it must be read or written:
        infer  weights and input read, each layer's output written and read
        train  weights, gradients and optimizer state read and written; outputs and their gradients, too; input read
"""

from __future__ import annotations

import math
from typing import NamedTuple

from kit.profile.cell import Task
from kit.workloads.layers import Conv2D
from kit.workloads.optimizers import SGD, Adadelta, Adam, RMSprop
from kit.workloads.workload import Workload

# Arrays of a parameter's size that an optimizer keeps.
STATES = {SGD: 0, RMSprop: 1, Adadelta: 2, Adam: 2}
FLOAT32_B, BFLOAT16_B = 4, 2
# Winograd's F(4x4, 3x3) takes a quarter of a convolution's multiply-adds (Lavin and Gray 2016, "Fast algorithms for
# convolutional neural networks"): cuDNN and oneDNN have it.
WINOGRAD = 4


class Cost(NamedTuple):
    """Of one step."""

    flops: float
    least_flops: float  # with the fewest multiply-adds by which libraries are known to do it
    bytes: float


def cost_of(workload: Workload, task: Task, batch: int, precision: str) -> Cost | None:
    """Return what a step costs; None: a layer of the network does not say."""
    trains = task != "infer"
    flops = least = 0.0
    weights = outputs = 0
    is_first = True
    for placed in workload.placed_layers():
        products = placed.layer.products(placed.input_shape)
        if products is None:
            return None
        # Forward; backward the gradient of the one factor, and of the other.
        times = 1 if not trains else 2 if is_first else 3
        of_layer = 2.0 * batch * (times * products.with_input + (3 if trains else 1) * products.others)
        flops += of_layer
        least += of_layer / (WINOGRAD if isinstance(placed.layer, Conv2D) else 1)
        is_first = is_first and not sum(products)
        weights += sum(math.prod(weight.shape) for weight in placed.weights.values())
        if placed.weights:
            outputs += math.prod(placed.layer.output_shape(placed.input_shape))
    activation_b = BFLOAT16_B if precision == "bfloat16" else FLOAT32_B
    moved_b = batch * (math.prod(workload.input_shape) * FLOAT32_B + (4 if trains else 2) * outputs * activation_b)
    states = 2 * (2 + STATES[type(workload.optimizer)]) if trains else 1
    return Cost(flops, least, float(moved_b + states * weights * FLOAT32_B))
