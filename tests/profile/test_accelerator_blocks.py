"""An accelerator's blocks, from a member's answer to the step that is judged: new ones, and those of schema 2.1."""

import msgspec
import numpy as np
import profile_builder as b
import pytest

from kit.audit.member import block_arrays
from kit.compare.within import compare_within
from kit.profile.launch import Launch, Throughput
from kit.profile.steps import timed_steps
from kit.runner.record import LaunchRecord
from kit.worker.messages import BlockDone

WAITED_NS, PIPELINED_NS = 300_000, 100_000


def answered():
    return BlockDone(
        begin_ns=1, span_ns=10**9, lead_in=2, step_ns=[10**6, 10**6, *[WAITED_NS] * 3], steps=40,
        duration_ns=40 * PIPELINED_NS, per_wait=20, counters={"process.cpu_ns": 45_000},
    )  # fmt: skip


def test_the_step_is_of_pipelined_steps_and_the_raw_ones_are_those_that_were_waited_for():
    record = LaunchRecord(b.cell(device="gpu"), "g", 0, "p")
    for cycle in range(8):
        record.block(cycle, answered())
    kept = record.kept()
    arrays = block_arrays(kept.launch)
    assert set(arrays.times_ns("step")) == {PIPELINED_NS} and set(arrays.times_ns("latency")) == {WAITED_NS}
    assert kept.launch.blocks.all_steps() == [45] * 8
    assert timed_steps(kept.launch, np.array(kept.step_ns)).tolist() == [WAITED_NS] * 24
    assert kept.launch.p95_ns == WAITED_NS


def test_a_profile_of_schema_2_1_is_judged_by_its_throughput():
    def as_of_2_1(ns):
        def change(launch):
            blocks = len(launch.blocks.cycle)
            launch.throughput = Throughput(per_wait=[20] * blocks, steps=[40] * blocks, duration_ns=[40 * ns] * blocks)

        return change

    # By latency torch is the slower one, by throughput the faster.
    members = [
        b.member(name, ms, device="gpu", change=as_of_2_1(ns))
        for name, ms, ns in (("jax", 2.0, 200), ("torch", 3.0, 100))
    ]
    written = msgspec.to_builtins(b.profile(b.group("g", *members)))
    read = msgspec.convert(written, type(b.profile()))
    launch: Launch = read.cells[0].launches[0]
    assert launch.throughput is None and not launch.blocks.counters, "their counters were of the waited steps"
    (group,) = compare_within("p", read, parity_tolerance=1e-5).groups
    assert [row.name for row in group.rows] == ["torch", "jax"]
    assert group.rows[0].numbers.step_ns == pytest.approx(100)
    assert group.rows[0].numbers.latency_ns == pytest.approx(3e6, rel=0.2)
