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


class SelfTestPlan:
    """Decides the next launches of one self-test.

    Args:
        plan: of one cell; its `launches` is the number of rounds.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan

    def rest_of_round(self, ended: Sequence[Launch]) -> list[LaunchRequest]:
        """The next launch, alone, as each that fails may end the whole; none: all is done, or hopeless."""
        return self.still_to_do(ended)[:1]

    def expected(self, ended: Sequence[Launch]) -> dict[str, int]:
        """Cell key -> launches still to come."""
        return {self.plan.cells[0].key: len(self.still_to_do(ended))}

    def still_to_do(self, ended: Sequence[Launch]) -> list[LaunchRequest]:
        """Launches that have not ended, in order; none where more failed than did not: the rest would, too."""
        failed = sum(launch.failure is not None for launch in ended)
        if failed > len(ended) - failed:
            return []
        done = Counter((launch.round, launch.planted_slowdown_pct) for launch in ended)
        requests = []
        for round in range(self.plan.launches):
            for slowdown_pct in in_order(KINDS, self.plan.seed, round):
                if done[round, slowdown_pct]:
                    done[round, slowdown_pct] -= 1
                else:
                    requests.append(self._request(round, slowdown_pct))
        return requests

    def _request(self, round: int, slowdown_pct: float) -> LaunchRequest:
        plan = self.plan
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
