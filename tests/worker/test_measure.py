"""Real launches of real frameworks, through the engine that users run."""

import numpy as np
import pytest

from kit.engines.local import run_launch
from kit.profile.launch import LaunchRequest, StepPlan
from kit.suites.plan import plan_cells
from kit.suites.suite import Axes

pytestmark = pytest.mark.frameworks

PLAN = StepPlan(warmup_s=0.1, warmup_steps_min=3, steady_s=0.3, steps_min=20, steps_max=5000)
TOLD_APART = {"tensorflow": ["trace"], "torch": [], "jax": ["trace", "compile"]}


def request_for(backend="torch", **more):
    axes = {"workloads": ["mlp"], "tasks": ["train"], "batches": [32]}
    axes |= {name: more.pop(name) for name in ("tasks", "feeds", "devices", "workloads") if name in more}
    (cell,) = plan_cells(Axes(backends=[backend], **axes))
    fields = {"round": 0, "plan": PLAN, "data": "synthetic", "seed": 3, "threads": 1, "cpus": [0]}
    return LaunchRequest(cell=cell, **(fields | {"parity": False, "evaluate": False} | more))


@pytest.mark.parametrize("backend", ["tensorflow", "torch", "jax"])
def test_a_launch_accounts_for_its_time(backend, real_mnist):
    launch = run_launch(request_for(backend, data="mnist", parity=True, evaluate=True))
    assert launch.failure is None, launch.failure
    names = [phase.name for phase in launch.phases]
    stamped = ["first_step", "warmup", "steady"]
    assert names == ["import", "data", "build", *TOLD_APART[backend], *stamped, "evaluate", "parity"]
    # Phases follow one another and do not overlap.
    for before, after in zip(launch.phases, launch.phases[1:], strict=False):
        assert before.begin_ns + before.duration_ns <= after.begin_ns

    step_ns, phases = np.array(launch.step_ns), {phase.name: phase for phase in launch.phases}
    assert launch.steps == len(step_ns)
    assert step_ns.min() > 0
    # The stamped steps fill their phases: nothing that takes time lies between them.
    warmup = launch.warmup_steps
    for name, inside in (("first_step", step_ns[:1]), ("warmup", step_ns[1:warmup]), ("steady", step_ns[warmup:])):
        assert 0 <= phases[name].duration_ns - inside.sum() < 20_000_000, name
    assert PLAN.steps_min <= len(step_ns) - warmup <= PLAN.steps_max

    assert launch.recompiles in (0, None)
    assert launch.threads.cpus == [0]
    assert launch.threads.reported in (1, None)
    assert launch.certificate.null_interval.median_ns > 0
    assert launch.data.name == "mnist"
    assert launch.evaluation.samples == 10_000
    assert 0 < launch.evaluation.accuracy <= 1
    assert len(launch.parity.losses) == 20
    # One CPU was allowed, so no more than one can have been used (the sampler's clock ticks leave a little room).
    assert 0 < launch.utilization.process_cpu_pct < 115


def test_synthetic_data_is_labelled_and_fills_no_accuracy():
    launch = run_launch(request_for(evaluate=True))
    assert launch.data.name == "synthetic"
    assert launch.evaluation.accuracy is None
    assert "synthetic" in launch.evaluation.reason


@pytest.mark.parametrize("backend", ["tensorflow", "torch", "jax"])
def test_inference_from_host_memory_reads_the_test_split_only(backend):
    launch = run_launch(request_for(backend, tasks=["infer"], feeds=["host"]))
    assert launch.failure is None, launch.failure
    assert launch.data.train_samples is None
    assert launch.data.test_samples == 10_000


def test_a_device_that_is_not_there_fails_with_what_is():
    launch = run_launch(request_for(devices=["tpu"]))
    assert launch.failure is not None
    assert launch.failure.exit_code == 1
    assert "\n" not in launch.failure.reason
    assert "tpu" in launch.failure.reason


def test_a_worker_that_cannot_start_says_its_last_words(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no kit in this interpreter' >&2\nexit 7\n")
    python.chmod(0o755)
    monkeypatch.setenv("KIT_PYTHON_TORCH", str(python))
    launch = run_launch(request_for())
    assert launch.failure.reason == "worker ended with exit code 7: no kit in this interpreter"
    assert launch.failure.phase is None
    assert launch.failure.stderr_tail == "no kit in this interpreter"
