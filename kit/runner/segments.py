"""How many steps a worker is asked for: pure functions of its pace, which its last answer shows.

CPU          lead-in │ step, step, step …                          each waited for
accelerator  lead-in │ step, step …  (latency) │ k steps, k steps … (step time)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kit.profile.schema import Blocks
from kit.profile.store import Steps
from kit.worker.messages import Segment

# After a warm-up that speeds up, and between blocks, the pace is that of the last steps.
PACE_STEPS = 10
# A request has at most so many steps: its stamps take 1.6 MB.
STEPS_MAX = 200_000
# However long they are, a block has at least so many timed steps.
TIMED_MIN = 2
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
# A long block is asked for in parts, as its pace may change: between two the worker idles for some 0.0003 s.
LONG_PART_S = 1.0
# Events have a resolution of half a microsecond, and the group's one wait costs some: over so many steps both vanish.
EVENT_STEPS, EVENTS_S = 100, 0.5


class Pace(NamedTuple):
    """What the steps of a program take."""

    waited_ns: float  # a step that is waited for by itself
    pipelined_ns: float = 0.0  # a step of those that are waited for together; 0: there are none
    per_wait: int = 1  # how many steps are waited for together

    def after(self, segments: Sequence[Segment], waits_ns: Sequence[Steps]) -> Pace:
        """Return the pace after a block."""
        if not self.pipelined_ns:
            return Pace(pace_ns(waits_ns[-1]))
        _, waited_ns, groups_ns = waits_ns
        return Pace(pace_ns(waited_ns), float(groups_ns.mean()) / segments[-1].per_wait, self.per_wait)

    def after_groups(self, step_ns: float) -> Pace:
        """Return the pace after a block that had nothing but steps of this mean."""
        return self._replace(pipelined_ns=step_ns) if self.pipelined_ns else self._replace(waited_ns=step_ns)


def pace_ns(waits_ns: Steps) -> float:
    """Return the median of the last steps."""
    return max(1.0, float(np.median(waits_ns[-PACE_STEPS:])))


def filling(seconds: float, step_ns: float, *, least: int = 1, is_rounded_up: bool = False) -> int:
    """Return how many steps fill so many seconds."""
    steps = seconds * 1e9 / step_ns
    return min(max(least, math.ceil(steps) if is_rounded_up else round(steps)), STEPS_MAX)


def block_segments(pace: Pace, seconds: float, lead_in_s: float) -> list[Segment]:
    """Return a lead-in, timed steps that are waited for, and on an accelerator groups that are waited for together."""
    waited_s = seconds if not pace.pipelined_ns else seconds * LATENCY_FRACTION
    segments = [
        Segment(filling(lead_in_s, pace.waited_ns, is_rounded_up=True)),
        Segment(filling(waited_s - lead_in_s, pace.waited_ns, least=TIMED_MIN)),
    ]
    if pace.pipelined_ns:
        groups = filling(seconds - waited_s, pace.pipelined_ns * pace.per_wait)
        segments.append(Segment(groups, pace.per_wait))
    return segments


def long_segments(pace: Pace, seconds: float) -> list[Segment]:
    """Return a part of a block that has so many seconds left, and that must not end before them."""
    group_ns = (pace.pipelined_ns or pace.waited_ns) * pace.per_wait
    return [Segment(filling(min(seconds, LONG_PART_S), group_ns, is_rounded_up=True), pace.per_wait)]


def warm_up_segments(pace: Pace) -> list[Segment]:
    """Return a part of a warm-up."""
    return [Segment(filling(WARM_UP_PART_S, pace.waited_ns))]


def probe_segments(pace: Pace) -> list[Segment]:
    """Return groups of some steps and of three times as many: their difference is steps without a wait."""
    steps = max(1, min(PROBE_STEPS, int(GROUP_MAX_S * 1e9 / pace.waited_ns)))
    return [Segment(PROBES, steps), Segment(PROBES, 3 * steps)]


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


def event_steps(pace: Pace) -> int:
    """Return how many steps host and device time together."""
    return max(1, min(EVENT_STEPS, int(EVENTS_S * 1e9 / pace.waited_ns)))


class Groups(NamedTuple):
    """Steps of which only each `per_wait`-th was waited for."""

    per_wait: int
    steps: int
    duration_ns: int


class Ran(NamedTuple):
    """The steps of one block."""

    lead_in: int
    step_ns: Steps  # of each step that was waited for by itself, shape (lead-in and timed steps,)
    groups: Groups | None = None  # the steps that count, where they have no times of their own

    def as_blocks(self, cycle: int, begin_ns: int, span_ns: int, counters: Mapping[str, int | None]) -> Blocks:
        """Return them as the one block of `Blocks`."""
        waited_ns, groups = self.step_ns[self.lead_in :], self.groups
        return Blocks(
            cycle=[cycle],
            begin_ns=[begin_ns],
            span_ns=[span_ns],
            lead_in=[self.lead_in],
            steps=[waited_ns.size if groups is None else groups.steps],
            duration_ns=[int(waited_ns.sum()) if groups is None else groups.duration_ns],
            median_ns=[round(float(np.median(waited_ns))) if waited_ns.size else None],
            waited_steps=[] if groups is None else [waited_ns.size],
            per_wait=[] if groups is None else [groups.per_wait],
            counters={name: [difference] for name, difference in counters.items()},
        )
