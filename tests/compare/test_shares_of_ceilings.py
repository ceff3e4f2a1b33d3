"""Rates, shares and bounds of rows, against planted ceilings."""

from functools import partial

import profile_builder as b
import pytest

from kit.compare import metrics
from kit.compare.ceilings import without_operations
from kit.compare.runs import run_of
from kit.profile.schema import Fit

operations = partial(b.operations, **b.EXACT)


def reach(member, *groups):
    built = b.profile(b.group("g", member), *groups, rounds=3, cycles=3, drift=0.0)
    return metrics.reach(run_of("p", built).samples[member.cell.key])


def network(step_ms, **more):
    return b.member("torch", step_ms, **({"task": "infer"} | b.EXACT | more))


def test_a_compute_bound_step_has_its_share_of_the_best_product():
    step_ms = b.MLP_FLOPS / 50e9 * 1e3
    reached = reach(network(step_ms), *operations(b.PRODUCT, ("matmul", 0.02, {"n": 100}), b.EMPTY))
    assert (reached.bound, reached.unit, reached.ceiling_unit) == ("compute", "FLOP/s", "FLOP/s")
    assert reached.operation == "matmul 1000, float32"
    assert (reached.rate, reached.ceiling, reached.share_pct) == pytest.approx((50e9, 200e9, 25), rel=1e-3)


def test_memory_is_held_against_the_triad_on_arrays_as_large():
    small = reach(network(1.0, batch=1), *operations(*b.TRIADS))
    assert (small.bound, small.operation) == ("memory", "triad 16 MiB")
    assert small.share_pct == pytest.approx(100 * small.bytes / 40e9 / 1e-3, rel=1e-3)
    large = reach(network(1.0, batch=10_000), *operations(*b.TRIADS))
    assert large.bytes > 32 << 20 and large.operation == "triad 256 MiB"


def test_a_short_step_is_bound_by_its_dispatch_and_a_fit_by_its_input():
    reached = reach(network(0.2, batch=1), *operations(b.PRODUCT, b.EMPTY))
    assert (reached.bound, reached.ceiling_unit) == ("dispatch", "ns")
    assert (reached.share_pct, reached.ceiling) == pytest.approx((50, 1e5), rel=1e-3)

    def waits(launch):
        steps_ns = [20e6] * len(launch.blocks.steps)
        launch.fit = Fit(epochs=1, updates=100, reference_ns=[20e6, *steps_ns], test_ns=None)

    fit = network(80.0, task="fit", change=waits)
    reached = reach(fit, *operations(b.PRODUCT, b.EMPTY))
    assert (reached.bound, reached.share_pct, reached.ceiling) == ("input", pytest.approx(75, rel=0.01), None)


@pytest.mark.parametrize(("device", "measured", "bound"), [
    ("gpu", (b.EMPTY, b.COPY), "input"), ("cpu", (b.EMPTY, b.COPY), "dispatch"), ("gpu", (), None),
])  # fmt: skip
def test_host_batches_are_held_against_the_copy_on_an_accelerator_alone(device, measured, bound):
    ceilings = operations(*measured, device=device) or operations(b.EMPTY, b.COPY)
    assert reach(network(1.0, feed="host", device=device, batch=3000), *ceilings).bound == bound


def test_without_ceilings_of_its_framework_there_is_a_rate_and_no_share():
    for groups in ((), operations(b.PRODUCT, backends=["jax"]), operations(b.PRODUCT, threads=1)):
        reached = reach(network(2.0), *groups)
        assert reached.rate == pytest.approx(b.MLP_FLOPS / 2e-3, rel=1e-3)
        assert (reached.bound, reached.share_pct, reached.ceiling) == (None, None, None)
    assert reach(network(2.0, workload="somebodys_net"), *operations(b.PRODUCT)) is None


def test_a_profile_without_its_operations_is_of_the_networks_alone():
    networks = b.group("mlp infer", b.member("torch", 2.0, task="infer"))
    profile = b.profile(networks, *operations(b.PRODUCT), rounds=3)
    left = without_operations(profile)
    assert [result.cell.workload for result in left.cells] == ["mlp"]
    assert [group.key for group in left.groups] == ["mlp infer"]
    assert without_operations(left) is left


def test_operations_with_parameters_of_another_kit_are_no_ceilings():
    unknown = [("matmul", 0.02, {"size": 100}), ("triad", 0.02, {"gib": 1})]
    reached = reach(network(1.0), *operations(*unknown))
    assert (reached.bound, reached.ceiling) == (None, None)
    assert reach(network(b.MLP_FLOPS / 50e9 * 1e3), *operations(b.PRODUCT, *unknown, b.EMPTY)).bound == "compute"
