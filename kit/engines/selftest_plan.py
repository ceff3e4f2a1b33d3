"""Which launches a self-test makes: in every round two that are not slowed and one of each planted slow-down.

Two, because what the host does to a cell that did not change is seen in these alone. The rounds take turns as those of
a run do (`kit.engines.schedule`), so all kinds are spread over the whole time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kit.engines.schedule import in_order
from kit.profile.launch import Launch, LaunchRequest
from kit.profile.run_plan import RunPlan

PLANTED_PCT = (2.0, 3.0, 5.0)
# 0: not slowed.
KINDS = [0.0, 0.0, *PLANTED_PCT]


def still_to_do(plan: RunPlan, ended: Sequence[Launch]) -> list[LaunchRequest]:
    """Launches of the plan's one cell that have not ended, in order; `plan.launches` is the number of rounds."""
    done = Counter((launch.round, launch.planted_slowdown_pct) for launch in ended)
    requests = []
    for round in range(plan.launches):
        for slowdown_pct in in_order(KINDS, plan.seed, round):
            if done[round, slowdown_pct]:
                done[round, slowdown_pct] -= 1
            else:
                requests.append(_request(plan, round, slowdown_pct))
    return requests


def _request(plan: RunPlan, round: int, slowdown_pct: float) -> LaunchRequest:
    return LaunchRequest(
        cell=plan.cells[0],
        round=round,
        plan=plan.steps,
        data=plan.data,
        seed=plan.seed,
        threads=len(plan.cpus),
        cpus=plan.cpus,
        parity=False,
        evaluate=False,
        clock=plan.clock,
        planted_slowdown_pct=slowdown_pct,
    )
