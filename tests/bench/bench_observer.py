"""What watching costs the watched step: Steadykit's sampler beside codecarbon and zeus, each as it comes.

    pip install --target TOOLS codecarbon zeus
    python tests/bench/bench_observer.py --tools TOOLS [--minutes 20] [--threads N]
    python tests/bench/bench_observer.py                             (without them: Steadykit's sampler alone)

One process, one step (PyTorch, mlp, train, batch 128). The contestants take turns; within a turn, blocks of steps with
the contestant on alternate with blocks with nothing, in the order of `kit doctor --observer`, and each pair of
neighbours gives a ratio. A line has the geometric mean of the ratios with its 95 % interval (paired t on logarithms):
of the mean step, which is what a program takes in all, and of the median step, which does not see what happens once in
many steps.

    steadykit        its sampler, a process of its own, ten samples a second; stopped by SIGSTOP
    codecarbon       OfflineEmissionsTracker: threads in the program, power every second and energy every 15 s; each of
                     its blocks is long enough for one of these; start and stop are told apart from the steps
    zeus, epoch      ZeusMonitor, one window a block
    zeus, step       ZeusMonitor, one window a step

TOOLS is a folder of its own because both bring dependencies; it is searched last, so the kit's own versions count.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from importlib.metadata import version
from itertools import cycle

import numpy as np

from kit import clock
from kit.stats.interval import geometric_estimate
from kit.worker.observer import SAMPLES_PER_BLOCK, in_turn
from kit.worker.sampler import DEFAULT_PERIOD_S
from kit.worker.sampler_process import SamplerProcess
from kit.worker.step_loop import run_steps

BATCH = 128
WARMUP_S = 3.0
SETTLE_S = 0.01
SHORT_BLOCK_S = SAMPLES_PER_BLOCK * DEFAULT_PERIOD_S
# One of codecarbon's measurements, 15 s apart, falls into every block, also where steps get faster within it.
CODECARBON_BLOCK_S = 20.0


class Steadykit:
    name = "steadykit"
    block_s = SHORT_BLOCK_S

    def __init__(self):
        self._sampler = SamplerProcess()
        self._sampler.start()
        self.off()

    def on(self):
        if not self._sampler.resume():
            sys.exit("steadykit: the sampler has ended")

    def off(self):
        if not self._sampler.pause():
            sys.exit("steadykit: the sampler has ended")

    def around(self, program):
        return program

    def words(self, on_s):
        self._sampler.stop()
        ticks = self._sampler.samples.ticks
        spent_s = (ticks[-1].sampler_cpu_ns - ticks[0].sampler_cpu_ns) / 1e9
        # One sample more than is due each time it goes on: in steps that are not counted.
        return f"{len(ticks) / on_s:.1f} samples a second; CPU {100 * spent_s / on_s:.2f} % of one core"


class Codecarbon:
    name = "codecarbon"
    block_s = CODECARBON_BLOCK_S

    def __init__(self, folder):
        from codecarbon import OfflineEmissionsTracker

        logging.getLogger("codecarbon").setLevel(logging.CRITICAL)
        self._new = lambda: OfflineEmissionsTracker(country_iso_code="USA", output_dir=folder, log_level="critical")
        self._start_s, self._stop_s = [], []
        self._tracker = self._data = None

    def on(self):
        begin = time.perf_counter()
        self._tracker = self._new()
        self._tracker.start()
        self._start_s.append(time.perf_counter() - begin)

    def off(self):
        if self._tracker is None:
            return
        begin = time.perf_counter()
        self._tracker.stop()
        self._stop_s.append(time.perf_counter() - begin)
        # An error inside it is logged and passed over; this is there only if it has measured.
        self._data = self._tracker.final_emissions_data
        self._tracker = None

    def around(self, program):
        return program

    def words(self, _on_s):
        data = self._data
        return (
            f"start {np.median(self._start_s):.2f} s, stop {np.median(self._stop_s):.2f} s; says CPU "
            f"{data.cpu_power:.1f} W, RAM {data.ram_power:.1f} W, GPU {data.gpu_power:.1f} W"
        )


class Zeus:
    block_s = SHORT_BLOCK_S

    def __init__(self, every_step):
        from zeus.monitor import ZeusMonitor

        self.name = "zeus, step" if every_step else "zeus, epoch"
        self._every_step = every_step
        self._monitor = ZeusMonitor()
        self._window = None

    def on(self):
        if not self._every_step:
            self._monitor.begin_window("epoch")

    def off(self):
        if not self._every_step and "epoch" in self._monitor.measurement_states:
            self._window = self._monitor.end_window("epoch")

    def around(self, program):
        return _WindowEachStep(program, self._monitor) if self._every_step else program

    def words(self, _on_s):
        found = f"GPUs {self._monitor.gpu_indices}, CPUs {self._monitor.cpu_indices}"
        return found if self._monitor.gpu_indices or self._monitor.cpu_indices else f"{found}: windows hold time alone"


class _WindowEachStep:
    def __init__(self, program, monitor):
        self._program, self._monitor = program, monitor

    def step(self, batch):
        self._monitor.begin_window("step")
        return self._program.step(batch)

    def synchronize(self):
        self._program.synchronize()
        self._monitor.end_window("step")


def build(threads):
    from kit.backends.load import load
    from kit.suites.plan import plan_cells
    from kit.suites.suite import Axes
    from kit.workloads.catalog import WORKLOADS
    from kit.workloads.data import dataset
    from kit.workloads.data.batches import POOL_BATCHES, batch_pool
    from kit.workloads.weights import initial_weights

    backend = load("torch")
    backend.set_threads(threads)
    (cell,) = plan_cells(Axes(workloads=["mlp"], backends=["torch"], tasks=["train"], batches=[BATCH]))
    workload = WORKLOADS[cell.workload]
    data = dataset.load("synthetic", splits=("train",))
    pool = batch_pool(workload, *data.split("train"), BATCH, POOL_BATCHES, 0)
    program = backend.build(workload, cell, initial_weights(workload, 0), 0)
    program.trace()
    program.compile()
    return program, cycle([program.put(batch) for batch in pool])


def block(program, batches, steps):
    """Step times of one block, shape (steps,)."""
    return run_steps(program, batches, steps, clock.stamps(steps + 1), None).step_ns


def pace_of(program, batches):
    """Seconds a step."""
    return float(np.median(block(program, batches, 50))) / 1e9


class Turns:
    """Blocks of one contestant, pair by pair."""

    def __init__(self, contestant):
        self.contestant = contestant
        self.on_s = 0.0
        self.found = {True: [], False: []}  # on, off -> (mean, median) of each block

    def take(self, program, batches, turn_s):
        """One turn: at least one on-off and one off-on pair."""
        pace_s = pace_of(program, batches)
        steps = max(5, round(self.contestant.block_s / pace_s))
        settling = max(1, round(SETTLE_S / pace_s))
        on = self.contestant.around(program)
        for is_on in in_turn(max(2, 2 * round(turn_s / (4 * steps * pace_s)))):
            begin = time.perf_counter()
            if is_on:
                self.contestant.on()
            block(on if is_on else program, batches, settling)
            step_ns = block(on if is_on else program, batches, steps)
            if is_on:
                self.contestant.off()
                self.on_s += time.perf_counter() - begin
            self.found[is_on].append((step_ns.mean(), np.median(step_ns)))

    def line(self):
        ratios = np.array(self.found[True]) / np.array(self.found[False])
        cells = []
        for column in ratios.T:
            estimate = geometric_estimate(column.tolist())
            cells.append(f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]")
        words = self.contestant.words(self.on_s)
        return f"{self.contestant.name:<12}{len(ratios):>6}   {cells[0]:<26}{cells[1]:<26}{words}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", metavar="FOLDER", help="where codecarbon and zeus were installed")
    parser.add_argument("--minutes", type=float, default=20.0, help="about how long, all contestants together")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the step")
    arguments = parser.parse_args()
    program, batches = build(arguments.threads)
    end = time.perf_counter() + WARMUP_S
    while time.perf_counter() < end:
        pace_s = pace_of(program, batches)
    with tempfile.TemporaryDirectory() as folder:
        contestants = [Steadykit()]
        tools = ""
        if arguments.tools:
            sys.path.append(arguments.tools)
            contestants += [Codecarbon(folder), Zeus(every_step=False), Zeus(every_step=True)]
            tools = f", codecarbon {version('codecarbon')}, zeus {version('zeus')}"
        turns = [Turns(contestant) for contestant in contestants]
        turn_s = 4 * CODECARBON_BLOCK_S if arguments.tools else 10.0
        rounds = max(1, round(arguments.minutes * 60 / (turn_s * len(turns))))
        threads = f"{arguments.threads} threads, {pace_s * 1e3:.2f} ms a step"
        print(f"torch mlp train, batch {BATCH}, {threads}{tools}; {rounds} rounds", flush=True)
        for number in range(rounds):
            for one in turns if number % 2 == 0 else turns[::-1]:
                one.take(program, batches, turn_s)
        print(f"{'':<12}{'pairs':>6}   {'mean step, on / off':<26}{'median step, on / off':<26}")
        for one in turns:
            print(one.line(), flush=True)


if __name__ == "__main__":
    main()
