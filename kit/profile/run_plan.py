"""What decides which launches a run makes: kept in the journal's header, so that a resumed run makes the same ones."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.cell import Cell
from kit.profile.launch import DataChoice, StepPlan


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The cells, how often each is launched, and what every launch is told."""

    cells: list[Cell]
    steps: StepPlan  # of every launch; with `precision_pct` of the pilots, after which each cell has its own
    steady_s_min: float  # a cell's own plan never measures for less
    launches: int  # a cell; with `precision_pct` the least
    precision_pct: float | None  # go on until each cell's interval is at most this far from its centre
    data: DataChoice
    seed: int
    cpus: list[int]
    clock: Literal["auto", "monotonic_raw", "tsc", "cntvct"]
    observer_s: float = 0.0  # of the first launch of the first cell
