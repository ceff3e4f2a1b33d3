"""Whether cells that differ only in backend and compile mode compute the same thing: the parity verdict.

A cell agrees if it is one of a majority: if more than half of the cells of its work, itself counted, have its losses.

a ── b      of a, b and c, a and b agree and c is the odd one out; of two that differ, neither has a majority
   c
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kit.profile.launch import Parity
from kit.profile.parity import PARITY_TOLERANCE
from kit.profile.schema import CellResult, ParityVerdict


def parity_verdicts(cells: Sequence[CellResult]) -> dict[str, ParityVerdict]:
    """Judge each cell against every other of the same work; keyed by cell key, one verdict for each cell.

    `against` and the largest difference of a cell that agrees are of those it agrees with, and `reason` names the
    others; of one that does not, they are of all.
    """
    proofs = {cell.key: _proof(cell) for cell in cells}
    groups: dict[tuple[object, ...], list[str]] = {}
    for cell in cells:
        groups.setdefault(_same_work(cell), []).append(cell.key)
    return {
        key: _judge(proofs[key], {other: proofs[other] for other in group if other != key})
        for group in groups.values()
        for key in group
    }


def _same_work(result: CellResult) -> tuple[object, ...]:
    cell = result.cell
    return (cell.workload, cell.device, cell.task, cell.batch, cell.precision, cell.feed, cell.devices)


def _proof(result: CellResult) -> Parity | None:
    """Of the first launch that recorded one: every launch of a cell runs the same program."""
    return next((launch.parity for launch in result.launches if launch.parity is not None), None)


def _judge(own: Parity | None, others: dict[str, Parity | None]) -> ParityVerdict:
    if own is None:
        return _undecided("no launch of this cell recorded its parity losses", 0)
    recorded = {key: parity for key, parity in others.items() if parity is not None}
    if not recorded:
        return _undecided("no other backend recorded parity losses for the same work", len(own.losses))
    if any(parity.weights_sha256 != own.weights_sha256 for parity in recorded.values()):
        return _undecided("the cells started from different weights", len(own.losses))
    if any(parity.batches_sha256 != own.batches_sha256 for parity in recorded.values()):
        return _undecided("the cells were fed different batches", len(own.losses))
    if any(len(parity.losses) != len(own.losses) for parity in recorded.values()):
        return _undecided("the cells recorded different numbers of losses", len(own.losses))
    differences = {key: _max_relative_difference(own.losses, parity.losses) for key, parity in recorded.items()}
    agreeing = {key: difference for key, difference in differences.items() if difference <= PARITY_TOLERANCE}
    agrees = 2 * (len(agreeing) + 1) > len(differences) + 1
    counted = agreeing if agrees else differences
    finite = bool(np.all(np.isfinite([*counted.values()])))
    odd = ", ".join(key for key in differences if key not in agreeing)
    return ParityVerdict(
        agrees=agrees,
        against=list(counted),
        max_relative_difference=max(counted.values()) if finite else None,
        tolerance=PARITY_TOLERANCE,
        steps=len(own.losses),
        reason=f"other losses in {odd}" if agrees and odd else None if finite else "a loss is not finite",
    )


def same_losses(ours: Parity | None, theirs: Parity | None) -> bool | None:
    """Whether two cells' losses are within the tolerance; null where they did not start from the same."""
    if ours is None or theirs is None or len(ours.losses) != len(theirs.losses):
        return None
    if (ours.weights_sha256, ours.batches_sha256) != (theirs.weights_sha256, theirs.batches_sha256):
        return None
    return _max_relative_difference(ours.losses, theirs.losses) <= PARITY_TOLERANCE


def _max_relative_difference(ours: list[float], theirs: list[float]) -> float:
    """Largest |a - b| / max(|a|, |b|) over the steps; nan if a loss is not finite."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return float("nan")
    scale = np.maximum(np.abs(a), np.abs(b))
    return float(np.max(np.divide(np.abs(a - b), scale, out=np.zeros_like(a), where=scale > 0), initial=0.0))


def _undecided(reason: str, steps: int) -> ParityVerdict:
    return ParityVerdict(
        agrees=None, against=[], max_relative_difference=None, tolerance=PARITY_TOLERANCE, steps=steps, reason=reason
    )
