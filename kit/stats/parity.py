"""Whether programs that should compute the same thing do: their losses, step by step, and who is the odd one out.

a ── b      of a, b and c, a and b agree and c is the odd one out; of two that differ, neither has a majority
   c
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np


class Agreement(NamedTuple):
    """What the others' losses say of one program's."""

    agrees: bool | None  # None: there is no other
    max_relative_difference: float | None  # to those it agrees with, else to all; None: none, or a loss is not finite


def max_relative_difference(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return the largest |a - b| / max(|a|, |b|) over the steps, as many of both; None if a loss is not finite."""
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
        return None
    scale = np.maximum(np.abs(first), np.abs(second))
    relative = np.divide(np.abs(first - second), scale, out=np.zeros_like(first), where=scale > 0)
    return float(np.max(relative, initial=0.0))


def agreeing(losses_by_key: Mapping[str, Sequence[float]], tolerance: float) -> dict[str, Agreement]:
    """Judge each program against the others: it agrees if more than half of all, itself counted, have its losses.

    Args:
        losses_by_key: as many losses of each program, from the same weights and batches.
        tolerance: largest relative difference of losses that are called equal.
    """
    return {key: _judge(key, losses_by_key, tolerance) for key in losses_by_key}


def _judge(key: str, losses_by_key: Mapping[str, Sequence[float]], tolerance: float) -> Agreement:
    losses = losses_by_key[key]
    all_of_them = [max_relative_difference(losses, others) for other, others in losses_by_key.items() if other != key]
    if not all_of_them:
        return Agreement(None, None)
    finite = [value for value in all_of_them if value is not None]
    equal = [value for value in finite if value <= tolerance]
    if 2 * (len(equal) + 1) > len(losses_by_key):
        return Agreement(True, max(equal))
    return Agreement(False, max(finite) if len(finite) == len(all_of_them) else None)
