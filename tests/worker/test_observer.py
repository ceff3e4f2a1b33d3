"""The observer test with a planted program, the real sampler and the real clock; and in real launches."""

import os
import signal
import threading
import time
from itertools import cycle
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from kit.backends.protocol import Output
from kit.clock import now_ns
from kit.worker import observer
from kit.worker.observer import Block, divide, in_turn, observe, unseen
from kit.worker.sampler_process import SamplerProcess
from kit.worker.samples import Samples, Tick

MS = 1_000_000


class Spinning:
    """A program whose step keeps the CPU busy for a millisecond; `before_step` is called with the step's number."""

    def __init__(self, before_step=lambda number: None):
        self.steps = 0
        self._before_step = before_step

    def step(self, batch) -> Output:
        self._before_step(self.steps)
        self.steps += 1
        end_ns = now_ns() + MS
        while now_ns() < end_ns:
            pass

    def synchronize(self):
        pass


def run(program, seconds=2.0):
    return observe(
        program,
        cycle([None]),
        seconds=seconds,
        steady_ns=np.full(100, MS),
        source="monotonic_raw",
        calibration=None,
    )


def samplers():
    """Sampler processes of this one."""
    return [child for child in psutil.Process().children() if "kit.worker.sampler" in child.cmdline()]


@pytest.mark.parametrize("pace_ns", [10_000, MS, 7 * MS, 300 * MS])
def test_blocks_hold_samples_and_steps_and_fill_the_time(pace_ns):
    pairs, settling, steps = divide(30.0, pace_ns)
    assert pairs % 2 == 0
    assert steps >= observer.STEPS_PER_BLOCK_MIN
    assert settling >= 1
    assert settling * pace_ns >= 0.5 * observer.SETTLE_NS
    if steps > observer.STEPS_PER_BLOCK_MIN:
        assert 0.19e9 < steps * pace_ns < 0.21e9
    total_ns = 2 * pairs * (settling + steps) * pace_ns
    assert 30e9 - 4 * (settling + steps) * pace_ns < total_ns <= 30e9


def test_the_order_within_pairs_is_drawn_and_lets_drift_and_rhythms_fall_on_both_alike():
    on = np.array(in_turn(100))
    assert len(on) == 200
    assert (on[0::2] != on[1::2]).all()  # each pair has one of each
    place = np.arange(200)
    assert place[on].sum() == place[~on].sum()
    # Other work that comes back every few blocks: half of it on either side, to within chance (200 blocks: 0.07).
    for period in range(2, 12):
        busy = place % period == 0
        assert abs(busy[on].mean() - busy[~on].mean()) < 0.15, period


def test_the_sampler_samples_in_the_running_blocks_and_in_no_other(monkeypatch):
    seen = []
    monkeypatch.setattr(observer, "unseen", lambda *judged: seen.extend(judged))
    found = run(Spinning())
    samples, blocks = seen
    pairs, _, steps = divide(2.0, MS)
    assert found.reason is None
    assert (len(found.on_ns), len(found.off_ns), len(found.on_mean_ns), len(found.off_mean_ns)) == (pairs,) * 4
    assert found.steps_per_block == steps
    assert min(found.on_ns + found.off_ns) >= MS
    inside = {
        sampling: sum(
            len(samples.within(block.begin_ns, block.end_ns)) for block in blocks if block.sampling is sampling
        )
        for sampling in (True, False)
    }
    assert inside[True] >= pairs
    assert inside[False] == 0
    assert samplers() == []


def test_too_short_a_time_says_how_much_is_needed():
    found = run(Spinning(), seconds=0.5)
    assert found.reason == "0.5 s are too short for 4 pairs of blocks: 1.68 s are needed"
    assert found.on_ns == found.off_ns == []


def test_a_sampler_that_is_killed_costs_the_blocks_and_says_so():
    def kill_in_the_middle(number):
        if number == 900:
            samplers()[0].kill()

    found = run(Spinning(kill_in_the_middle))
    assert "killed: signal 9" in found.reason
    assert found.on_ns == []
    assert found.steps_per_block == 0


def test_a_sampler_that_cannot_be_started_says_so(monkeypatch):
    program = Spinning()
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    found = run(program)
    assert "could not be started" in found.reason
    # No block was run for nothing, but the one that is not counted.
    assert program.steps == divide(2.0, MS).steps


def test_a_sampler_that_got_no_cpu_is_not_taken_for_a_cheap_one():
    taken = [Block(place % 2 == 0, place * 200 * MS, (place + 1) * 200 * MS, np.full(5, MS)) for place in range(8)]
    every = [Tick(at_ns, 0, []) for at_ns in range(0, 1600 * MS, 100 * MS)]
    assert unseen(Samples(ticks=every, period_ns=100 * MS), taken) is None
    refusal = unseen(Samples(ticks=every[::3], period_ns=100 * MS), taken)
    assert "samples where 8 were due" in refusal
    assert "did not get a CPU" in refusal


def test_a_paused_sampler_is_off_the_cpu_and_goes_on_where_it_was():
    with SamplerProcess(period_s=0.02) as sampler:
        time.sleep(0.2)
        assert sampler.pause()
        assert sampler.pause()  # again: nothing to do
        process = psutil.Process(sampler.pid)
        assert process.status() == psutil.STATUS_STOPPED
        before, switches, paused_ns = process.cpu_times(), process.num_ctx_switches(), now_ns()
        time.sleep(0.3)
        assert process.cpu_times() == before
        assert process.num_ctx_switches() == switches  # no timer wakes it
        resumed_ns = now_ns()
        assert sampler.resume()
        assert sampler.resume()
        time.sleep(0.2)
    assert sampler.samples.ended.startswith("the sampler ended: ")
    assert sampler.samples.within(paused_ns, resumed_ns) == []
    assert len(sampler.samples.within(0, paused_ns)) > 2
    assert len(sampler.samples.within(resumed_ns, 2**63)) > 2


def test_a_paused_sampler_can_be_told_to_end():
    with SamplerProcess() as sampler:
        assert sampler.pause()
    assert sampler.samples.ended.startswith("the sampler ended: ")


def test_a_sampler_that_is_gone_is_neither_paused_nor_resumed():
    with SamplerProcess() as sampler:
        os.kill(sampler.pid, signal.SIGKILL)
        assert not sampler.pause()
        assert not sampler.resume()
    assert "killed: signal 9" in sampler.samples.ended


LAUNCH = pytest.mark.frameworks


@LAUNCH
def test_a_launch_observes_after_all_that_counts(real_mnist):
    from kit.engines.local import run_launch

    launch = run_launch(request(evaluate=True, parity=True, data="mnist"))
    assert launch.failure is None, launch.failure
    assert [phase.name for phase in launch.phases][-4:] == ["steady", "evaluate", "observer", "parity"]
    assert launch.evaluation.updates == launch.steps == len(launch.step_ns)
    blocks = launch.observer
    assert blocks.reason is None, blocks.reason
    assert len(blocks.on_ns) == len(blocks.off_ns) >= observer.PAIRS_MIN
    steady = next(phase for phase in launch.phases if phase.name == "steady")
    # The sampler was stopped half of the time, and none of it counts as missed.
    assert launch.utilization.process_cpu_pct > 0
    assert launch.utilization.samples <= steady.duration_ns / 1e8 + 1
    assert launch.utilization.missed_samples <= launch.utilization.samples


@LAUNCH
def test_a_launch_that_is_not_asked_does_not_observe():
    from kit.engines.local import run_launch

    launch = run_launch(request(observer_s=0.0))
    assert launch.observer is None
    assert "observer" not in [phase.name for phase in launch.phases]


@LAUNCH
def test_a_sampler_that_dies_in_the_test_costs_the_launch_nothing_else():
    from kit.engines.local import run_launch

    killed = []
    killer = threading.Thread(target=kill_second_sampler, args=(killed,))
    killer.start()
    launch = run_launch(request(observer_s=6.0))
    killer.join()
    assert killed
    assert launch.failure is None, launch.failure
    assert "signal 9" in launch.observer.reason
    assert launch.utilization.process_cpu_pct > 0
    assert launch.utilization.sampler_cpu_pct > 0
    assert len(launch.step_ns) == launch.steps


def request(observer_s=3.0, **more):
    from kit.profile.launch import LaunchRequest, StepPlan
    from kit.suites.plan import plan_cells
    from kit.suites.suite import Axes

    (cell,) = plan_cells(Axes(backends=["torch"], workloads=["mlp"], tasks=["train"], batches=[16]))
    plan = StepPlan(warmup_s=0.3, warmup_steps_min=3, steady_s=1.0, steps_min=20, steps_max=5000)
    fields = {"round": 0, "plan": plan, "data": "synthetic", "seed": 3, "threads": 1, "cpus": [0]}
    return LaunchRequest(cell=cell, **(fields | {"parity": False, "evaluate": False, "observer_s": observer_s} | more))


def kill_second_sampler(killed):
    """The first watches the steady steps; the second is the observer test's."""
    seen = SimpleNamespace(first=None)
    end = time.monotonic() + 60
    while time.monotonic() < end and not killed:
        for process in psutil.Process().children(recursive=True):
            try:
                if "kit.worker.sampler" not in process.cmdline():
                    continue
                seen.first = seen.first or process.pid
                if process.pid != seen.first:
                    time.sleep(0.5)
                    process.kill()
                    killed.append(process.pid)
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.02)
