"""Real frameworks on two devices: the losses of one global batch are those of one device; ranks stay in step."""

import os
from functools import cache

import numpy as np
import pytest
from real_worker import GROUP, block_of, cell, launch_of, spec_of, worker_of

from kit.backends.backend_catalog import CATALOG
from kit.environment import NO_ALL_REDUCE, PROCESS_EACH

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: each of two devices needs one of its own"),
]
# Of float32 sums in another order; a wrong mean, or a part of the batch that is used twice, is 1e-2 and more off.
SAME = 1e-5


def measured(backend, mode, devices, ranks, **env):
    """The launch of a proving worker of `mlp`, with its dropout, and its long block."""
    trained = cell(backend, "train", compile_mode=mode, devices=devices)
    with worker_of(spec_of(trained, ranks=ranks, cpus=CPUS[:2], proves=True, env=env)) as worker:
        worker.build(trained.key, GROUP)
        worker.warm_up(trained.key, GROUP)
        for cycle in range(2):
            ran = block_of(worker, trained.key, cycle, 0.05)
            if ran is not None:
                worker.add(trained.key, GROUP, *ran)
        long = worker.long_block(trained.key, GROUP, 0.1)
        worker.conclude(trained.key)
        worker.finish()
        return launch_of(worker, trained), long


@cache
def alone(backend):
    """The parity of one device, in the backend's first mode: other modes compute the same."""
    return measured(backend, CATALOG[backend].compile_modes[0], 1, 1)[0].parity


@pytest.mark.parametrize(
    ("backend", "mode", "ranks", "env"),
    [
        ("torch", "eager", 2, {}),
        pytest.param("jax", "jit", 1, {}, marks=pytest.mark.slow),
        pytest.param("jax", "jit", 2, {PROCESS_EACH: "1"}, marks=pytest.mark.slow),
        pytest.param("tensorflow", "graph", 2, {}, marks=pytest.mark.slow),
    ],
)
def test_two_devices_learn_what_one_learns(backend, mode, ranks, env):
    launch, long = measured(backend, mode, 2, ranks, **env)
    assert launch.failure is None
    assert np.allclose(launch.parity.losses, alone(backend).losses, rtol=SAME)
    assert launch.parity.losses[-1] != launch.parity.losses[0]
    assert launch.parity.batches_sha256 == alone(backend).batches_sha256
    assert len(launch.ranks) == (ranks if ranks > 1 else 0)
    assert launch.threads.cpus == CPUS[:2]
    assert launch.warmup_steps >= 5
    assert launch.blocks.cycle == [0, 1]
    # The ranks are put back together: their losses stay one network's.
    assert launch.numbers.blocks_begin == "restored" and launch.numbers.last_block_loss > 0.02
    assert long.span_ns[0] >= 0.1e9
    assert launch.peak_memory_b > 100 << 20


@pytest.mark.slow
def test_without_all_reduce_no_loss_is_claimed():
    assert measured("torch", "eager", 2, 2, **{NO_ALL_REDUCE: "1"})[0].parity is None


@pytest.mark.slow
def test_what_a_framework_has_no_collective_for_is_refused_by_name():
    refused = cell("tensorflow", "train", compile_mode="xla", devices=2)
    with worker_of(spec_of(refused, ranks=2, cpus=CPUS[:2])) as worker:
        assert worker.build(refused.key, GROUP) is None
        assert not worker.has_ended, "all ranks refuse it, and go on"
        assert "XLA has no collectives" in launch_of(worker, refused).failure.reason.values["message"]
