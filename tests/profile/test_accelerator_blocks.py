"""An accelerator's blocks, from a worker's answer to the step that is judged."""

import msgspec
import numpy as np
import profile_builder as b

from kit.compare.blocks import block_times_ns
from kit.profile.launch import LaunchPart
from kit.profile.schema import Group
from kit.profile.store import timed_steps
from kit.runner.interrupt import StopFlag
from kit.runner.member import Member
from kit.suites.plan import MemberPlan
from kit.worker.measured_program import Ran
from kit.worker.messages import Done
from kit.worker.pipelined import Pipelined

WAITED_NS, PIPELINED_NS = 300_000, 100_000


def answered(cycle):
    step_ns = np.array([10**6, 10**6, *[WAITED_NS] * 3], np.int64)
    pipelined = Pipelined(per_wait=20, steps=40, duration_ns=40 * PIPELINED_NS, output=None)
    block = Ran(2, step_ns, pipelined).as_block(cycle, 1, 10**9, {"process.cpu_ns": 45_000})
    return Done(part=LaunchPart(blocks=block), steps=step_ns.tobytes())


class Answering:
    """A process that answers with these."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def receive(self, wait_s):
        return msgspec.json.encode(next(self.answers)) + b"\n"

    def pause(self):
        return True

    def send(self, line):
        pass

    resume = kill = pause


def test_the_step_is_of_pipelined_steps_and_the_raw_ones_are_those_that_were_waited_for():
    cell = b.cell(device="gpu")
    group = Group(key="g", cells=[cell.key], baseline=cell.key)
    member = Member(MemberPlan("p", [cell]), None, Answering(map(answered, range(8))), [group], 0, StopFlag())
    for cycle in range(8):
        member.add(cell.key, "g", member.block(cell.key, cycle, 0.25))
    (finished,) = member.finished_launches(None, {})
    launch = finished.launch
    assert (set(block_times_ns(launch)), set(block_times_ns(launch, "latency"))) == ({PIPELINED_NS}, {WAITED_NS})
    assert launch.blocks.all_steps() == [45] * 8
    assert timed_steps(launch, finished.steps).tolist() == [WAITED_NS] * 24
    assert launch.p95_ns == WAITED_NS
