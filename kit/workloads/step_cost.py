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
from kit.workloads.workload import DecoderBlock, PlacedLayer, Products, STATES, TiedLogits, Workload

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
            products = _of_one_token(placed, products)
        elif isinstance(placed.layer, TiedLogits) and not trains:
            products = Products(products.total // workload.input_shape[0])  # of the last token alone
        # Forward; backward the gradient of the one factor, and of the other.
        times = 1 if not trains else 2 if is_first else 3
        of_layer = 2.0 * batch * (times * products.with_input + (3 if trains else 1) * products.others)
        flops += of_layer
        least += of_layer * (1 - (1 - 1 / WINOGRAD) * products.winograd / max(1, products.total))
        is_first = is_first and not placed.weights
        weights += sum(math.prod(weight.shape) for weight in placed.weights.values())
        if placed.weights:
            tokens = workload.input_shape[0] if task == "decode" else 1
            outputs += math.prod(placed.layer.output_shape(placed.input_shape)) // tokens
    activation_b = BFLOAT16_B if precision == "bfloat16" else FLOAT32_B
    moved_b = batch * (math.prod(workload.input_shape) * FLOAT32_B + (4 if trains else 2) * outputs * activation_b)
    if task == "decode":
        moved_b = batch * 2 * outputs * activation_b + cache_b(workload, batch, precision)  # the cache is read
    states = 2 * (2 + STATES[type(workload.optimizer)]) if trains else 1
    return Cost(flops, least, float(moved_b + states * weights * FLOAT32_B))


def _of_one_token(placed: PlacedLayer, products: Products) -> Products:
    """Return the multiply-adds of one token: of attention those with the whole cache."""
    tokens = placed.input_shape[0]
    return Products(products.with_input // tokens, products.others // tokens)


def cache_b(workload: Workload, batch: int, precision: str) -> int:
    """Return the bytes of the keys and values of all tokens."""
    activation_b = BFLOAT16_B if precision == "bfloat16" else FLOAT32_B
    blocks = [placed for placed in workload.placed_layers() if isinstance(placed.layer, DecoderBlock)]
    return batch * sum(2 * math.prod(placed.input_shape) * activation_b for placed in blocks)


def least_memory_b(workload: Workload, task: Task, batch: int, precision: str) -> int:
    """Return the fewest bytes that a program keeps on its device, whatever its framework.

    train   weights, gradients, optimizer state, and what each layer's parts make of the batch for the backward pass
    infer   weights, and the largest of what the layers make of the batch
    decode  weights and the cache
    """
    activation_b = BFLOAT16_B if precision == "bfloat16" else FLOAT32_B
    placed = list(workload.placed_layers())
    weights = sum(math.prod(weight.shape) for each in placed for weight in each.weights.values())
    made = [each.layer.kept(each.input_shape) for each in placed]
    arrays = 2 + STATES[type(workload.optimizer)] if TASKS[task].trains else 1
    if workload.takes_tokens and task == "infer":
        made[-1] //= workload.input_shape[0]  # the logits of the last token alone
    kept = {"decode": 0, "infer": max(made)}.get(task, sum(made))
    cached_b = cache_b(workload, batch, precision) if workload.takes_tokens and not TASKS[task].trains else 0
    return arrays * weights * FLOAT32_B + batch * kept * activation_b + cached_b
