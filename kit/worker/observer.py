"""The observer test: what the sampler costs the steps it watches.

    steps    ├ on ┤├ off ┤├ off ┤├ on ┤├ off ┤├ on ┤├ on ┤├ off ┤ …      a block: the same number of steps each
    sampler  ▪▪▪▪▪▪              ▪▪▪▪▪▪       ▪▪▪▪▪▪▪▪▪▪▪▪               ten samples a second, or stopped
             └── pair ───┘└── pair ───┘└── pair ───┘└── pair ───┘

It runs when everything else has been taken of the steps, with a sampler of its own: what happens here, be it the death
of that sampler, touches neither utilization nor energy nor missed samples of the steady phase.

The sampler is stopped and continued by signals, not ended and started again: starting one takes a fifth of a second of
CPU, which would fall on blocks that are to show what *sampling* costs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit import clock
from kit.backends.protocol import DeviceBatch, Program
from kit.clock import now_ns
from kit.profile.clock import Calibration, ClockSource
from kit.profile.launch import ObserverBlocks
from kit.worker.sampler import DEFAULT_PERIOD_S
from kit.worker.sampler_process import SamplerProcess
from kit.worker.samples import Samples
from kit.worker.step_loop import run_steps

# A block holds more than one, and no more than it must: the machine's other work comes in bursts of seconds, and in the
# same time short blocks gave half the interval that blocks of half a second gave (docs/observer.md).
SAMPLES_PER_BLOCK = 2
# The median of fewer is little better than one step.
STEPS_PER_BLOCK_MIN = 5
# Not counted, at the begin of each block: a sampler that goes on has a deadline behind it and samples at once.
SETTLE_NS = 10_000_000
# Fewer give an interval that says nothing: with four, 3.2 standard errors to either side.
PAIRS_MIN = 4
# A sampler that gets no CPU costs nothing, and would be found to cost nothing.
SAMPLES_SEEN_MIN = 0.8


class Division(NamedTuple):
    """How the time is divided."""

    pairs: int  # even: as many begin with the sampler running as with it stopped
    settling: int  # steps at the begin of a block that are not counted
    steps: int  # a block, counted


class Block(NamedTuple):
    """Consecutive steps with the sampler running (`sampling`) or stopped."""

    sampling: bool
    begin_ns: int
    end_ns: int
    step_ns: NDArray[np.int64]


def observe(
    program: Program,
    batches: Iterator[DeviceBatch],
    *,
    seconds: float,
    steady_ns: NDArray[np.int64],
    source: ClockSource,
    calibration: Calibration | None,
) -> ObserverBlocks:
    """Run the blocks; none, with the reason, where they do not fit or the sampler does not do its part.

    Args:
        program, batches: as in the steady phase.
        seconds: about how long.
        steady_ns: steady step times, shape (steps,): the pace.
        source, calibration: of the stamps.
    """
    pace_ns = float(np.median(steady_ns))
    division = divide(seconds, pace_ns)
    if division.pairs < PAIRS_MIN:
        needed_s = 2 * PAIRS_MIN * (division.settling + division.steps) * pace_ns / 1e9
        return _none(f"{seconds:g} s are too short for {PAIRS_MIN} pairs of blocks: {needed_s:.3g} s are needed")
    settling, stamps = clock.stamps(division.settling + 1, source), clock.stamps(division.steps + 1, source)
    # Not counted: what ran since the steady phase has left its traces in the caches.
    run_steps(program, batches, division.steps, stamps, calibration)
    taken: list[Block] = []
    with SamplerProcess() as sampler:
        for sampling in in_turn(division.pairs):
            if not (sampler.resume() if sampling else sampler.pause()):
                break
            settling.clear()
            run_steps(program, batches, division.settling, settling, calibration)
            stamps.clear()
            begin_ns = now_ns()
            stretch = run_steps(program, batches, division.steps, stamps, calibration)
            taken.append(Block(sampling, begin_ns, now_ns(), stretch.step_ns))
    refusal = sampler.samples.ended if len(taken) < 2 * division.pairs else unseen(sampler.samples, taken)
    return _none(refusal) if refusal else _summary(taken)


def divide(seconds: float, pace_ns: float) -> Division:
    """Blocks of about `SAMPLES_PER_BLOCK` sampler periods that fill `seconds`, at `pace_ns` a step."""
    settling = max(1, round(SETTLE_NS / pace_ns))
    steps = max(STEPS_PER_BLOCK_MIN, round(SAMPLES_PER_BLOCK * DEFAULT_PERIOD_S * 1e9 / pace_ns))
    pairs = 2 * int(seconds * 1e9 / (4 * (settling + steps) * pace_ns))
    return Division(pairs, settling, steps)


def in_turn(pairs: int) -> list[bool]:
    """Whether the sampler runs, block by block: on off off on, or off on on off, drawn for each two pairs.

    Drift cancels within two pairs (ABBA); that they are drawn keeps other work that comes back every few blocks from
    falling on one side alone.
    """
    draw = random.Random(0)
    turns: list[bool] = []
    for _ in range(0, pairs, 2):
        first = draw.random() < 0.5  # noqa: PLR2004 - even odds
        turns += [first, not first, not first, first]
    return turns


def unseen(samples: Samples, taken: Sequence[Block]) -> str | None:
    """Why the running blocks do not show what sampling costs; None if they do."""
    running = [block for block in taken if block.sampling]
    running_ns = sum(block.end_ns - block.begin_ns for block in running)
    seen = sum(len(samples.within(block.begin_ns, block.end_ns)) for block in running)
    due = running_ns / samples.period_ns
    if seen >= SAMPLES_SEEN_MIN * due:
        return None
    return f"the sampler took {seen} samples where {due:.0f} were due: it did not get a CPU, so its cost was not seen"


def _summary(taken: Sequence[Block]) -> ObserverBlocks:
    on = [block.step_ns for block in taken if block.sampling]
    off = [block.step_ns for block in taken if not block.sampling]
    return ObserverBlocks(
        on_ns=[round(float(np.median(step_ns))) for step_ns in on],
        off_ns=[round(float(np.median(step_ns))) for step_ns in off],
        on_mean_ns=[round(float(step_ns.mean())) for step_ns in on],
        off_mean_ns=[round(float(step_ns.mean())) for step_ns in off],
        steps_per_block=len(taken[0].step_ns),
    )


def _none(reason: str) -> ObserverBlocks:
    return ObserverBlocks(on_ns=[], off_ns=[], on_mean_ns=[], off_mean_ns=[], steps_per_block=0, reason=reason)
