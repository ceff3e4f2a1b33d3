"""How long a launch warms up, how many steps a block has, and how they are paced; when joules and idle are measured.

warm-up      step, step, …                                         parts of 0.1 s, until `is_warm`
CPU          lead-in │ step, step, step …                          each waited for
accelerator  lead-in │ step, step …  (latency) │ k steps, k steps … (step time)
long block   k steps, k steps …                                    parts of 1 s, over which joules are measured

All of it follows from the plan of a run, its sensors, and the pace of a program, which its last answer shows. Where the
machine has become slower since then, a segment ends after OVERRUN_MOST times its planned time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG
from kit.devices import DEVICES
from kit.profile.cell import Cell
from kit.profile.instruments import SensorReport
from kit.profile.schema import StepPlan
from kit.profile.store import Steps
from kit.profile.unfinished import RunPlan
from kit.sensors.sampler import PERIOD_NS
from kit.stats.window_energy import UPDATES_PLANNED, WINDOW_MIN_NS
from kit.worker.messages import Segment
from kit.workloads.device_operations import networks_among

# Operations beside networks run few cycles: the best block counts, and steps are alike from the second on.
CEILING_CYCLES = 3
CEILING_WARMUP_S, CEILING_WARMUP_STEPS = 0.3, 3
# After a warm-up that speeds up, and between blocks, the pace is that of the last steps.
PACE_STEPS = 10
# A request has at most so many steps: its stamps take 1.6 MB.
STEPS_MAX = 200_000
# However long they are, a turn has at least so many timed steps.
TIMED_MIN = 2
# A turn of fewer steps is mostly lead-in: then a block has fewer turns, or one.
TURN_STEPS = 8
# Of a command the lead-in is one run. Times of a process move within 50 ms: ratios of turns of three runs and of one
# spread alike, of turns of 48 twice as much (docs/trust/measurements.md).
COMMAND_TURN_STEPS = 4
# A segment that has taken so many times its planned time is cut. Beside two busy programs on two CPUs a block took 40
# times as long as planned. Of 2,584 blocks of the reference profiles one took 9.6 times as long, the others up to 1.7.
OVERRUN_MOST = 4
# Steps whose mean is this many times their median and more are planned as if it were so many times.
UNEVENNESS_MOST = 4.0
# Ranks must run the same steps, so they are cut by their runner, between pieces that take about so long. Between two
# pieces they idle for some 0.0002 s.
PIECE_S = 0.05
# A cycle that others disturbed is measured again, until so many times the planned cycles have run.
REPEATS_MOST = 2
# This fraction of an accelerator's block shows the latency of steps; the rest, most of it, gives the step time.
LATENCY_FRACTION = 0.25
# A wait may cost this fraction of its steps.
WAIT_FRACTION = 0.01
# So many steps show what one costs without its wait, to some percent.
PROBE_STEPS = 50
# Each of these is timed three times: what a stall adds to one would decide the number of steps a wait.
PROBES = 3
# Steps of seconds are not gathered by the hundred: a group takes this long at most, and its wait is nothing beside it.
GROUP_MAX_S = 1.0
# A warm-up is asked for in parts: a search for its end needs the pace, which changes.
WARM_UP_PART_S = 0.1
# A part of a warm-up that is faster than all before it by this fraction was still warming up. Parts of a program that
# is warm differ by some percent, and a block that begins a little early is one of many (docs/explanation/method.md).
WARMING_LEAST = 0.03
# Steps of seconds are parts of their own: JAX' first two, of 0.6 s, once took twice as long as its others.
WARM_STEPS_LEAST = 4
# A long block is asked for in parts, as its pace may change: between two the worker idles for some 0.0003 s.
LONG_PART_S = 1.0
# Events have a resolution of half a microsecond, and the group's one wait costs some: over so many steps both vanish.
EVENT_STEPS, EVENTS_S = 100, 0.5
# The period of a sensor that does not say how often it is fresh: known boards take 20 to 100 ms.
PERIOD_UNKNOWN_NS = 100_000_000
# The first and the last update of a block are waited for; twice, as ticks of the sampler come late.
ALIGNED_ENDS = 4
IDLE_LEAST_NS, IDLE_UPDATES = 3_000_000_000, 20
NO_STEPS: Steps = np.array([], np.int64)


class Groups(NamedTuple):
    """Steps of which only each `per_wait`-th was waited for."""

    per_wait: int
    steps: int
    duration_ns: int


class Pace(NamedTuple):
    """What the steps of a program take."""

    waited_ns: float  # a step that is waited for by itself
    pipelined_ns: float = 0.0  # a step of those that are waited for together; 0: there are none
    per_wait: int = 1  # how many steps are waited for together
    # The mean of steps that are waited for over `waited_ns`, their median: an own stall now and then is no overrun.
    unevenness: float = 1.0

    @classmethod
    def of(cls, waits_ns: Steps, lead_in_ns: Steps = NO_STEPS) -> Pace:
        """Return the pace that steps show which were waited for one by one, after those of a lead-in."""
        waited_ns = pace_ns(np.concatenate([lead_in_ns, waits_ns]))
        return cls(waited_ns, unevenness=min(max(1.0, float(waits_ns.mean()) / waited_ns), UNEVENNESS_MOST))

    def after(self, segments: Sequence[Segment], waits_ns: Sequence[Steps]) -> Pace:
        """Return the pace after a block."""
        # A block that was cut may have a single timed step, which a stall made long: then its lead-in shows the pace.
        pace = Pace.of(waits_ns[1], waits_ns[0])
        if not self.pipelined_ns:
            return pace
        return pace._replace(pipelined_ns=float(waits_ns[-1].mean()) / segments[-1].per_wait, per_wait=self.per_wait)

    def after_groups(self, step_ns: float) -> Pace:
        """Return the pace after a block that had nothing but steps of this mean."""
        return self._replace(pipelined_ns=step_ns) if self.pipelined_ns else self._replace(waited_ns=step_ns)


def pace_ns(waits_ns: Steps) -> float:
    """Return the median of the last steps."""
    return max(1.0, float(np.median(waits_ns[-PACE_STEPS:])))


def third_ns(waits_ns: Steps) -> int | None:
    """Return the median of the first third of the steps of a block; None where no step was waited for by itself."""
    return round(float(np.median(waits_ns[: max(1, waits_ns.size // 3)]))) if waits_ns.size else None


def filling(seconds: float, step_ns: float, *, least: int = 1, is_rounded_up: bool = False) -> int:
    """Return how many steps fill so many seconds."""
    steps = seconds * 1e9 / step_ns
    return min(max(least, math.ceil(steps) if is_rounded_up else round(steps)), STEPS_MAX)


def _planned_waited(waits: int, pace: Pace) -> Segment:
    """Return a segment of steps that are waited for one by one, planned to take what they did in the mean."""
    return planned(waits, pace.waited_ns * pace.unevenness)


def planned(waits: int, step_ns: float, per_wait: int = 1) -> Segment:
    """Return a segment of steps that are planned to take `step_ns` each, with the limit that follows from it."""
    return Segment(waits, per_wait, math.ceil(OVERRUN_MOST * waits * per_wait * step_ns))


def pieces(segment: Segment) -> list[Segment]:
    """Return the pieces, about PIECE_S long, that a segment of ranks is asked for in."""
    planned_s = segment.limit_ns / OVERRUN_MOST / 1e9
    waits = max(1, round(segment.waits * PIECE_S / planned_s)) if segment.limit_ns else segment.waits
    limit_ns = segment.limit_ns * waits // segment.waits
    whole, rest = divmod(segment.waits, waits)
    last = [Segment(rest, segment.per_wait, segment.limit_ns * rest // segment.waits)] if rest else []
    return [Segment(waits, segment.per_wait, limit_ns)] * whole + last


def steps_of(steps: StepPlan, cells: Iterable[Cell]) -> StepPlan:
    """Return how long these cells are measured: operations beside networks are shorter, and have no long block."""
    if steps.ceiling_rounds is None or networks_among(cells):
        return steps
    return replace(
        steps,
        cycles=min(steps.cycles, CEILING_CYCLES),
        warmup_s=min(steps.warmup_s, CEILING_WARMUP_S),
        warmup_steps=min(steps.warmup_steps, CEILING_WARMUP_STEPS),
        energy_s=0.0,
    )


def is_warm(plan: StepPlan, cell: Cell, spent_ns: int, steps: int, parts_ns: Sequence[float]) -> bool:
    """Return whether a warm-up ends: after its time and its least steps, or after as many steps as a request has.

    It ends earlier where its last part was no faster than those before it. The rule looks at one cell alone, and at
    nothing that is measured later. It ends, too, where it has taken OVERRUN_MOST times as long as at the pace of its
    fastest part.

    Args:
        plan: how long its cell is measured.
        cell: that warms up.
        spent_ns: since its first step.
        steps: that it ran.
        parts_ns: the pace of each of its parts.
    """
    if not parts_ns:
        return False
    least_ns = plan.warmup_s * 1e9
    planned_ns = max(least_ns, plan.warmup_steps * min(parts_ns))
    is_whole = spent_ns >= least_ns and steps >= plan.warmup_steps
    if ends_early(plan, cell) and len(parts_ns) > 1 and spent_ns >= (plan.warmup_least_s or 0.0) * 1e9:
        is_steady = parts_ns[-1] >= (1 - WARMING_LEAST) * min(parts_ns[:-1])
        is_whole |= is_steady and steps >= _warm_steps_least(plan, cell)
    return steps >= STEPS_MAX or is_whole or spent_ns >= OVERRUN_MOST * planned_ns


def ends_early(plan: StepPlan, cell: Cell) -> bool:
    """Return whether a cell's warm-up may end before its time: an accelerator's clock needs it, and ranks need more."""
    return plan.warmup_least_s is not None and cell.device == "cpu" and cell.devices == 1


def planned_warm_up_s(plan: StepPlan, cell: Cell, step_s: float = 0.0) -> float:
    """Return what a cell's warm-up takes, if its steps become no faster while it lasts."""
    if not ends_early(plan, cell):
        return max(plan.warmup_s, plan.warmup_steps * step_s)
    least_s = max(plan.warmup_least_s or 0.0, 2 * WARM_UP_PART_S)
    return max(least_s, _warm_steps_least(plan, cell) * step_s)


def _warm_steps_least(plan: StepPlan, cell: Cell) -> int:
    """Return the steps before which no warm-up ends: a user's program may compile for each of its first batches."""
    return min(plan.warmup_steps, WARM_STEPS_LEAST) if CATALOG[cell.backend].builds_workloads else plan.warmup_steps


def warm_up_segment(pace: Pace) -> Segment:
    """Return a part of a warm-up."""
    return _planned_waited(filling(WARM_UP_PART_S, pace.waited_ns), pace)


def probe_segments(pace: Pace) -> list[Segment]:
    """Return groups of some steps and of three times as many: their difference is steps without a wait."""
    steps = max(1, min(PROBE_STEPS, int(GROUP_MAX_S * 1e9 / pace.waited_ns)))
    return [planned(PROBES, pace.waited_ns, steps), planned(PROBES, pace.waited_ns, 3 * steps)]


def probed_pace(pace: Pace, segments: Sequence[Segment], waits_ns: Sequence[Steps]) -> Pace:
    """Return the pace, with so many steps a wait that waiting for the last of them costs less than WAIT_FRACTION.

    A wait costs what a step that is waited for takes longer than one that is not.
    """
    once_ns, thrice_ns = (float(groups_ns.min()) for groups_ns in waits_ns)
    steps, thrice = segments[0].per_wait, segments[1].per_wait
    with_wait_ns = thrice_ns / thrice
    step_ns = (thrice_ns - once_ns) / (thrice - steps) if thrice_ns > once_ns else with_wait_ns
    wait_ns = max(0.0, pace.waited_ns - step_ns)
    together = math.ceil(wait_ns / WAIT_FRACTION / step_ns)
    return Pace(pace.waited_ns, with_wait_ns, max(1, min(together, int(GROUP_MAX_S * 1e9 / with_wait_ns))))


def turns_of(plan: StepPlan, pace: Pace, least: int = TURN_STEPS) -> int:
    """Return in how many turns a block is taken: of `turn_s` each, and of `least` steps at least.

    A block of an accelerator is one turn: it waits for single steps and for groups of them.
    """
    if not plan.turn_s or pace.pipelined_ns:
        return 1
    turn_s = max(plan.turn_s, least * pace.waited_ns * pace.unevenness / 1e9)
    return max(1, int(plan.block_s / turn_s))


def block_segments(pace: Pace, seconds: float, lead_in_s: float, turns: int = 1) -> list[Segment]:
    """Return a lead-in, timed steps that are waited for, and on an accelerator groups that are waited for together.

    Without a lead-in one timed step is enough: of a command that takes longer than its block.
    Of several turns they are one turn's, which may use up the limit of the whole block: one stall would cut it else.
    """
    turn_s = seconds / turns
    waited_s = turn_s if not pace.pipelined_ns else turn_s * LATENCY_FRACTION
    lead_in = filling(lead_in_s, pace.waited_ns, is_rounded_up=True) if lead_in_s else 0
    least = TIMED_MIN if lead_in_s else 1
    segments = [
        _planned_waited(lead_in, pace),
        _planned_waited(filling(waited_s - lead_in_s, pace.waited_ns, least=least), pace),
    ]
    if pace.pipelined_ns:
        groups = filling(turn_s - waited_s, pace.pipelined_ns * pace.per_wait)
        segments.append(planned(groups, pace.pipelined_ns, pace.per_wait))
    return [segment._replace(limit_ns=turns * segment.limit_ns) for segment in segments]


def event_steps(pace: Pace) -> int:
    """Return how many steps host and device time together."""
    return max(1, min(EVENT_STEPS, int(EVENTS_S * 1e9 / pace.waited_ns)))


def has_energy(plan: RunPlan, number: int) -> bool:
    """Return whether workers have a long block in this round.

    Rounds after the last planned one are in place of disturbed ones, unless they are for a precision.
    """
    steps, suite = plan.suite.plan, plan.suite
    is_last = number >= suite.rounds - 1 if suite.precision_pct is None else number == suite.rounds - 1
    return steps.energy_s > 0 and (steps.energy_rounds == "all" or is_last)


def planned_energy_s(asked_s: float | None, sensors: Sequence[SensorReport], cells: Iterable[Cell]) -> float:
    """Return how long blocks for energy are, 0: there are none; at least what is asked for.

    Where no sensor tells a device of the cells there is one only if it is asked for: an external meter may.
    """
    names = [sensor.name for sensor in sensors if sensor.status != "unavailable"]
    whole = {name for kind in {cell.device for cell in cells} for name in DEVICES[kind].joule_sensors_among(names)}
    device_sensors = [sensor for sensor in sensors if sensor.name in whole]
    return long_block_s(device_sensors, asked_s or 0.0) if asked_s or (asked_s is None and whole) else 0.0


def long_block_s(sensors: Sequence[SensorReport], asked_s: float = 0.0) -> float:
    """Return how long a block has to be for these sensors: a hundred updates, ten seconds, and what alignment takes.

    What does not count at its begin comes on top.
    """
    period_ns = _period_ns(sensors)
    memory_ns = max((max(sensor.mean_over_ns or 0, sensor.lag_max_ns or 0) for sensor in sensors), default=0)
    aligned_ns = ALIGNED_ENDS * (period_ns + PERIOD_NS)
    needed_ns = max(WINDOW_MIN_NS, UPDATES_PLANNED * period_ns) + memory_ns + aligned_ns
    return max(asked_s, round(needed_ns / 1e9, 1))


def long_segment(pace: Pace, seconds: float) -> Segment:
    """Return a part of a block that has so many seconds left, and that must not end before them."""
    step_ns = pace.pipelined_ns or pace.waited_ns
    groups = filling(min(seconds, LONG_PART_S), step_ns * pace.per_wait, is_rounded_up=True)
    return planned(groups, step_ns, pace.per_wait)


def idle_s(sensors: Sequence[SensorReport]) -> float:
    """Return how long a stretch of idle is."""
    counters = [sensor for sensor in sensors if sensor.quantity == "energy" and sensor.status != "unavailable"]
    lag_max_ns = max((sensor.lag_max_ns or 0 for sensor in sensors if sensor.status != "unavailable"), default=0)
    return (max(IDLE_LEAST_NS, IDLE_UPDATES * _period_ns(counters)) + lag_max_ns) / 1e9


def _period_ns(sensors: Sequence[SensorReport]) -> int:
    return max((sensor.update_period_ns or PERIOD_UNKNOWN_NS for sensor in sensors), default=0)
