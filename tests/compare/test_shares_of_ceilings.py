"""Rates, shares and bounds of rows, against planted ceilings; what stands in which table."""

import csv
import io
import re

import profile_builder as b
import pytest
from kit_process import kit

from kit.compare import metrics
from kit.compare.ceilings import without_operations
from kit.compare.compare import compare_within
from kit.profile.launch import Fit

EXACT = {"sd": 0.0, "noise": 0.0}
MLP_FLOPS = 2 * 128 * (784 * 512 + 512 * 512 + 512 * 10)
PRODUCT = ("matmul", 10.0, {"n": 1000})  # 200 GFLOP/s
TRIADS = [("triad", 1.2582912, {"mib": 16}), ("triad", 80.530637, {"mib": 256})]  # 40 and 10 GB/s
EMPTY = ("empty", 0.1, {})
COPY = ("copy_in", 6.7108864, {})  # 10 GB/s


def operations(*planted, backends=("torch", "jax"), **more):
    return [
        b.group(
            f"{name} {parameters}",
            *(b.member(of, ms, name, task="infer", batch=1, parameters=parameters, **EXACT, **more) for of in backends),
        )
        for name, ms, parameters in planted
    ]


def rows(*groups, **more):
    profile = b.profile(*groups, rounds=3, cycles=3, drift=0.0, **more)
    return {row.cell.key: row for group in compare_within("p", profile).groups for row in group.rows}


def reach(member, *groups):
    return metrics.reach(rows(b.group("g", member), *groups)[member.cell.key].samples[0])


def network(step_ms, **more):
    return b.member("torch", step_ms, **({"task": "infer"} | EXACT | more))


def test_a_compute_bound_step_has_its_share_of_the_best_product():
    step_ms = MLP_FLOPS / 50e9 * 1e3
    of = reach(network(step_ms), *operations(PRODUCT, ("matmul", 0.02, {"n": 100}), EMPTY))
    assert (of.bound, of.unit, of.ceiling_unit, of.operation) == ("compute", "FLOP/s", "FLOP/s", "matmul 1000, float32")
    assert (of.rate, of.ceiling, of.share_pct) == (
        pytest.approx(50e9, rel=1e-3), pytest.approx(200e9, rel=1e-3), pytest.approx(25, rel=1e-3)
    )  # fmt: skip


def test_memory_is_held_against_the_triad_on_arrays_as_large():
    of_small = reach(network(1.0, batch=1), *operations(*TRIADS))
    assert (of_small.bound, of_small.operation) == ("memory", "triad 16 MiB")
    assert of_small.share_pct == pytest.approx(100 * of_small.bytes / 40e9 / 1e-3, rel=1e-3)
    of_large = reach(network(1.0, batch=10_000), *operations(*TRIADS))
    assert of_large.bytes > 32 << 20 and of_large.operation == "triad 256 MiB"


def test_a_short_step_is_bound_by_its_dispatch_and_a_fit_by_its_input():
    of = reach(network(0.2, batch=1), *operations(PRODUCT, EMPTY))
    assert (of.bound, of.share_pct, of.ceiling, of.ceiling_unit) == (
        "dispatch", pytest.approx(50, rel=1e-3), pytest.approx(1e5, rel=1e-3), "ns"
    )  # fmt: skip

    def waits(launch):
        steps_ns = [20e6] * len(launch.blocks.steps)
        launch.fit = Fit(epochs=1, updates=100, reference_ns=[20e6, *steps_ns], test_ns=None)

    fit = network(80.0, task="fit", change=waits)
    of = reach(fit, *operations(PRODUCT, EMPTY))
    assert (of.bound, of.share_pct, of.ceiling) == ("input", pytest.approx(75, rel=0.01), None)


def test_host_batches_are_held_against_the_copy_on_an_accelerator_alone():
    for device, bound in (("gpu", "input"), ("cpu", "dispatch")):
        member = network(1.0, feed="host", device=device, batch=3000)
        of = reach(member, *operations(EMPTY, COPY, device=device))
        assert of.bound == bound
    assert reach(network(1.0, feed="host", device="gpu", batch=3000), *operations(EMPTY, COPY)).bound is None


def test_without_ceilings_of_its_framework_there_is_a_rate_and_no_share():
    for groups in ((), operations(PRODUCT, backends=["jax"]), operations(PRODUCT, threads=1)):
        of = reach(network(2.0), *groups)
        assert of.rate == pytest.approx(MLP_FLOPS / 2e-3, rel=1e-3)
        assert (of.bound, of.share_pct, of.ceiling) == (None, None, None)
    assert reach(network(2.0, workload="somebodys_net"), *operations(PRODUCT)) is None


@pytest.fixture
def folder(tmp_path):
    measured = operations(PRODUCT, *TRIADS, EMPTY, COPY)
    networks = b.group("mlp infer", *(b.member(of, 2.0, task="infer", **EXACT) for of in ("torch", "jax")))
    b.write(tmp_path / "both.json", b.profile(networks, *measured, rounds=3, cycles=3))
    b.write(tmp_path / "alone.json", b.profile(*measured, rounds=3, cycles=3, suite="ceilings"))
    return tmp_path


def test_operations_stand_beside_networks_where_it_is_wide_and_in_data(folder):
    usual, wide = (kit(folder, "compare", "both.json", *words).stdout for words in ((), ("--wide",)))
    assert "matmul" not in usual and "5 ceilings were measured" in wide and "batch 128, float32" in usual
    assert "(matmul 1000, float32)" in wide and re.search(r"compute \d\d % of \d\d\d GFLOP/s", wide)
    assert "triad · mib 256" in wide
    written = csv.DictReader(io.StringIO(kit(folder, "compare", "both.json", "--format", "csv").stdout))
    by_workload = {record["workload"]: record for record in written}
    assert float(by_workload["mlp"]["reach_share_pct"]) > 0 and by_workload["mlp"]["reach_bound"] == "compute"
    assert float(by_workload["copy_in"]["reach_rate"]) == pytest.approx(10e9, rel=0.2)


def test_alone_they_are_the_table_with_their_rates(folder):
    shown = kit(folder, "compare", "alone.json").stdout
    assert shown.startswith("ceilings: 4 operations × 2 frameworks on cpu, float32")
    assert "GFLOP/s" in shown and "GB/s" in shown
    assert "samples/s" not in shown and "batch" not in shown and "infer" not in shown
    plotted = kit(folder, "plot", "alone.json")
    assert (plotted.returncode, plotted.stdout) == (0, "roofline.svg\n")


def test_a_profile_without_its_operations_is_of_the_networks_alone():
    networks = b.group("mlp infer", b.member("torch", 2.0, task="infer"))
    profile = b.profile(networks, *operations(PRODUCT), rounds=3)
    left = without_operations(profile)
    assert [result.cell.workload for result in left.cells] == ["mlp"]
    assert [group.key for group in left.groups] == ["mlp infer"]
    assert without_operations(left) is left
