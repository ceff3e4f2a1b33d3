"""Operations: single steps of a framework that show what it reaches on a device at most. Cells name them as networks.

matmul     c = a b                n x n matrices                        2 n^3 operations
triad      a = a + s b            arrays of `mib` MiB each              3 x mib: both are read, one is written
copy_in    host to device         64 MiB; on a CPU a copy in memory     64 MiB
copy_out   device to host         64 MiB; on a CPU a copy in memory     64 MiB
empty      x + x of one number    a dispatch, and next to no work       -

The triad is STREAM's (McCalpin 1995) in place, so that no line of a cache is read only to be overwritten. A backend has
operations where it has a file `operations.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kit.profile.cell import OWN, Cell

MIB = 2**20
COPY_MIB = 64
FLOAT32_B = 4
# What is added to the triad's array: too little for any float32 to change, however many steps there are.
TRIAD_SCALE = 1e-9

WorkUnit = Literal["FLOP/s", "B/s"]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation; its sizes on a CPU end where a step of two cores takes 0.1 s."""

    name: str  # as in cells, where other cells have a workload's
    parameter: str | None = None
    sizes: Sequence[int] = ()  # of the parameter
    accelerator_sizes: Sequence[int] = ()
    in_precisions: bool = False  # measured in each that is asked for; otherwise in float32

    def points(self, device: str, given: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
        """Return the parameters that are measured on a kind of device, those that are `given` where there are any."""
        if self.parameter is None:
            return [{}]
        usual = self.sizes if device == "cpu" else self.accelerator_sizes or self.sizes
        return [{self.parameter: size} for size in given.get(self.parameter) or usual]


MATMUL = Operation(
    name="matmul", parameter="n", sizes=(512, 1024, 2048), accelerator_sizes=(1024, 4096, 8192), in_precisions=True
)
# One that fits into most last caches and is long against a dispatch, and one that fits into next to none.
TRIAD = Operation(name="triad", parameter="mib", sizes=(16, 256))
COPY_IN, COPY_OUT, EMPTY = (Operation(name=name) for name in ("copy_in", "copy_out", "empty"))
OPERATIONS = {operation.name: operation for operation in (MATMUL, TRIAD, COPY_IN, COPY_OUT, EMPTY)}


def is_operation(cell: Cell) -> bool:
    """Whether the cell is an operation's, and no program's that has its name."""
    return cell.workload in OPERATIONS and cell.precision != OWN


def networks_among(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that are of networks, and of no operations."""
    return [cell for cell in cells if not is_operation(cell)]


def work_of(cell: Cell) -> tuple[float, WorkUnit] | None:
    """Return what a step of an operation computes or moves; None: it is empty, or of another kit."""
    match cell.workload, cell.parameters:
        case "matmul", {"n": n}:
            return 2.0 * n**3, "FLOP/s"
        case "triad", {"mib": mib}:
            return 3.0 * mib * MIB, "B/s"
        case "copy_in" | "copy_out", _:
            return float(COPY_MIB * MIB), "B/s"
    return None


def square(cell: Cell) -> tuple[int, int]:
    """Return the shape of a product's matrices."""
    return cell.parameters["n"], cell.parameters["n"]


def length(cell: Cell) -> int:
    """Return how many float32 a triad's or a copy's array has."""
    return math.ceil(cell.parameters.get("mib", COPY_MIB) * MIB / FLOAT32_B)
