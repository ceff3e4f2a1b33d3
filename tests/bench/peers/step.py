"""The step that all tools of `bench_peers.py` time: PRODUCTS products of two small matrices, one after the other.

As a program of Steadykit it is `program`; another tool calls `step`.
"""

import os

import numpy as np

SIZE = 64
PRODUCTS = int(os.environ.get("PRODUCTS", "200"))
_draw = np.random.default_rng(0)
# Orthogonal: products neither grow nor vanish.
_matrix, _ = np.linalg.qr(_draw.standard_normal((SIZE, SIZE)))
_first = _draw.standard_normal((SIZE, SIZE))


def step():
    """Return a number that needs all products."""
    product = _first
    for _ in range(PRODUCTS):
        product = _matrix @ product
    return float(product[0, 0])


def program(batch, device):
    """Return the step."""
    return step
