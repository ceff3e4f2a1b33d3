"""What a member does on an accelerator: the program, its waits and times are real, the device is a forced one."""

from pathlib import Path

import pytest
from member_process import MemberProcess, cell, prepare
from uci_har_archive import packed, tables

from kit.worker.messages import Do, Failed, Finish

pytestmark = pytest.mark.frameworks

MEMBER = str(Path(__file__).parents[1] / "standins" / "host_as_tpu.py")
ON_TPU = cell("jax", "train", device="tpu", compile_mode="jit")


def test_blocks_have_steps_that_are_waited_for_and_pipelined_ones_whose_time_counts():
    pytest.importorskip("jax")
    with MemberProcess(MEMBER, KIT_TEST_PLACE="tpu") as member:
        member.done(prepare(ON_TPU))
        assert member.do("build").part.settings["jax_default_matmul_precision"] == "highest"
        assert 0 <= member.do("warm_up").part.empty_wait_ns < 1e9
        answer = member.do("block", seconds=0.4)
        energy = member.do("block", seconds=0.3, by_time=True)
        assert member.do("conclude").part.failure is None
        member.done(Finish())
    blocks = answer.part.blocks
    (lead_in,), (waited,), (steps,), (per_wait,) = blocks.lead_in, blocks.waited_steps, blocks.steps, blocks.per_wait
    assert answer.step_ns.size == lead_in + waited and waited > 0
    assert steps % per_wait == 0
    # A step that is waited for is none of those whose time counts.
    assert sum(answer.step_ns) + blocks.duration_ns[0] <= blocks.span_ns[0]
    # Energy is of pipelined steps alone.
    assert energy.step_ns.size == 0
    assert 0.3e9 <= energy.part.blocks.duration_ns[0] <= energy.part.blocks.span_ns[0]


def test_a_program_that_fell_back_to_the_cpu_fails_by_name():
    pytest.importorskip("jax")
    with MemberProcess(MEMBER, KIT_TEST_PLACE="cpu") as member:
        member.done(prepare(ON_TPU))
        failed = member.ask(Do(verb="build", program=0))
        assert isinstance(failed, Failed)
        assert "ran on the cpu, but --device is tpu" in str(failed)


@pytest.mark.slow
def test_a_fit_waits_once_a_stretch(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "uci_har.zip").write_bytes(packed(tables()))
    fit = cell("jax", "fit", workload="dblstm", device="tpu", compile_mode="jit", batch=2)
    with MemberProcess(MEMBER, KIT_TEST_PLACE="tpu", KIT_DATA=str(tmp_path)) as member:
        member.done(prepare(fit, data="uci_har", epochs=40))
        member.do("build", 0)
        member.do("warm_up", 0)
        block = member.do("block", 0, seconds=0.2)
    assert block.step_ns.size == 0
    assert block.part.blocks.steps == block.part.blocks.per_wait == [2], "what its first epoch still has"
    assert block.left == 40 * 3 - 1 - 2


def test_operations_are_pipelined_and_give_their_empty_wait():
    pytest.importorskip("jax")
    cells = [
        cell("jax", "infer", workload=name, parameters=parameters, device="tpu", compile_mode="jit", batch=1)
        for name, parameters in (("matmul", {"n": 64}), ("triad", {"mib": 1}), ("copy_out", {}), ("empty", {}))
    ]
    with MemberProcess(MEMBER, KIT_TEST_PLACE="tpu") as member:
        member.done(prepare(*cells))
        for place in range(len(cells)):
            member.do("build", place)
            assert member.do("warm_up", place).part.empty_wait_ns < 1e9
            blocks = member.do("block", place, seconds=0.1).part.blocks
            assert blocks.steps[0] % blocks.per_wait[0] == 0
            assert member.do("conclude", place).part.failure is None
        member.done(Finish())
