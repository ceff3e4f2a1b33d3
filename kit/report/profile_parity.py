"""The parity proof of a profile, in lines: the same steps' losses in each backend, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from kit.compare.counted import counted
from kit.profile.launch import Parity
from kit.profile.schema import CellResult, ParityVerdict
from kit.report.grid import grid
from kit.report.plain import NONE, one_line

# Of the recorded steps: the first shows equal weights, the last what the optimizer made of them.
SHOWN_STEPS = (0, 1, 4, 9, 19)


def parity_section(cells: Sequence[CellResult]) -> list[str]:
    """One line a cell: some losses, the largest difference to the others of the same work, and the verdict."""
    titles = ["cell", *(f"step {step}" for step in SHOWN_STEPS), "largest difference", "verdict"]
    ordered = sorted(cells, key=lambda result: (result.cell.workload, result.cell.task))
    rows = [_row(result) for result in ordered]
    return grid([titles, *rows], [False, *(True for _ in SHOWN_STEPS), True, False]) if rows else ["no cells"]


def _row(result: CellResult) -> list[str]:
    proof = next((launch.parity for launch in result.launches if launch.parity is not None), None)
    return [one_line(result.key), *(_loss(proof, step) for step in SHOWN_STEPS), *_verdict(result.parity)]


def _loss(proof: Parity | None, step: int) -> str:
    return f"{proof.losses[step]:.6f}" if proof is not None and step < len(proof.losses) else NONE


def _verdict(verdict: ParityVerdict | None) -> list[str]:
    if verdict is None:
        return [NONE, NONE]
    difference = verdict.max_relative_difference
    shown = NONE if difference is None else f"{difference:.1e}"
    if verdict.agrees is None:
        return [shown, one_line(verdict.reason or "not judged")]
    words = "agrees" if verdict.agrees else "DISAGREES"
    return [shown, f"{words} within {verdict.tolerance:g} with {counted(len(verdict.against), 'other cell')}"]
