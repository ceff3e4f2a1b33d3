"""How near a step comes to what its framework was measured to reach on its device, in the same run.

compute    FLOPs of the step  / the best matrix product in its precision
memory     bytes of the step  / the triad on arrays as large, or the largest
dispatch   an empty dispatch
input      what a fit waits for its input; batches from the host / the copy in, on an accelerator

Each alone would take a share of the step; the largest is its bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from kit.compare.table import BlockTable, LaunchRow
from kit.profile.cell import OWN, Cell
from kit.profile.schema import Profile
from kit.workloads.device_operations import EMPTY, MIB, OPERATIONS, is_operation, networks_among, work_of

if TYPE_CHECKING:
    from kit.workloads.step_cost import Cost

Bound = Literal["compute", "memory", "dispatch", "input"]


class Ceiling(NamedTuple):
    """What an operation reached in its best block."""

    cell: Cell
    step_ns: float
    is_disturbed: bool  # whether others disturbed that block: what is reached without them is higher

    @property
    def rate(self) -> float:
        """FLOP/s or B/s; 0 of an empty dispatch."""
        work = work_of(self.cell)
        return 0.0 if work is None else 1e9 * work[0] / self.step_ns

    @property
    def name(self) -> str:
        """Return ``matmul 2048, float32``, ``triad 256 MiB``."""
        cell = self.cell
        size = "".join(f" {value}{' MiB' if name == 'mib' else ''}" for name, value in cell.parameters.items())
        precision = f", {cell.precision}" if OPERATIONS[cell.workload].in_precisions else ""
        return f"{cell.workload.replace('_', ' ')}{size}{precision}"


class CeilingReach(msgspec.Struct, frozen=True, kw_only=True):
    """What a step reaches; of an operation its rate alone, and nothing of what was not measured."""

    rate: float | None  # of a network by the FLOPs of its layers
    unit: str | None  # "FLOP/s" or "B/s"
    flops: float | None = None  # of a step
    bytes: float | None = None  # of a step, at least
    bound: Bound | None = None
    share_pct: float | None = None  # of the step's time, that its bound alone would take
    ceiling: float | None = None  # of that bound: FLOP/s, B/s, or nanoseconds of a dispatch; null: an input's
    ceiling_unit: str | None = None
    operation: str | None = None  # that measured it


def ceilings_of(table: BlockTable) -> list[Ceiling]:
    """Return the ceilings of all operations that a run has a number of: each its best block's."""
    ceilings = []
    for launches in table.by_cell.values():
        if launches and is_operation(launches[0].cell):
            every = [block for launch in launches for block in launch.rows() if block.counts]
            best = min(every, key=lambda block: (block.step_ns, block.disturbed_by is not None), default=None)
            if best is not None:
                ceilings.append(Ceiling(launches[0].cell, best.step_ns, best.disturbed_by is not None))
    return ceilings


def without_operations(profile: Profile) -> Profile:
    """Return the profile as if its networks alone had been measured; where there are none, as it is."""
    networks = {cell.key for cell in networks_among(result.cell for result in profile.cells)}
    if not networks or len(networks) == len(profile.cells):
        return profile
    groups = [group for group in profile.groups if networks.issuperset(group.cells)]
    cells = [result for result in profile.cells if result.key in networks]
    return msgspec.structs.replace(profile, groups=groups, cells=cells)


def step_ns_of(launches: Iterable[LaunchRow]) -> float | None:
    """Return the step time of the middle launch with a number; None where there is none."""
    with_number = [launch for launch in launches if launch.has_counting]
    times_ns = sorted(launch.time_ns() if launch.record.fit is None else launch.mean_step_ns for launch in with_number)
    return times_ns[len(times_ns) // 2] if times_ns and not math.isnan(times_ns[-1]) else None


def beside(cell: Cell, ceilings: Sequence[Ceiling], *, any_backend: bool = False) -> list[Ceiling]:
    """Return those of a cell's framework, or of all, on its device, with its threads and variant."""
    axes = ("device", "devices", "threads", "variant", *(() if any_backend else ("backend",)))
    return [ceiling for ceiling in ceilings if all(getattr(ceiling.cell, axis) == getattr(cell, axis) for axis in axes)]


def best_product(cell: Cell, ceilings: Iterable[Ceiling]) -> Ceiling | None:
    """Return the fastest matrix product in a cell's precision."""
    products = [known for known in named("matmul", ceilings) if known.cell.precision == cell.precision]
    return max(products, key=lambda product: product.rate, default=None)


def named(name: str, ceilings: Iterable[Ceiling]) -> list[Ceiling]:
    """Return the ceilings of one operation, by its parameter; none whose parameters another kit has given it."""
    alike = [ceiling for ceiling in ceilings if ceiling.cell.workload == name and (name == EMPTY.name or ceiling.rate)]
    return sorted(alike, key=lambda ceiling: list(ceiling.cell.parameters.values()))


def cost(cell: Cell) -> Cost | None:
    """Return what a step of a network's cell computes and moves; None of a program, or a network that is not here."""
    if cell.precision == OWN or cell.batch < 1:
        return None
    return _cost(cell.workload, tuple(cell.parameters.items()), cell.task, cell.batch, cell.precision)


@lru_cache(maxsize=1024)
def _cost(name: str, parameters: tuple[tuple[str, int], ...], *conditions: object) -> Cost | None:
    # The catalog of networks takes a tenth of a second to import; most tables do not need it.
    from kit.workloads.step_cost import cost_of
    from kit.workloads.workload_catalog import WORKLOADS, WorkloadError, workload

    if name not in WORKLOADS:
        return None
    task, batch, precision = conditions
    try:
        return cost_of(workload(name, dict(parameters)), task, batch, precision)  # type: ignore[arg-type]
    except (WorkloadError, ValueError):  # a network of another kit with this name
        return None


def reach_of(
    cell: Cell, step_ns: float | None, pipeline_ratio: float | None, ceilings: Sequence[Ceiling]
) -> CeilingReach | None:
    """Return what a cell reaches; None where neither its work nor a step is known.

    Args:
        cell: of a network or an operation.
        step_ns: null: it has no number.
        pipeline_ratio: of a fit: its time over what resident steps would have taken.
        ceilings: of its profile.
    """
    if not step_ns:
        return None
    if is_operation(cell):
        work = work_of(cell)
        return None if work is None else CeilingReach(rate=1e9 * work[0] / step_ns, unit=work[1])
    step_cost = cost(cell)
    if step_cost is None:
        return None
    reach = CeilingReach(
        rate=1e9 * step_cost.flops / step_ns, unit="FLOP/s", flops=step_cost.flops, bytes=step_cost.bytes
    )
    here = beside(cell, ceilings)
    # How long each part of the step takes alone, in nanoseconds, by the ceiling that says it.
    bounds: dict[Bound, tuple[float, Ceiling | None]] = {}
    if (product := best_product(cell, here)) is not None:
        bounds["compute"] = 1e9 * step_cost.flops / product.rate, product
    if triads := named("triad", here):
        # The smallest whose two arrays hold what the step moves; caches are faster than memory.
        fitting = (triad for triad in triads if 2 * MIB * triad.cell.parameters["mib"] >= step_cost.bytes)
        triad = next(fitting, triads[-1])
        bounds["memory"] = 1e9 * step_cost.bytes / triad.rate, triad
    if empty := named("empty", here):
        bounds["dispatch"] = empty[0].step_ns, empty[0]
    copies = named("copy_in", here)
    if copies and cell.feed == "host" and cell.device != "cpu":
        from kit.workloads.step_cost import FLOAT32_B
        from kit.workloads.workload_catalog import workload

        network = workload(cell.workload, cell.parameters)
        bounds["input"] = 1e9 * cell.batch * math.prod(network.input_shape) * FLOAT32_B / copies[0].rate, copies[0]
    if not bounds:
        return reach
    if pipeline_ratio is not None and pipeline_ratio > 1:
        bounds["input"] = (step_ns * (1 - 1 / pipeline_ratio), None)
    bound = max(bounds, key=lambda name: bounds[name][0])
    alone_ns, ceiling = bounds[bound]
    reach = msgspec.structs.replace(reach, bound=bound, share_pct=100 * alone_ns / step_ns)
    if ceiling is None:
        return reach
    work = work_of(ceiling.cell)
    value, unit = (ceiling.step_ns, "ns") if work is None else (ceiling.rate, work[1])
    return msgspec.structs.replace(reach, ceiling=value, ceiling_unit=unit, operation=ceiling.name)
