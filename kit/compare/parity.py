"""Which cells compute what others of their work do, by the losses of their first steps."""

from __future__ import annotations

from collections.abc import Iterable

from kit.profile.schema import CellResult
from kit.stats.parity import Agreement, agreeing
from kit.workloads.parity import parity_tolerance


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
