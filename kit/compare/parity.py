"""Whether programs that should compute the same thing do: their losses, step by step, and who is the odd one out.

a ── b      of a, b and c, a and b agree and c is the odd one out; of two that differ, neither has a majority
   c
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kit.profile.schema import CellResult
from kit.workloads.parity import parity_tolerance


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
        others = [max_relative_difference(losses, other) for name, other in losses_by_key.items() if name != key]
        finite = [value for value in others if value is not None]
        equal = [value for value in finite if value <= tolerance]
        if not others:
            judged[key] = Agreement(None, None)
        elif 2 * (len(equal) + 1) > len(losses_by_key):
            judged[key] = Agreement(True, max(equal))
        else:
            judged[key] = Agreement(False, max(finite) if len(finite) == len(others) else None)
    return judged


def agreements(cells: Iterable[CellResult]) -> dict[str, Agreement]:
    """Return, by key, whether a cell computes what others of its work do; of those whose losses were recorded."""
    works: dict[tuple[object, ...], dict[str, list[float]]] = {}
    for result in cells:
        parity = next((launch.parity for launch in result.launches if launch.parity is not None), None)
        if parity is not None and parity.losses:
            cell = result.cell
            work = (cell.workload, str(cell.parameters), cell.task, cell.batch, cell.device, cell.precision)
            start = (parity.weights_sha256, parity.batches_sha256, len(parity.losses))
            works.setdefault((*start, *work), {})[result.key] = parity.losses
    judged: dict[str, Agreement] = {}
    for (*_, precision), alike in works.items():
        judged |= agreeing(alike, parity_tolerance(str(precision)))
    return judged
