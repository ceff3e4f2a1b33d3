"""Pipelined steps of an accelerator: many steps, then one wait, as a training loop runs that looks at no step's result.

    step wait step wait step wait …    latency: what a step takes, and its wait
    step step step … step wait  …      step time: k steps a wait, k so large that the wait is under 1 % of them

Between waits the device never idles: the host is ahead of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from statistics import median
from typing import NamedTuple

from kit.backends.protocol import DeviceBatch, Output, Stepping
from kit.clock import now_ns

# What a wait may cost of its steps.
WAIT_SHARE = 0.01
# So many steps show what one costs without its wait, to some percent.
PROBE_STEPS = 50
# Each takes microseconds; the median leaves out what a stall adds to some.
EMPTY_WAITS = 20
# Steps of seconds are not gathered by the hundred: a group takes this long at most, and its wait is nothing beside it.
GROUP_MAX_S = 1.0


class Pipelined(NamedTuple):
    """Steps of which only each `per_wait`-th was waited for."""

    per_wait: int
    steps: int
    duration_ns: int
    output: Output  # of the last step


def steps_per_wait(program: Stepping, batches: Iterator[DeviceBatch], latency_ns: float) -> int:
    """Return k: so many steps that waiting for the last of them costs less than WAIT_SHARE.

    A wait costs what a waited-for step takes longer than one that is not. What that takes is the difference of two
    groups, which both have one wait.

    Args:
        program: warm.
        batches: of its steps.
        latency_ns: of one step and its wait.
    """
    probe = max(1, min(PROBE_STEPS, int(GROUP_MAX_S * 1e9 / latency_ns)))
    # The least of three: what a stall adds to one would decide k.
    once_ns, thrice_ns = (min(_run(program, batches, steps)[0] for _ in range(3)) for steps in (probe, 3 * probe))
    with_wait_ns = thrice_ns / (3 * probe)
    step_ns = (thrice_ns - once_ns) / (2 * probe) if thrice_ns > once_ns else with_wait_ns
    wait_ns = max(0.0, latency_ns - step_ns)
    return max(1, min(math.ceil(wait_ns / WAIT_SHARE / step_ns), int(GROUP_MAX_S * 1e9 / with_wait_ns)))


def empty_wait_ns(program: Stepping) -> int:
    """Return what a wait takes with nothing to wait for, the median of EMPTY_WAITS."""
    waits_ns = []
    program.synchronize()
    for _ in range(EMPTY_WAITS):
        begin_ns = now_ns()
        program.synchronize()
        waits_ns.append(now_ns() - begin_ns)
    return round(median(waits_ns))


def run_pipelined(
    program: Stepping,
    batches: Iterator[DeviceBatch],
    per_wait: int,
    seconds: float,
    agree: Callable[[int], int] = int,
    *,
    never_shorter: bool = False,
) -> Pipelined:
    """Run groups of `per_wait` steps, one at least, until `seconds` are over.

    Args:
        program: warm.
        batches: of its steps.
        per_wait: how many steps a group has.
        seconds: to fill; the last group ends less than half of itself before or after.
        agree: returns what rank 0 was given, so that all ranks run as many groups. The next group waits for ranks that
            wake up with the word, so it is asked for all groups that are left and not for each.
        never_shorter: the last group ends after them, never before.
    """
    duration_ns, steps, output = 0, 0, None
    rounded = math.ceil if never_shorter else round
    groups = 1
    while groups > 0:
        for _ in range(groups):
            group_ns, output = _run(program, batches, per_wait)
            duration_ns += group_ns
            steps += per_wait
        mean_group_ns = max(1, duration_ns) * per_wait / steps
        groups = agree(rounded((seconds * 1e9 - duration_ns) / mean_group_ns))
    return Pipelined(per_wait, steps, duration_ns, output)


def _run(program: Stepping, batches: Iterator[DeviceBatch], steps: int) -> tuple[int, Output]:
    """Return how long so many steps and one wait took, in nanoseconds; nothing is left to do when they begin."""
    step, output = program.step, None
    begin_ns = now_ns()
    try:
        for batch in islice(batches, steps):
            output = step(batch)
    except BaseException:
        # Of the steps before the one that failed some may still run: they are nobody else's blocks.
        with suppress(Exception):
            program.synchronize()
        raise
    program.synchronize()
    return now_ns() - begin_ns, output
