"""What a step computes, moves and keeps at least: it follows from the layers, the same for every framework.

FLOPs   2 a multiply-add of matrix products, convolutions and attention; elementwise work is not counted.
        train: forward, and twice that backward, less what the first layer's input gradient would take: nobody wants it.
bytes   every array once for each time that it must be read or written:
        infer  weights and input read, each layer's output written and read
        train  weights, gradients and optimizer state read and written; outputs and their gradients, too; input read
"""

from __future__ import annotations

import math
from typing import NamedTuple

from kit.profile.cell import TASKS, Task
from kit.workloads.workload import STATES, DecoderBlock, Products, TiedLogits, Workload

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
    trains = TASKS[task].trains
    flops = least = 0.0
    weights = outputs = 0
    is_first = True
    for placed in workload.placed_layers():
        products = placed.layer.products(placed.input_shape)
        if products is None:
            return None
        if task == "decode":
            tokens = placed.input_shape[0]  # of one: of attention its products with the whole cache
            products = Products(products.with_input // tokens, products.others // tokens)
        elif isinstance(placed.layer, TiedLogits) and not trains:
            products = Products(products.total // workload.input_shape[0])  # of the last token alone
        # Forward; backward the gradient of the one factor, and of the other.
        times = 1 if not trains else 2 if is_first else 3
        of_layer = 2.0 * batch * (times * products.with_input + (3 if trains else 1) * products.others)
        flops += of_layer
        least += of_layer * (1 - (1 - 1 / WINOGRAD) * products.winograd / max(1, products.total))
        is_first = is_first and not placed.weights
        weights += sum(math.prod(weight.shape) for weight in placed.weights.values())
        if placed.weights or products.total:
            # What is left of all tokens: the one of a step, or the last one's logits.
            is_one = task == "decode" or (isinstance(placed.layer, TiedLogits) and not trains)
            tokens = workload.input_shape[0] if is_one else 1
            outputs += math.prod(placed.layer.output_shape(placed.input_shape)) // tokens
    activation_b = BFLOAT16_B if precision == "bfloat16" else FLOAT32_B
    moved_b = batch * (math.prod(workload.input_shape) * FLOAT32_B + (4 if trains else 2) * outputs * activation_b)
    if task == "decode":
        moved_b = batch * 2 * outputs * activation_b + cache_b(workload, batch, precision)  # the cache is read
    states = 2 * (2 + STATES[type(workload.optimizer)]) if trains else 1
    return Cost(flops, least, float(moved_b + states * weights * _weight_b(workload, task, precision)))


def _weight_b(workload: Workload, task: Task, precision: str) -> int:
    """Return the bytes of a weight: networks of tokens answer in bfloat16 with weights of that type."""
    answers = workload.takes_tokens and not TASKS[task].trains
    return BFLOAT16_B if answers and precision == "bfloat16" else FLOAT32_B


def cache_b(workload: Workload, batch: int, precision: str) -> int:
    """Return the bytes of the keys and values of all tokens."""
    activation_b = BFLOAT16_B if precision == "bfloat16" else FLOAT32_B
    blocks = [placed for placed in workload.placed_layers() if isinstance(placed.layer, DecoderBlock)]
    return batch * sum(2 * math.prod(placed.input_shape) * activation_b for placed in blocks)


def least_memory_b(workload: Workload, task: Task, batch: int, precision: str) -> int:
    """Return the fewest bytes that a program keeps on its device, whatever its framework.

    train   weights, optimizer state, and the larger of gradients and what each layer's parts make of the batch for the
            backward pass: a gradient comes as what it was made from goes
    infer   weights, the largest output of a layer, and the keys and values
    decode  weights and the cache
    """
    activation_b = BFLOAT16_B if precision == "bfloat16" else FLOAT32_B
    placed = list(workload.placed_layers())
    weights = sum(math.prod(weight.shape) for each in placed for weight in each.weights.values())
    weights_b = weights * _weight_b(workload, task, precision)
    if TASKS[task].trains:
        kept_b = batch * sum(each.layer.kept(each.input_shape) for each in placed) * activation_b
        return (1 + STATES[type(workload.optimizer)]) * weights_b + max(weights_b, kept_b)
    if task == "decode":
        return weights_b + cache_b(workload, batch, precision)
    # Of the logits of a network of tokens only the last token's are made.
    made = [math.prod(each.layer.output_shape(each.input_shape)) for each in placed if each.weights]
    return weights_b + batch * max(made) * activation_b + cache_b(workload, batch, precision)
