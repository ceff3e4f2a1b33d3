"""Whether cells that differ only in backend and compile mode compute the same thing: the parity verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kit.profile.launch import Parity
from kit.profile.parity import PARITY_STEPS, PARITY_TOLERANCE
from kit.profile.schema import CellResult, ParityVerdict


def parity_verdicts(cells: Sequence[CellResult]) -> dict[str, ParityVerdict]:
    """Judge each cell against every other of the same work; keyed by cell key, one verdict for each cell."""
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
        return _undecided("no launch of this cell recorded its parity losses")
    recorded = {key: parity for key, parity in others.items() if parity is not None}
    if not recorded:
        return _undecided("no other backend recorded parity losses for the same work", len(own.losses))
    if any(parity.weights_sha256 != own.weights_sha256 for parity in recorded.values()):
        return _undecided("the cells started from different weights", len(own.losses))
    if any(parity.batches_sha256 != own.batches_sha256 for parity in recorded.values()):
        return _undecided("the cells were fed different batches", len(own.losses))
    if any(len(parity.losses) != len(own.losses) for parity in recorded.values()):
        return _undecided("the cells recorded different numbers of losses", len(own.losses))
    differences = [_max_relative_difference(own.losses, parity.losses) for parity in recorded.values()]
    finite = bool(np.all(np.isfinite(differences)))
    return ParityVerdict(
        agrees=finite and max(differences) <= PARITY_TOLERANCE,
        against=list(recorded),
        max_relative_difference=max(differences) if finite else None,
        tolerance=PARITY_TOLERANCE,
        steps=len(own.losses),
        reason=None if finite else "a loss is not finite",
    )


def _max_relative_difference(ours: list[float], theirs: list[float]) -> float:
    """Largest |a - b| / max(|a|, |b|) over the steps; nan if a loss is not finite."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return float("nan")
    scale = np.maximum(np.abs(a), np.abs(b))
    return float(np.max(np.divide(np.abs(a - b), scale, out=np.zeros_like(a), where=scale > 0), initial=0.0))


def _undecided(reason: str, steps: int = PARITY_STEPS) -> ParityVerdict:
    return ParityVerdict(
        agrees=None, against=[], max_relative_difference=None, tolerance=PARITY_TOLERANCE, steps=steps, reason=reason
    )
