"""In which order launches run: round by round, in each round every cell once, in an order drawn from the seed.

Slow drift of the machine then falls on all cells alike, and launches of one round may be compared as pairs.
"""

from __future__ import annotations

import random

from kit.clock import Preference
from kit.profile.cell import Cell
from kit.profile.launch import DataChoice, LaunchRequest, StepPlan


def schedule(
    cells: list[Cell],
    *,
    launches: int,
    plan: StepPlan,
    data: DataChoice,
    seed: int,
    cpus: list[int],
    clock: Preference = "monotonic_raw",
) -> list[LaunchRequest]:
    """All launches, in order. The first round also records parity losses and scores the test split."""
    order = random.Random(seed)
    requests: list[LaunchRequest] = []
    for round_number in range(launches):
        for cell in order.sample(cells, len(cells)):
            requests.append(
                LaunchRequest(
                    cell=cell,
                    round=round_number,
                    plan=plan,
                    data=data,
                    seed=seed,
                    threads=len(cpus),
                    cpus=cpus,
                    parity=round_number == 0,
                    evaluate=round_number == 0,
                    clock=clock,
                )
            )
    return requests
