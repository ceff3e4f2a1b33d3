"""In which order launches run: round by round, in each round every cell once.

    round   0        1        2        3
          A B C    C B A    B C A    A C B        order of rounds 0, 2, … drawn from the seed, then turned round

Whatever rises or falls steadily over two rounds falls on every cell alike (ABBA), slower drift falls on all of them
anyway, and launches of one round may be compared as pairs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from kit.profile.cell import Cell
from kit.profile.launch import LaunchRequest, StepPlan
from kit.profile.run_plan import RunPlan

T = TypeVar("T")


def in_order(what: list[T], seed: int, round: int) -> list[T]:
    """The cells, or whatever else takes turns, in the order of one round."""
    drawn = random.Random(f"{seed}/{round // 2}").sample(what, len(what))
    return drawn[::-1] if round % 2 else drawn


def round_requests(plan: RunPlan, round: int, steps_of: Callable[[Cell], StepPlan]) -> list[LaunchRequest]:
    """The launches of one round, in order. The first round also records parity losses and scores the test split."""
    return [
        LaunchRequest(
            cell=cell,
            round=round,
            plan=steps_of(cell),
            data=plan.data,
            seed=plan.seed,
            threads=len(plan.cpus),
            cpus=plan.cpus,
            parity=round == 0,
            evaluate=round == 0,
            clock=plan.clock,
            observer_s=plan.observer_s if round == 0 and cell == plan.cells[0] else 0.0,
        )
        for cell in in_order(plan.cells, plan.seed, round)
    ]
