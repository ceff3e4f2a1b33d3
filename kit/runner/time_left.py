"""How long a run still takes: the estimate before it, corrected by what the run itself has shown.

Steps    estimated seconds of what is left × pace: of the rounds so far, or of this round while it is the first
Fits     steps that are left × what its steps took so far; one of which nothing is known yet, as the others in the mean
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from kit.clock import now_ns
from kit.profile.cell import Cell
from kit.profile.unfinished import RunPlan
from kit.runner.round import counts_energy
from kit.suites.estimate import FIT_LEAST_S, Estimate, block_s, bundles_of, round_s, start_s
from kit.suites.plan import MemberPlan, SharedGroups
from kit.worker.messages import Done

# The estimate's weight against the first round's pace, in seconds: a start alone says little of blocks.
TRUST_S = 20.0
# Beside its stretches of a second a fit runs references of a quarter.
WITH_REFERENCES = 1.25


class TimeLeft:
    """Told what has ended, says how long the rest takes."""

    def __init__(self, plan: RunPlan, rounds_done: int = 0, now: Callable[[], int] = now_ns) -> None:
        self._cells, self._groups, self._suite, self._now = plan.cells, plan.groups, plan.suite, now
        steps = plan.suite.plan
        self._steps = steps if counts_energy(plan) else msgspec.structs.replace(steps, energy_s=0.0)
        self._begun_ns = self._last_ns = now()
        self._number = rounds_done - 1
        self._pace: float | None = None  # of the last whole round
        self._fit_s: dict[str, float] = {}  # of each fit whose first stretch has run, in this round or before it
        self._fit_spent_s: dict[str, float] = {}  # of this round's fits
        self._round_s = self._done_s = self._starting_s = self._took_s = 0.0

    def round_begins(self, number: int, bundles: Sequence[SharedGroups]) -> None:
        """Take what a round measures."""
        self._number, self._done_s, self._starting_s, self._took_s = number, 0.0, 0.0, 0.0
        self._fit_spent_s = dict.fromkeys(_fits(bundles), 0.0)
        self._round_s = self._without_fits_s(bundles)
        self._last_ns = self._now()

    def starting(self, member: MemberPlan) -> None:
        """A member starts; the one before it is there."""
        self._took(0.0)
        self._starting_s = start_s(member)

    def block_done(self, cell: Cell, done: Done) -> None:
        """A block or a stretch of a fit has ended."""
        if cell.task != "fit" or self._starting_s:
            self._took(0.0 if cell.task == "fit" else block_s(self._steps))
        if cell.task == "fit":
            spent_s = self._fit_spent_s[cell.key] = self._fit_spent_s.get(cell.key, 0.0) + self._since_last_s()
            blocks = done.part.blocks
            step_s = blocks.span_ns[0] / 1e9 / max(1, blocks.steps[0])
            self._fit_s[cell.key] = spent_s + (done.left or 0) * step_s * WITH_REFERENCES

    def round_done(self) -> None:
        """The round is on disk."""
        self._took(0.0)
        if self._round_s > 0:
            self._pace = self._took_s / self._round_s
        self._done_s, self._fit_spent_s = self._round_s, {}

    @property
    def spent_s(self) -> float:
        """Seconds since the run began, or went on."""
        return (self._now() - self._begun_ns) / 1e9

    def estimate(self) -> Estimate:
        """Return what is left."""
        pace = self._pace
        if pace is None:
            pace = (self._took_s + TRUST_S) / (self._done_s + TRUST_S)
        left_s = max(0.0, self._round_s - self._done_s) * pace
        left_s += sum(max(0.0, self._of_fit_s(key) - spent_s) for key, spent_s in self._fit_spent_s.items())
        fits = set(self._fit_spent_s)
        for number in range(self._number + 1, self._suite.rounds):
            bundles = bundles_of(self._cells, self._groups, self._suite.share, self._steps, number)
            fits |= _fits(bundles)
            left_s += self._without_fits_s(bundles) * pace + sum(map(self._of_fit_s, _fits(bundles)))
        is_open = bool(fits - self._fit_s.keys()) or self._suite.precision_pct is not None
        return Estimate(left_s, is_open or (self._pace is None and bool(self._suite.programs)))

    def _of_fit_s(self, key: str) -> float:
        mean_s = sum(self._fit_s.values()) / max(1, len(self._fit_s))
        return self._fit_s.get(key, max(mean_s, self._steps.warmup_s + FIT_LEAST_S))

    def _without_fits_s(self, bundles: Sequence[SharedGroups]) -> float:
        return round_s(bundles, self._steps) - len(_fits(bundles)) * (self._steps.warmup_s + FIT_LEAST_S)

    def _took(self, estimated_s: float) -> None:
        """Count what has ended, and the start before it."""
        self._took_s += self._since_last_s()
        self._done_s += estimated_s + self._starting_s
        self._starting_s = 0.0

    def _since_last_s(self) -> float:
        before_ns, self._last_ns = self._last_ns, self._now()
        return (self._last_ns - before_ns) / 1e9


def _fits(bundles: Iterable[SharedGroups]) -> set[str]:
    cells = (cell for bundle in bundles for process in bundle.members for cell in process.cells)
    return {cell.key for cell in cells if cell.task == "fit"}
