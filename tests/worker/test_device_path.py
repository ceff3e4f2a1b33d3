"""What a worker does on an accelerator: the program, its waits and times are real, the device is a forced one."""

import sys
from itertools import repeat
from pathlib import Path

import pytest
from real_worker import GROUP, block_of, cell, fitted, launch_of, spec_of, worker_of
from uci_har_archive import packed, tables

from kit.worker import evidence
from kit.worker.evidence import timed_on_device

STAND_IN = Path(__file__).parents[1] / "standins" / "host_as_tpu.py"
ON_TPU = cell("jax", "train", device="tpu", compile_mode="jit")


@pytest.fixture
def spec_on_tpu(tmp_path):
    """What a worker is started with whose interpreter runs the stand-in in place of `kit.worker`."""
    pytest.importorskip("jax")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$4" = kit.worker ] && exec {sys.executable} {STAND_IN}\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)

    def spec(*cells, place="tpu", env=(), **more):
        made = spec_of(*cells, env={"KIT_TEST_PLACE": place, "JAX_PLATFORMS": "", **dict(env)}, **more)
        variant = made.variant
        return made._replace(variant=type(variant)(name=variant.name, python=str(python), env=variant.env))

    return spec


@pytest.mark.frameworks
def test_blocks_have_steps_that_are_waited_for_and_pipelined_ones_whose_time_counts(spec_on_tpu):
    with worker_of(spec_on_tpu(ON_TPU)) as worker:
        worker.build(ON_TPU.key, GROUP)
        worker.warm_up(ON_TPU.key, GROUP)
        blocks, step_ns = block_of(worker, ON_TPU.key, 0, 0.4)
        energy = worker.long_block(ON_TPU.key, GROUP, 0.3)
        worker.conclude(ON_TPU.key)
        worker.finish()
        launch = launch_of(worker, ON_TPU)
    assert launch.failure is None
    assert launch.settings["jax_default_matmul_precision"] == "highest"
    assert 0 <= launch.empty_wait_ns < 1e9
    assert launch.recompiles.count == 0, "none after its first step"
    (lead_in,), (waited,), (steps,), (per_wait,) = blocks.lead_in, blocks.waited_steps, blocks.steps, blocks.per_wait
    assert step_ns.size == lead_in + waited and waited > 0
    assert steps % per_wait == 0
    # A step that is waited for is none of those whose time counts.
    assert sum(step_ns) + blocks.duration_ns[0] <= blocks.span_ns[0]
    # Energy is measured over pipelined steps alone.
    assert energy.waited_steps == [0]
    assert energy.span_ns[0] >= 0.3e9 and energy.duration_ns[0] <= energy.span_ns[0]


@pytest.mark.frameworks
def test_a_program_that_fell_back_to_the_cpu_fails_by_name(spec_on_tpu):
    with worker_of(spec_on_tpu(ON_TPU, place="cpu")) as worker:
        worker.build(ON_TPU.key, GROUP)
        assert "ran on the cpu, but --device is tpu" in str(launch_of(worker, ON_TPU).failure)


@pytest.mark.slow
@pytest.mark.frameworks
def test_a_fit_waits_once_a_stretch(spec_on_tpu, tmp_path):
    (tmp_path / "uci_har.zip").write_bytes(packed(tables()))
    fit = cell("jax", "fit", workload="dblstm", device="tpu", compile_mode="jit", batch=2)
    with worker_of(spec_on_tpu(fit, data="uci_har", env={"KIT_DATA": str(tmp_path)}), epochs=3) as worker:
        blocks = fitted(worker, fit)
    assert [block.steps for block in blocks] == [block.per_wait for block in blocks] == [[2], [3], [3]]


@pytest.mark.frameworks
def test_operations_are_pipelined_and_give_their_empty_wait(spec_on_tpu):
    cells = [
        cell("jax", "infer", workload=name, parameters=parameters, device="tpu", compile_mode="jit", batch=1)
        for name, parameters in (("matmul", {"n": 64}), ("triad", {"mib": 1}), ("copy_out", {}), ("empty", {}))
    ]
    with worker_of(spec_on_tpu(*cells)) as worker:
        for operation in cells:
            worker.build(operation.key, GROUP)
            worker.warm_up(operation.key, GROUP)
            blocks, _ = block_of(worker, operation.key, 0, 0.1)
            assert blocks.steps[0] % blocks.per_wait[0] == 0
            worker.conclude(operation.key)
            assert launch_of(worker, operation).failure is None
            assert launch_of(worker, operation).empty_wait_ns < 1e9


class Device:
    """Steps queue up behind each other on a clock of its own; a wait ends `wait_ns` after the last of them."""

    def __init__(self, host_ns, work_ns, wait_ns):
        self.now = self.free = 0
        self.host_ns, self.work_ns, self.wait_ns = host_ns, work_ns, wait_ns

    def step(self, _batch):
        self.now += self.host_ns
        self.free = max(self.free, self.now) + self.work_ns

    def synchronize(self):
        self.now = max(self.now, self.free) + self.wait_ns

    def device_event(self):
        return Event(max(self.now, self.free))


class Event:
    def __init__(self, at_ns):
        self.at_ns = at_ns

    def elapsed_time(self, later):
        return (later.at_ns - self.at_ns) / 1e6


def test_a_group_has_one_wait_by_the_hosts_clock_and_none_by_the_devices(monkeypatch):
    device = Device(20_000, 200_000, 30_000)
    stalled_ns = iter([0, *[10**9] * 5])  # the host stalls in the first group: another one counts
    monkeypatch.setattr(evidence, "now_ns", lambda: device.now + next(stalled_ns))
    events = timed_on_device(device, repeat(None), 100)
    assert (events.steps, events.host_ns, events.device_ns) == (100, 200_500.0, 200_200.0)
