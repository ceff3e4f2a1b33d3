"""How long a run takes: by constants before it, by what its rounds took once there are some.

Steps    starts and blocks by constants × pace: what the last whole round took over its constants; 1 before there is one
Fits     steps that are left × what its steps took so far; one of which nothing is known yet, as the others in the mean
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kit.backends.catalog import CATALOG
from kit.clock import now_ns
from kit.profile.cell import Cell
from kit.profile.launch import StepPlan
from kit.profile.schema import Group
from kit.profile.unfinished import RunPlan
from kit.suites.plan import MemberPlan, SharedGroups, plan_shared_groups

if TYPE_CHECKING:
    from kit.worker.messages import Done

# Of a fit at least, besides its reference's warm-up: two programs built, some stretches, two test passes. The fit of 50
# updates of mlp took 3 s, the one of cnn 8 (TensorFlow) to 25 s (JAX).
FIT_LEAST_S = 3.0
# Beside its stretches of a second a fit runs references of a quarter.
WITH_REFERENCES = 1.25


class Estimate(NamedTuple):
    """How long a run takes; `is_least` where fits, a user's own steps or a precision asked for leave that open."""

    seconds: float
    is_least: bool


class _Round(NamedTuple):
    """What a round measures."""

    steps_s: float  # of starts and blocks, by the constants
    fits: list[str]  # cell keys; twice where a cell is in two parts of a group


def estimate(
    cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str], plan: StepPlan, rounds: int
) -> Estimate:
    """Return how long these rounds take where steps are short against a block."""
    planned = _planned(cells, groups, share, plan, rounds)
    seconds = sum(measured.steps_s + len(measured.fits) * _fit_least_s(plan) for measured in planned)
    return Estimate(seconds, any(cell.task == "fit" for cell in cells))


def _planned(
    cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str], plan: StepPlan, rounds: int
) -> list[_Round]:
    """Return the rounds where no cell fails: fits are repeated in the first of them only."""
    fits = {cell.key for cell in cells if cell.task == "fit"}
    stepping = [group for group in groups if group.cells[0] not in fits]
    whole, rest = (_measured(plan_shared_groups(cells, some, share), plan) for some in (groups, stepping))
    return [whole if plan.fit_rounds is None or number < plan.fit_rounds else rest for number in range(rounds)]


def _measured(bundles: Sequence[SharedGroups], plan: StepPlan) -> _Round:
    members = [member for bundle in bundles for member in bundle.members]
    tasks = {cell.key: cell.task for member in members for cell in member.cells}
    keys = [key for bundle in bundles for group in bundle.groups for key in group.cells]
    fits = [key for key in keys if tasks[key] == "fit"]
    blocks = (len(keys) - len(fits)) * plan.cycles
    return _Round(sum(map(_start_s, members)) + blocks * _block_s(plan), fits)


def _start_s(member: MemberPlan) -> float:
    """Return the seconds of a member's start, from its interpreter to its first program."""
    return CATALOG[member.cells[0].backend].start_s


def _block_s(plan: StepPlan) -> float:
    """Return the seconds of a block with its share of what a member does once a round: warm-up and energy."""
    return plan.block_s + (plan.warmup_s + plan.energy_s) / plan.cycles


def _fit_least_s(plan: StepPlan) -> float:
    return plan.warmup_s + FIT_LEAST_S


class TimeLeft:
    """Takes what has ended, and says how long the rest takes."""

    def __init__(self, plan: RunPlan, rounds_done: int = 0, now: Callable[[], int] = now_ns) -> None:
        from kit.runner.round import counts_energy

        self._suite, self._now = plan.suite, now
        self._plan = plan.suite.plan if counts_energy(plan) else replace(plan.suite.plan, energy_s=0.0)
        self._planned = _planned(plan.cells, plan.groups, plan.suite.share, self._plan, plan.suite.rounds)
        self._number = rounds_done - 1
        self._begun_ns = self._round_ns = now()
        self._last_ns: int | None = None  # when the last block or stretch ended; None while members start
        self._round_s = 0.0  # of the round that is measured, without its fits, by the constants
        self._pace: float | None = None  # of the last whole round
        self._fit_s: dict[str, float] = {}  # of each fit whose first stretch has run, in this round or before it
        self._fit_spent_s: dict[str, float] = {}  # of this round's fits

    def round_begins(self, number: int, bundles: Sequence[SharedGroups]) -> None:
        """Take what a round measures."""
        self._number, self._round_ns = number, self._now()
        self._round_s, fits = _measured(bundles, self._plan)
        self._fit_spent_s = dict.fromkeys(fits, 0.0)

    def starting(self) -> None:
        """A member starts."""
        self._last_ns = None

    def block_done(self, cell: Cell, done: Done) -> None:
        """A block or a stretch of a fit has ended."""
        before_ns, self._last_ns = self._last_ns, self._now()
        if cell.task == "fit":
            since_s = 0.0 if before_ns is None else (self._last_ns - before_ns) / 1e9
            spent_s = self._fit_spent_s[cell.key] = self._fit_spent_s.get(cell.key, 0.0) + since_s
            step_s = done.part.blocks.span_ns[0] / 1e9 / max(1, done.part.blocks.steps[0])
            self._fit_s[cell.key] = spent_s + (done.left or 0) * step_s * WITH_REFERENCES

    def round_done(self) -> None:
        """The round is on disk."""
        if self._round_s > 0:
            self._pace = self._without_fits_s() / self._round_s
        self._round_s, self._fit_spent_s = 0.0, {}

    @property
    def spent_s(self) -> float:
        """Seconds since the run began, or went on."""
        return (self._now() - self._begun_ns) / 1e9

    def estimate(self) -> Estimate:
        """Return what is left; where a first round takes longer than the constants say, at least."""
        pace = 1.0 if self._pace is None else self._pace
        of_round_s = self._round_s * pace - self._without_fits_s()
        later = self._planned[self._number + 1 :]
        fits = [key for measured in later for key in measured.fits]
        fits_s = sum(max(0.0, self._of_fit_s(key) - spent_s) for key, spent_s in self._fit_spent_s.items())
        is_unknown = not self._fit_s.keys() >= {*fits, *self._fit_spent_s} or self._suite.precision_pct is not None
        is_guess = self._pace is None and (bool(self._suite.programs) or (of_round_s < 0 < self._round_s))
        steps_s = max(0.0, of_round_s) + pace * sum(measured.steps_s for measured in later)
        return Estimate(steps_s + fits_s + sum(map(self._of_fit_s, fits)), is_unknown or is_guess)

    def _without_fits_s(self) -> float:
        """Return the seconds of this round so far."""
        return (self._now() - self._round_ns) / 1e9 - sum(self._fit_spent_s.values())

    def _of_fit_s(self, key: str) -> float:
        mean_s = sum(self._fit_s.values()) / max(1, len(self._fit_s))
        return self._fit_s.get(key, max(mean_s, _fit_least_s(self._plan)))
