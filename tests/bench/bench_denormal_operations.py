"""What PyTorch's operations on a CPU take with denormal numbers: the ratio to the same operation with normal ones.

    python tests/bench/bench_denormal_operations.py

On one thread; each operation with numbers of 1e-20 and of 1e-40 in turns. Prints the median ratio, and those that a
tenth of the pairs lie below and above.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

PAIRS, ELEMENTS, SIZE = 40, 1 << 18, 256


def product(fill: float) -> Callable[[], object]:
    """Return the product of two matrices, one of these numbers."""
    left, right = torch.full((SIZE, SIZE), fill), torch.full((SIZE, SIZE), 0.9)
    return lambda: left @ right


def scaled(fill: float) -> Callable[[], object]:
    """Return the product with a number."""
    values = torch.full((ELEMENTS,), fill)
    return lambda: values * 0.9


def update(fill: float) -> Callable[[], object]:
    """Return the update of an optimizer's running mean."""
    mean, gradient = torch.full((ELEMENTS,), fill), torch.full((ELEMENTS,), fill)
    return lambda: mean.mul_(0.9999).addcmul_(gradient, gradient, value=0.1)


def root(fill: float) -> Callable[[], object]:
    """Return the square root."""
    values = torch.full((ELEMENTS,), fill)
    return lambda: torch.sqrt(values)


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    for operation in (product, scaled, update, root):
        normal, denormal = operation(1e-20), operation(1e-40)
        normal(), denormal()
        ratios = []
        for _ in range(PAIRS):
            begin = time.perf_counter()
            normal()
            middle = time.perf_counter()
            denormal()
            ratios.append((time.perf_counter() - middle) / (middle - begin))
        low, *_, high = statistics.quantiles(ratios, n=10)
        print(f"{operation.__name__:8} {statistics.median(ratios):6.1f} × [{low:.1f}, {high:.1f}]")


if __name__ == "__main__":
    main()
