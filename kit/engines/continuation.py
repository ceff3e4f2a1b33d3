"""What a run still has to do, as a function of its plan and of the launches that have ended: nothing else is kept.

fixed      round 0 … launches-1                                     every cell that has not failed
precision  round 0 … least-1, then on while a cell is not precise   each cell with the steps its pilots taught
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from kit.engines.pilots import PILOT_LAUNCHES, learned_steps
from kit.engines.schedule import round_requests
from kit.profile.launch import Launch, LaunchRequest, StepPlan
from kit.profile.run_plan import RunPlan
from kit.profile.schema import LaunchSummary
from kit.stats.launch_summary import summary_of
from kit.stats.precision import SEQUENTIAL_LAUNCHES_MAX, SEQUENTIAL_LAUNCHES_MIN, half_width, launches_to_precision

# A cell that reaches a steady state in fewer than this share of so many launches gets no further ones: its interval
# would be that of the few that happened to look steady. (A busy virtual machine loses half of them: worth going on.)
STEADY_SHARE_MIN = 0.25
LAUNCHES_TO_GIVE_UP = 10
# Fewer launches with a number show no spread, from which to say how many more it takes.
SPREAD_LAUNCHES_MIN = 2


class Continuation:
    """Decides the next launches of one run.

    Args:
        plan: of the run.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self._summaries: dict[tuple[str, int], LaunchSummary | None] = {}

    def rest_of_round(self, ended: Sequence[Launch]) -> list[LaunchRequest]:
        """Launches of the earliest round that is not complete, in order; none: the run is complete."""
        by_cell = self._by_cell(ended)
        number = 0
        while takers := {key for key, own in by_cell.items() if self._takes_part(own, number)}:
            missing = {key for key in takers if number not in rounds_of(by_cell[key])}
            if missing:
                requests = round_requests(self.plan, number, lambda cell: self._steps_of(by_cell[cell.key]))
                return [request for request in requests if request.cell.key in missing]
            number += 1
        return []

    def expected(self, ended: Sequence[Launch]) -> dict[str, int]:
        """Cell key -> about how many launches are still to come; exact unless a precision was asked for."""
        by_cell = self._by_cell(ended)
        totals = {key: self._total(own) for key, own in by_cell.items()}
        typical = self._typical(totals, by_cell)
        return {
            key: max(0, total - len(own)) if (total := totals[key]) is not None else max(1, typical - len(own))
            for key, own in by_cell.items()
        }

    def enough(self, ended: Sequence[Launch]) -> bool:
        """Whether every cell that has not failed has the launches that it was to have at least."""
        return all(has_failed(own) or len(own) >= self.plan.launches for own in self._by_cell(ended).values())

    def given_up(self, ended: Sequence[Launch]) -> list[str]:
        """Keys of cells that get no more launches although they are not as precise as asked for."""
        precision = self.plan.precision_pct
        if precision is None:
            return []
        return [
            key
            for key, own in self._by_cell(ended).items()
            if not has_failed(own) and self._is_hopeless(own) and not self._is_reached(own, precision / 100)
        ]

    def _by_cell(self, ended: Sequence[Launch]) -> dict[str, list[Launch]]:
        found: dict[str, list[Launch]] = {cell.key: [] for cell in self.plan.cells}
        for launch in sorted(ended, key=lambda launch: launch.round):
            found.setdefault(launch.cell_key, []).append(launch)
        return found

    def _takes_part(self, own: list[Launch], number: int) -> bool:
        if has_failed(own):
            return False
        if number < self.plan.launches:
            return True
        before = [launch for launch in own if launch.round < number]
        return self.plan.precision_pct is not None and not self._is_done(before, self.plan.precision_pct / 100)

    def _is_done(self, launches: list[Launch], precision: float) -> bool:
        return self._is_reached(launches, precision) or self._is_hopeless(launches)

    def _is_reached(self, launches: list[Launch], precision: float) -> bool:
        medians = self._medians(launches)
        # The bounds on how often the interval errs hold from so many launches on that count.
        reached = half_width(medians) if len(medians) >= SEQUENTIAL_LAUNCHES_MIN else None
        return reached is not None and reached <= precision

    def _is_hopeless(self, launches: list[Launch]) -> bool:
        few_steady = len(launches) >= LAUNCHES_TO_GIVE_UP and self._is_seldom_steady(launches)
        return len(launches) >= SEQUENTIAL_LAUNCHES_MAX or few_steady

    def _is_seldom_steady(self, launches: list[Launch]) -> bool:
        return len(self._medians(launches)) < STEADY_SHARE_MIN * len(launches)

    def _typical(self, totals: Mapping[str, int | None], by_cell: Mapping[str, list[Launch]]) -> int:
        """What to expect of a cell that shows no spread yet: the mean of those that do, whose host is the same."""
        known = [total for key, total in totals.items() if total is not None and not has_failed(by_cell[key])]
        return round(fmean(known)) if known else max(self.plan.launches, LAUNCHES_TO_GIVE_UP)

    def _total(self, own: list[Launch]) -> int | None:
        """Launches that the cell will have had in the end; null: its spread is not known yet."""
        if has_failed(own):
            return len(own)
        if self.plan.precision_pct is None or len(own) < PILOT_LAUNCHES:
            return self.plan.launches
        precision = self.plan.precision_pct / 100
        if len(own) >= self.plan.launches and self._is_done(own, precision):
            return len(own)
        medians = self._medians(own)
        if self._is_seldom_steady(own):
            return max(self.plan.launches, LAUNCHES_TO_GIVE_UP, len(own) + 1)
        if len(medians) < SPREAD_LAUNCHES_MIN:
            return None
        # One more, as it is not done; and those without a steady number are to be expected again.
        wanted = max(launches_to_precision(medians, precision), len(medians) + 1) - len(medians)
        total = max(self.plan.launches, len(own) + round(wanted * len(own) / len(medians)))
        return min(total, max(SEQUENTIAL_LAUNCHES_MAX, len(own) + 1))

    def _steps_of(self, own: list[Launch]) -> StepPlan:
        pilots = [launch for launch in own if launch.round < PILOT_LAUNCHES]
        if self.plan.precision_pct is None or len(pilots) < PILOT_LAUNCHES:
            return self.plan.steps
        summaries = [self._summary(launch) for launch in pilots]
        known = [(launch, summary) for launch, summary in zip(pilots, summaries, strict=True) if summary is not None]
        return learned_steps(
            self.plan.steps,
            self.plan.steady_s_min,
            [launch for launch, _ in known],
            [summary for _, summary in known],
        )

    def _medians(self, launches: list[Launch]) -> list[float]:
        found = (self._summary(launch) for launch in launches)
        return [summary.median_ns for summary in found if summary is not None and summary.median_ns is not None]

    def _summary(self, launch: Launch) -> LaunchSummary | None:
        """Of one launch; kept, as finding the steady state takes a while."""
        key = (launch.cell_key, launch.round)
        if key not in self._summaries:
            self._summaries[key] = summary_of(launch)
        return self._summaries[key]


def has_failed(launches: Sequence[Launch]) -> bool:
    """A cell of which one launch has failed would fail the same way again, and cost the others' time."""
    return any(launch.failure is not None for launch in launches)


def rounds_of(launches: Sequence[Launch]) -> set[int]:
    """Rounds that have a launch."""
    return {launch.round for launch in launches}
