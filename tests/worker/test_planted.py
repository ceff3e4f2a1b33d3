"""A planted slow-down on steps of known length, and in a real launch."""

import time
from itertools import cycle

import numpy as np
import pytest

from kit import clock
from kit.engines.local import run_launch
from kit.profile.launch import LaunchRequest, StepPlan
from kit.suites.plan import plan_cells
from kit.suites.suite import Axes
from kit.worker.planted import PACE_STEPS, Planted, wait_ns
from kit.worker.step_loop import run_steps

STEP_NS = 2_000_000


class KnownSteps:
    def step(self, batch):
        self.end_ns = time.perf_counter_ns() + STEP_NS
        return batch

    def synchronize(self):
        while time.perf_counter_ns() < self.end_ns:
            pass


def test_the_wait_is_the_share_of_the_last_warm_up_steps():
    warmup_ns = np.array([9 * STEP_NS] * 100 + [STEP_NS] * PACE_STEPS, np.int64)
    assert wait_ns(warmup_ns, 3.0) == 60_000
    assert wait_ns(warmup_ns, 0.0) == 0


@pytest.mark.parametrize("slowdown_pct", [5.0, 50.0])
def test_known_steps_take_the_planted_share_longer(slowdown_pct):
    planted = Planted(KnownSteps(), wait_ns(np.full(20, STEP_NS), slowdown_pct))
    stretch = run_steps(planted, cycle("ab"), 100, clock.stamps(101), None)
    # No step can be shorter than its parts; other work on the machine makes most of them longer, not all.
    assert STEP_NS <= stretch.step_ns.min() / (1 + slowdown_pct / 100) <= 1.02 * STEP_NS
    assert stretch.last_output == "b"


@pytest.mark.frameworks
def test_a_planted_launch_says_so():
    (cell,) = plan_cells(Axes(backends=["torch"], workloads=["mlp"], tasks=["train"], batches=[32]))
    plan = StepPlan(warmup_s=0.3, warmup_steps_min=50, steady_s=0.3, steps_min=20, steps_max=5000)
    launch = run_launch(
        LaunchRequest(
            cell=cell,
            round=0,
            plan=plan,
            data="synthetic",
            seed=0,
            threads=1,
            cpus=[0],
            parity=False,
            evaluate=False,
            # So much that no other work on the machine can hide it.
            planted_slowdown_pct=400.0,
        )
    )
    assert launch.failure is None, launch.failure
    assert launch.planted_slowdown_pct == 400.0
    assert any("planted slow-down" in warning for warning in launch.warnings)
    warmup, steady = launch.step_ns[1 : launch.warmup_steps], launch.step_ns[launch.warmup_steps :]
    assert np.median(steady) > 2.5 * np.median(warmup)
