"""Real frameworks on two devices: the losses of one global batch are those of one device; ranks stay in step."""

import os
from functools import cache

import msgspec
import numpy as np
import pytest
from member_process import MemberProcess, cell, prepare

from kit.backends.catalog import CATALOG
from kit.environment import NO_ALL_REDUCE, PROCESS_EACH
from kit.worker.messages import Do, Failed, Finish

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: each of two devices needs one of its own"),
]
# Of float32 sums in another order; a wrong mean, or a part of the batch that is used twice, is 1e-2 and more off.
SAME = 1e-5


def measured(backend, mode, devices, ranks, **environment):
    """What a proving member of `mlp`, with its dropout, answers to each verb."""
    with MemberProcess(**environment) as member:
        of = cell(backend, "train", compile_mode=mode, devices=devices)
        asked = msgspec.structs.replace(prepare(of, prove=True), cpus=CPUS[:2], ranks=ranks)
        prepared = member.done(asked)
        member.do("build")
        warm = member.do("warm_up")
        blocks = [member.do("block", 0, seconds=0.05, cycle=at) for at in range(2)]
        long = member.do("block", 0, seconds=0.1, by_time=True)
        concluded = member.do("conclude")
        finished = member.done(Finish())
        member.process.communicate(timeout=100)
        assert member.process.returncode == 0
        return prepared, warm, blocks, long, concluded, finished


@cache
def alone(backend):
    """The parity of one device, in the backend's first mode: other modes compute the same."""
    *_, concluded, _ = measured(backend, CATALOG[backend].compile_modes[0], 1, 1)
    return concluded.part.parity


@pytest.mark.parametrize(
    ("backend", "mode", "ranks", "environment"),
    [
        ("torch", "eager", 2, {}),
        ("jax", "jit", 1, {}),
        pytest.param("jax", "jit", 2, {PROCESS_EACH: "1"}, marks=pytest.mark.slow),
        pytest.param("tensorflow", "graph", 2, {}, marks=pytest.mark.slow),
    ],
)
def test_two_devices_learn_what_one_learns(backend, mode, ranks, environment):
    prepared, warm, blocks, long, concluded, finished = measured(backend, mode, 2, ranks, **environment)
    losses = concluded.part.parity.losses
    assert np.allclose(losses, alone(backend).losses, rtol=SAME)
    assert losses[-1] != losses[0]
    assert concluded.part.parity.batches_sha256 == alone(backend).batches_sha256
    assert len(prepared.part.ranks) == (ranks if ranks > 1 else 0)
    assert prepared.part.threads.cpus == CPUS[:2]
    assert warm.step_ns.size >= 5
    assert all(len(done.step_ns) == done.part.blocks.lead_in[0] + done.part.blocks.steps[0] for done in blocks)
    assert long.part.blocks.duration_ns[0] >= 0.1e9
    assert finished.part.peak_memory_b > 100 << 20


@pytest.mark.slow
def test_without_all_reduce_no_loss_is_claimed():
    concluded = measured("torch", "eager", 2, 2, **{NO_ALL_REDUCE: "1"})[4]
    assert concluded.part.parity is None


@pytest.mark.slow
def test_what_a_framework_has_no_collective_for_is_refused_by_name():
    with MemberProcess() as member:
        of = cell("tensorflow", "train", compile_mode="xla", devices=2)
        member.done(msgspec.structs.replace(prepare(of), cpus=CPUS[:2], ranks=2))
        answer = member.ask(Do(verb="build", program=0))
        assert isinstance(answer, Failed)
        assert answer.program == 0, "all ranks refuse it, and the process goes on"
        assert "XLA has no collectives" in answer.failure.reason.values["message"]
