"""Does leaving cycles out bias a ratio? A simulation with a planted ratio; the kit's own functions choose and judge.

    python tests/bench/bench_clean_bias.py [--runs 2000] [--rounds 5] [--ratio 1.0 --ratio 1.5] [--sampled-ms 10]

Cells `a` and `b` take turns on two CPUs, 12 cycles of a round are planned. A step of `a` takes the ratio times a step
of `b`; both vary by the luck of the process in the round (SD 2 %), by the noise of the block (SD 6 % in `a`, 2 % in
`b`) and by the machine's drift, which they share. A CPU that others take makes steps of `a` 2.5 times and steps of `b`
1.5 times as long. A block is five turns that alternate with the other cell's; it has as many steps as fill 0.25 s at
the pace of the block before, so that what slows a step makes its block longer. Busy time is counted as Linux does it:
it is sampled every 4 ms (or 10, `--sampled-ms`) on each CPU and shown in whole ticks of 10 ms.

A disturbed cycle is measured again until 12 are clean or 24 have run. A round with less than 3 clean cycles is measured
again, too, up to half as many rounds as were planned. A run without any round that counts keeps all cycles, as the kit
does.

    chosen by        others ≤ 10 %: the kit's rule (`kit.compare.clean`) with this limit
                     time: what must not be done. A cycle counts by the steps' own times in the round, of both cells
    bias             mean over runs of the log-ratio, less the planted one, with its Monte Carlo error (SE), in percent
    holds            95 % intervals of a run that hold the planted ratio
    told apart       runs with the verdict "faster" or "slower": at a ratio of 1 false alarms
    cycles           that count, of those that ran, in a round that counts
    all kept         runs without a round that counts
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import NamedTuple

import numpy as np
from measuring import printed
from neighbours import BURST_S, MEAN_BURST_S

from kit.compare import clean as clean_rule
from kit.compare.table import LaunchRow
from kit.profile.cell import Cell
from kit.profile.schema import Blocks, Launch, Threads
from kit.runner.rounds_left import REPEATED_ROUNDS
from kit.runner.warm_up_and_blocks import REPEATS_MOST
from kit.stats.estimate import judge, over

PLANNED = 12
CYCLES = REPEATS_MOST * PLANNED
CPUS = 2
BLOCK_S, LEAD_IN_S, GAP_S, TURNS = 0.25, 0.01, 0.002, 5
STEP_S = 0.002
TICK_S = 0.010
SYSTEM = 0.01  # of the CPUs' time: the system's own work
LUCK_SD = 0.02
DRIFT_SD = 0.1  # of the log of the machine's speed, over a round
BEGIN_S = 30.0  # the neighbour has been there for so long
BURSTS = 60
LIMITS = (0.05, 0.10, 0.20)


class SimulatedCell(NamedTuple):
    """How a cell behaves."""

    excess: float  # a CPU that others take makes its steps 1 + excess times as long
    noise: float  # SD of the log of a block's step
    used: float  # of the CPU time that others leave


CELLS = (SimulatedCell(1.5, 0.06, 0.97), SimulatedCell(0.5, 0.02, 0.75))


class Neighbour(NamedTuple):
    """What others do: bursts that last `share` of the time, each of so many CPUs between `least` and `most`."""

    share: float
    least: float
    most: float


NEIGHBOURS = {
    "nobody": Neighbour(0.0, 0.0, 0.0),
    "bursts of one CPU, 40 % of the time": Neighbour(0.4, 1.0, 1.0),
    "bursts of 0.05 to 1 CPU, 60 % of the time": Neighbour(0.6, 0.05, 1.0),
    "always 9 % of both CPUs": Neighbour(1.0, 0.18, 0.18),
    "always 20 % of both CPUs": Neighbour(1.0, 0.40, 0.40),
}


class Curves:
    """A rising piecewise linear curve in each row; looked up for all rows at once."""

    def __init__(self, x, y):
        """Take the knots, (rows, knots) each."""
        self._x_step, self._y_step = x.max() + 1.0, y.max() + 1.0
        rows = np.arange(len(x))[:, None]
        self._x, self._y = (x + rows * self._x_step).ravel(), (y + rows * self._y_step).ravel()

    def y(self, rows, x):
        return np.interp(x + rows * self._x_step, self._x, self._y) - rows * self._y_step

    def x(self, rows, y):
        return np.interp(y + rows * self._y_step, self._y, self._x) - rows * self._x_step


class Disturbance:
    """What others take in each of some rounds, and how far the cells come beside them."""

    def __init__(self, neighbour, rounds, rng):
        shape, share = (rounds, BURSTS), neighbour.share
        if 0 < share < 1:
            pauses = rng.exponential(MEAN_BURST_S * (1 - share) / share, shape)
            lengths = np.exp(rng.uniform(*np.log(BURST_S), shape))
        else:
            pauses, lengths = np.full(shape, 1e-3), np.full(shape, 4.0)
        spans = np.stack([pauses, lengths], axis=2).reshape(rounds, -1)
        taken = np.zeros_like(spans)  # CPUs
        taken[:, 1::2] = rng.uniform(neighbour.least, neighbour.most, shape)
        times = self._sums(spans)
        self.end_s = times[:, -1].min()
        # The taken CPU time does not rise during a pause: a trifle makes the curve one that rises.
        self.taken_s = Curves(times, self._sums(spans * (taken + 1e-9)))
        # How much work a cell could have done until then, in seconds without neighbours; rows of a, then those of b.
        done = [self._sums(spans / (1 + cell.excess * taken)) for cell in CELLS]
        self.work_s = Curves(np.concatenate([times, times]), np.concatenate(done))

    @staticmethod
    def _sums(parts):
        return np.concatenate([np.zeros((len(parts), 1)), np.cumsum(parts, axis=1)], axis=1)


class Simulated(NamedTuple):
    """The blocks of all rounds; arrays are (cells, rounds, cycles)."""

    steps: np.ndarray
    duration_ns: np.ndarray
    span_ns: np.ndarray
    busy_ns: np.ndarray
    cpu_ns: np.ndarray

    def times_ns(self):
        return self.duration_ns / self.steps


class BusyCounter:
    """Busy time of the CPUs as /proc/stat has it, one in each row."""

    def __init__(self, rows, rng, every_s):
        self._rng, self._every_s = rng, every_s
        self._phase_s = rng.uniform(0, every_s, (rows, CPUS))
        self._sampled_s = rng.uniform(0, 1, (rows, CPUS))

    def shown_s(self):
        return (np.floor(self._sampled_s / TICK_S + 1e-6) * TICK_S).sum(axis=1)

    def run(self, begin_s, end_s, busy):
        """Go on, the CPUs being busy for this fraction of the time."""
        samples = [np.floor((at_s[:, None] - self._phase_s) / self._every_s) for at_s in (begin_s, end_s)]
        hits = self._rng.binomial((samples[1] - samples[0]).astype(int), np.minimum(1.0, busy)[:, None])
        self._sampled_s += hits * self._every_s


def simulate(neighbour, ratio, rounds, rng, sampled_s):
    """Return the blocks of so many rounds."""
    rows, beside = np.arange(rounds), Disturbance(neighbour, rounds, rng)
    _, noise, used = np.array(CELLS).T
    level = np.log(STEP_S) + np.log([ratio, 1.0])[:, None] + rng.normal(0, LUCK_SD, (2, rounds))
    drift = np.cumsum(rng.normal(0, DRIFT_SD / math.sqrt(CYCLES), (rounds, CYCLES)), axis=1)
    clean_s = np.exp(level[:, :, None] + drift + noise[:, None, None] * rng.normal(size=(2, rounds, CYCLES)))
    pace_s, at_s, counter = (
        np.exp(level),
        rng.uniform(BEGIN_S, 2 * BEGIN_S, rounds),
        BusyCounter(rounds, rng, sampled_s),
    )
    made = Simulated(*(np.zeros((2, rounds, CYCLES)) for _ in Simulated._fields))
    for cycle in range(CYCLES):
        leads_in = np.maximum(1, np.ceil(LEAD_IN_S / pace_s))
        steps_of_turn = np.maximum(2, np.rint((BLOCK_S / TURNS - LEAD_IN_S) / pace_s))
        for turn, member in product(range(TURNS), range(2)):
            if turn % 2 == member == 0:
                first = rng.integers(0, 2, rounds)
            cell = first if (turn + member) % 2 == 0 else 1 - first
            here, step_s = (cell, rows, cycle), clean_s[cell, rows, cycle]
            lead_in, steps = leads_in[cell, rows], steps_of_turn[cell, rows]
            places = cell * rounds + rows
            work_s = beside.work_s.y(places, at_s)
            timed_s = beside.work_s.x(places, work_s + lead_in * step_s)
            end_s = beside.work_s.x(places, work_s + (lead_in + steps) * step_s)
            span_s, shown_s = end_s - at_s, counter.shown_s()
            others_s = beside.taken_s.y(rows, end_s) - beside.taken_s.y(rows, at_s) + SYSTEM * CPUS * span_s
            cpu_s = used[cell] * (CPUS * span_s - others_s)
            counter.run(at_s, end_s, (others_s + cpu_s) / (CPUS * span_s))
            of_turn = steps, end_s - timed_s, span_s, counter.shown_s() - shown_s, cpu_s
            for array, values in zip(made, of_turn, strict=True):
                array[here] += values
            counter.run(end_s, end_s + GAP_S, np.full(rounds, SYSTEM))
            at_s = end_s + GAP_S
        pace_s = made.duration_ns[:, :, cycle] / made.steps[:, :, cycle]
    assert at_s.max() < beside.end_s, "a round lasts longer than the bursts that were drawn"
    in_ns = (np.rint(array * 1e9) for array in made[1:])
    return Simulated(made.steps, *in_ns)


def launches(blocks):
    """Return a launch of each cell with the blocks of all rounds: the rule judges each cycle, whatever its round."""
    cycles = list(range(blocks.steps[0].size))
    measured = []
    for place, name in enumerate("ab"):
        cell = Cell(
            workload="mlp",
            backend=name,
            device="cpu",
            task="train",
            batch=128,
            precision="float32",
            feed="device",
            compile_mode="jit",
        )
        steps, duration_ns, span_ns, busy_ns, cpu_ns = (array[place].ravel().tolist() for array in blocks)
        made = Blocks(
            cycle=cycles,
            begin_ns=cycles,
            span_ns=span_ns,
            lead_in=cycles,
            steps=steps,
            duration_ns=duration_ns,
            median_ns=duration_ns,
            counters={"machine.busy_ns": busy_ns, "process.cpu_ns": cpu_ns, "machine.steal_ns": [0] * len(steps)},
        )
        threads = Threads(requested=CPUS, reported=CPUS, reason=None, cpus=list(range(CPUS)))
        launch = Launch(cell_key=cell.key, group="g", round=0, process=name, started="", threads=threads, blocks=made)
        measured.append(LaunchRow(cell, launch, launch.blocks))
    return measured


@contextmanager
def limit_of(most) -> Iterator[None]:
    """Let the kit's rule have another limit."""
    before = clean_rule.OTHERS_MOST
    clean_rule.OTHERS_MOST = most
    try:
        yield
    finally:
        clean_rule.OTHERS_MOST = before


def by_others(most, blocks, measured):
    with limit_of(most):
        # All rounds are judged as one, so the limit of a round's mean is not in it. It matters where a block may show
        # more than the limit by chance, as here with 5 % alone.
        clean_rule.clean_cycles(measured, PLANNED)
    flags = [cycle not in measured[0].left_out for cycle in measured[0].blocks.cycle]
    return np.reshape(flags, blocks.steps[0].shape)


def by_median(blocks, _measured):
    times_ns = blocks.times_ns()
    return (times_ns <= np.median(times_ns, axis=2, keepdims=True)).all(axis=0)


def by_fastest(blocks, _measured):
    times_ns = blocks.times_ns()
    return (times_ns <= 1.2 * times_ns.min(axis=2, keepdims=True)).all(axis=0)


# Returns which cycles are clean, (rounds, cycles).
Chosen = Callable[[Simulated, list], np.ndarray]
RULES: dict[str, Chosen] = {"all cycles": lambda blocks, _: np.ones(blocks.steps[0].shape, bool)}
for _most in LIMITS:
    RULES[f"others ≤ {100 * _most:.0f} %"] = lambda *of, most=_most: by_others(most, *of)
RULES["time ≤ its median"] = by_median
RULES["time ≤ 1.2 × fastest"] = by_fastest


def log_ratio(blocks, number, cycles):
    """Return the log-ratio of a round, by these cycles."""
    steps, duration_ns = blocks.steps[:, number, cycles], blocks.duration_ns[:, number, cycles]
    mine, yours = duration_ns / steps
    return float(np.median(np.log(mine / yours))) if mine.size else None


def run_logs(blocks, clean, numbers, planned):
    """Return the log-ratios of one run's rounds that count and their cycles, counted and ran; whether all were kept.

    `numbers`: of its rounds, those that repeat others at the end.
    """
    logs, cycles = [], []
    for number in numbers:
        taken = np.flatnonzero(clean[number])[:PLANNED]
        ran = taken[-1] + 1 if taken.size == PLANNED else CYCLES
        if taken.size >= clean_rule.CYCLES_LEAST:
            logs.append(log_ratio(blocks, number, taken))
            cycles.append((taken.size, ran))
        if len(logs) == planned:
            break
    if logs:
        return logs, cycles, False
    return (
        [log_ratio(blocks, number, np.arange(PLANNED)) for number in numbers[:planned]],
        [(PLANNED, PLANNED)] * planned,
        True,
    )


def rows_of(neighbour, ratio, runs, planned, rng, sampled_s):  # noqa: PLR0917
    """Yield the table's row of each rule."""
    each = planned + math.ceil(REPEATED_ROUNDS * planned)
    blocks = simulate(neighbour, ratio, runs * each, rng, sampled_s)
    measured = launches(blocks)
    for name, rule in RULES.items():
        clean = rule(blocks, measured)
        of_runs = [run_logs(blocks, clean, range(run * each, (run + 1) * each), planned) for run in range(runs)]
        means = np.array([np.mean(logs) for logs, _, _ in of_runs]) - math.log(ratio)
        judged = [judge([over(logs)])[0] for logs, _, _ in of_runs]
        intervals = [versus.log_interval() for versus in judged if versus.has_interval]
        holds = np.mean([low <= math.log(ratio) <= high for low, high in intervals])
        differs = np.mean([versus.verdict in ("faster", "slower") for versus in judged])
        cycles = np.mean([counts for _, of_rounds, _ in of_runs for counts in of_rounds], axis=0)
        kept = np.mean([is_kept for _, _, is_kept in of_runs])
        bias = f"{100 * means.mean():+.2f} ± {100 * means.std() / math.sqrt(runs):.2f} %"
        shares = [f"{100 * value:.1f} %" for value in (holds, differs)]
        yield name, bias, *shares, "{:.1f} of {:.1f}".format(*cycles), f"{100 * kept:.0f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="simulated, of each line (default: 2000)")
    parser.add_argument("--rounds", type=int, default=5, help="planned, of a run (default: 5)")
    parser.add_argument("--ratio", type=float, action="append", help="planted (default: 1, 1.05 and 1.5)")
    parser.add_argument("--sampled-ms", type=float, default=4.0, help="a tick of the kernel (default: 4)")
    arguments = parser.parse_args()
    begin_s = time.perf_counter()
    for place, (title, neighbour) in enumerate(NEIGHBOURS.items()):
        rows = [(title, "ratio", "bias", "holds", "told apart", "cycles", "all kept")]
        for ratio in arguments.ratio or (1.0, 1.05, 1.5):
            rng = np.random.default_rng([place, round(1000 * ratio)])
            of_ratio = rows_of(neighbour, ratio, arguments.runs, arguments.rounds, rng, arguments.sampled_ms / 1e3)
            rows += [(name, f"{ratio:g}", *columns) for name, *columns in of_ratio]
        printed(rows)
        print(flush=True)
    print(f"{arguments.runs} runs of {arguments.rounds} rounds a line; {time.perf_counter() - begin_s:.0f} s")


if __name__ == "__main__":
    main()
