"""Whether a cell fits into the memory of its device, before anything is started.

The forecast is what every framework must keep at least (`least_memory_b`) and the batches that are resident. What a
framework keeps beside that is not known: a cell that passes may still run out of memory, and is then one failed cell.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable

from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG
from kit.devices import DEVICES
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.runner.why_sequential import available_memory_b
from kit.runner.worker_spec import GPU_SHARE
from kit.sensors.nvml import memory_b
from kit.workloads.device_operations import is_operation
from kit.workloads.seeded_arrays import POOL_BATCHES_MIN
from kit.workloads.step_cost import FLOAT32_B, least_memory_b
from kit.workloads.workload_catalog import workload

GIB = 1 << 30


def check_memory(cells: Iterable[Cell]) -> None:
    """Raise KitError, which names the largest batch that fits, for the first cell that cannot."""
    memory = {kind: _memory_b(kind) for kind in DEVICES}
    for cell in cells:
        available_b = memory[cell.device]
        if available_b is None or is_operation(cell) or not CATALOG[cell.backend].builds_workloads:
            continue
        if (needed_b := forecast_b(cell)) <= available_b:
            continue
        line = f"{cell.key} needs {needed_b / GIB:,.1f} GiB or more of the {cell.device}'s {available_b / GIB:,.1f}"
        fits = largest_batch(cell, available_b)
        raise KitError(f"{line}; give a batch of at most {fits}" if fits else f"{line}; give a smaller network")


def forecast_b(cell: Cell) -> int:
    """Return the fewest bytes that a cell of a network takes of each device."""
    network, batch = workload(cell.workload, cell.parameters), -(-cell.batch // cell.devices)
    resident = POOL_BATCHES_MIN if cell.feed == "device" and cell.task != "decode" else 1
    inputs_b = resident * batch * math.prod(network.input_shape) * FLOAT32_B
    return least_memory_b(network, cell.task, batch, cell.precision) + inputs_b


def largest_batch(cell: Cell, available_b: int) -> int:
    """Return the largest batch whose forecast fits, a multiple of the devices; 0: none does."""
    each = range(1, -(-cell.batch // cell.devices))  # device's share, in ascending order as the forecast
    fitting = bisect_right(each, available_b, key=lambda share: forecast_b(replace(cell, batch=share * cell.devices)))
    return fitting * cell.devices


def _memory_b(kind: str) -> int | None:
    """Return the memory that a device of this kind has for programs; None: nobody says."""
    if kind == "cpu":
        return available_memory_b()
    whole_b = memory_b(0) if kind == "gpu" else None
    return None if whole_b is None else int(GPU_SHARE * whole_b)
