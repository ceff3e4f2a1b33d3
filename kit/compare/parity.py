"""Whether programs that should compute the same thing do: their losses, step by step, and who is the odd one out.

a ── b      of a, b and c, a and b agree and c is the odd one out; of two that differ, neither has a majority
   c
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kit.profile.schema import CellResult
from kit.workloads.parity_proof import parity_tolerance


class Agreement(NamedTuple):
    """What the others' losses say of one program's."""

    agrees: bool | None  # None: there is no other
    max_relative_difference: float | None  # to those it agrees with, else to all; None: none, or a loss is not finite


def max_relative_difference(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return the largest |a - b| / max(|a|, |b|) over the steps, as many of both; None if a loss is not finite."""
    if not all(map(math.isfinite, (*a, *b))):
        return None
    pairs = zip(a, b, strict=True)
    return max((abs(x - y) / max(abs(x), abs(y)) for x, y in pairs if x != y), default=0.0)


def agreeing(losses_by_key: Mapping[str, Sequence[float]], tolerance: float) -> dict[str, Agreement]:
    """Judge each program against the others: it agrees if more than half of all, itself counted, have its losses.

    Args:
        losses_by_key: as many losses of each program, from the same weights and batches.
        tolerance: largest relative difference of losses that are called equal.
    """
    judged = {}
    for key, losses in losses_by_key.items():
        apart = [max_relative_difference(losses, other) for name, other in losses_by_key.items() if name != key]
        equal = [value for value in apart if value is not None and value <= tolerance]
        if apart and 2 * (len(equal) + 1) > len(losses_by_key):
            judged[key] = Agreement(True, max(equal))
        else:
            largest = None if None in apart else max(filter(None, apart), default=0.0)
            judged[key] = Agreement(False, largest) if apart else Agreement(None, None)
    return judged


def agreements(cells: Iterable[CellResult]) -> dict[str, Agreement]:
    """Return, by key, whether a cell computes what others of its work do; of those whose losses were recorded."""
    works: dict[tuple[object, ...], dict[str, list[float]]] = {}
    for result in cells:
        parity = next((launch.parity for launch in result.launches if launch.parity is not None), None)
        if parity is not None and parity.losses:
            start = (parity.weights_sha256, parity.batches_sha256, len(parity.losses))
            work = result.cell.key_without(("backend", "compile_mode", "feed", "devices", "threads", "variant"))
            works.setdefault((*start, work, result.cell.precision), {})[result.key] = parity.losses
    judged: dict[str, Agreement] = {}
    for (*_, precision), alike in works.items():
        judged |= agreeing(alike, parity_tolerance(str(precision)))
    return judged
