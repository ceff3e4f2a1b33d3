"""Cells, the groups they are compared in, and the workers that hold them."""

from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.profile.cell import AXES
from kit.suites.groups import GROUP_CELLS_MAX, plan_bundles, plan_groups
from kit.suites.plan import (
    CEILING_ROUNDS,
    plan_cells,
    plan_of,
    requested_suite,
    with_ceilings,
)
from kit.suites.run_request import RunRequest
from kit.suites.suite import UNSHAREABLE, Axes, Suite, SuiteError, VariantTable, load_suite
from kit.workloads.device_operations import MATMUL, OPERATIONS, TRIAD, is_operation
from kit.workloads.workload import Dense
from kit.workloads.workload_catalog import WORKLOADS

COMPARED = ["backend", "batch", "task", "compile_mode", "feed", "variant"]
BACKENDS = ["tensorflow", "torch", "jax"]


def suite(compare=(), variants=(), **axes):
    defaults = {"workloads": ["mlp"], "backends": BACKENDS, "tasks": ["train"], "batches": [128]}
    tables = {name: VariantTable() for name in variants}
    return Suite(name="x", title="x", compare=list(compare), variants=tables, cells=Axes(**(defaults | axes)))


def groups_of(suite, baseline=None):
    cells = plan_cells(suite)
    by_key = {cell.key: cell for cell in cells}
    groups = plan_groups(cells, suite.compared, baseline)
    return groups, by_key


def test_backends_are_compared_whatever_their_own_default_mode_is_called():
    groups, by_key = groups_of(suite(tasks=["train", "infer"]))
    assert [[by_key[key].backend for key in group.cells] for group in groups] == [BACKENDS, BACKENDS]
    assert [{by_key[key].task for key in group.cells} for group in groups] == [{"train"}, {"infer"}]
    assert all(group.baseline == group.cells[0] for group in groups)


@pytest.mark.parametrize(("baseline", "batch"), [(None, 1), ("5", 5)])
@pytest.mark.parametrize("compare", [["batch"], ["feed", "batch"]])
def test_the_baseline_is_the_one_named_or_the_first(compare, baseline, batch):
    groups, by_key = groups_of(suite(compare, batches=[1, 5, 3, 2, 4]), baseline)
    assert {by_key[group.baseline].batch for group in groups} == {batch}
    with pytest.raises(SuiteError, match="no baseline '6'"):
        groups_of(suite(compare, batches=[1, 5]), "6")


def test_a_mode_that_was_asked_for_is_not_mixed_with_others():
    groups, by_key = groups_of(suite(compile_modes=["default", "xla", "compile"]))
    modes = [sorted(by_key[key].compile_mode for key in group.cells) for group in groups]
    assert modes == [["eager", "graph", "jit"], ["xla"], ["compile"]]


def test_on_a_gpu_compilers_are_compared_and_frameworks_without_beside_them():
    groups, by_key = groups_of(suite(compile_modes=["default", "plain"], devices=["gpu"]))
    modes = [[by_key[key].compile_mode for key in group.cells] for group in groups]
    assert modes == [["xla", "graph", "compile", "eager", "jit"]]
    assert by_key[groups[0].baseline].compile_mode == "xla"
    (elsewhere,), by_key = groups_of(suite(compile_modes=["default", "plain"]))
    assert [by_key[key].compile_mode for key in elsewhere.cells] == ["graph", "eager", "jit"]


@pytest.mark.parametrize(
    ("compare", "axes", "sizes"),
    [
        (["batch"], {"batches": [1, 2, 3]}, [3, 3, 3]),
        (["compile_mode"], {"compile_modes": ["default", "xla", "compile"]}, [2, 2, 1]),
        (["task"], {"tasks": ["train", "infer"]}, [2, 2, 2]),
        (["backend", "batch"], {"backends": ["torch", "jax"], "batches": [1, 2]}, [4]),
        (["feed"], {"feeds": ["device", "host"], "backends": ["jax"]}, [2]),
        (["variant"], {"variants": ["old", "new"]}, [2, 2, 2]),
        ([], {"backends": ["jax"]}, [1]),
    ],
)
def test_groups_differ_in_the_compared_axes_alone(compare, axes, sizes):
    groups, by_key = groups_of(suite(compare, **axes))
    assert sorted(map(len, (group.cells for group in groups)), reverse=True) == sizes
    alike = [axis for axis in AXES if axis not in (*compare, "compile_mode")]
    for group in groups:
        cells = [by_key[key] for key in group.cells]
        assert len({tuple(getattr(cell, axis) for axis in alike) for cell in cells}) == 1


def test_tf32_and_a_frameworks_own_precision_are_an_accelerators():
    assert {cell.precision for cell in plan_cells(suite(precisions=["tf32"], devices=["gpu"]))} == {"tf32"}
    cells = plan_cells(suite(precisions=["float32", "default"], devices=["gpu", "tpu"]))
    assert {cell.precision for cell in cells} == {"float32", "default"}


@given(batches=st.lists(st.integers(1, 500), min_size=1, max_size=20, unique=True), named=st.booleans())
def test_a_large_group_is_split_and_each_part_has_the_baseline(batches, named):
    asked = suite(["batch"], backends=["torch", "jax"], batches=batches)
    groups, by_key = groups_of(asked, str(batches[-1]) if named else None)
    assert len({group.key for group in groups}) == len(groups)
    seen = []
    for group in groups:
        assert len(group.cells) <= GROUP_CELLS_MAX
        assert len({by_key[key].backend for key in group.cells}) == 1
        assert group.baseline in group.cells
        seen += group.cells
    assert set(seen) == set(by_key)
    extra = [key for key in set(seen) if seen.count(key) > 1]
    assert set(extra) <= {group.baseline for group in groups}


def bundles_of(suite, share):
    cells = plan_cells(suite)
    groups = plan_groups(cells, suite.compared)
    return plan_bundles(cells, groups, share), groups


def test_one_process_holds_all_points_of_a_sweep_and_both_tasks():
    swept = suite(["batch"], backends=["torch", "jax"], tasks=["train", "infer"], batches=list(range(1, 11)))
    bundles, groups = bundles_of(swept, ["batch", "task"])
    assert [len(bundle.groups) for bundle in bundles] == [6, 6]  # for each task: 1 2 3 4, 1 5 6 7, 1 8 9 10
    assert [len(worker.cells) for bundle in bundles for worker in bundle.workers] == [20, 20]
    assert len(groups) == 12


@settings(deadline=None)  # other programs may run beside it
@given(
    compare=st.lists(st.sampled_from(COMPARED), min_size=1, max_size=2, unique=True),
    share=st.lists(st.sampled_from([axis for axis in AXES if axis not in UNSHAREABLE]), max_size=3, unique=True),
    batches=st.lists(st.integers(1, 500), min_size=1, max_size=6, unique=True),
    modes=st.sampled_from([["default"], ["default", "compile"], ["xla", "jit"]]),
    variants=st.sampled_from([[], ["a", "b"], ["a", "b", "c", "d", "e"]]),
)
def test_every_group_finds_each_of_its_cells_in_one_process(compare, share, batches, modes, variants):
    more = {"tasks": ["train", "infer"], "feeds": ["device", "host"]}
    asked = suite(compare, variants, batches=batches, compile_modes=modes, **more)
    bundles, groups = bundles_of(asked, share)
    assert sorted(group.key for bundle in bundles for group in bundle.groups) == sorted(group.key for group in groups)
    for bundle in bundles:
        for group in bundle.groups:
            assert set(group.cells) <= {cell.key for worker in bundle.workers for cell in worker.cells}
        for worker in bundle.workers:
            # One interpreter, one environment, one framework, one device.
            assert len({(cell.backend, cell.device, cell.variant, cell.precision) for cell in worker.cells}) == 1


def test_parameters_are_axes_of_the_workloads_that_have_them():
    groups, by_key = groups_of(
        suite(["units"], workloads=["dblstm", "mlp"], backends=["jax"], parameters={"units": [8, 16]})
    )
    assert [[dict(by_key[key].parameters) for key in group.cells] for group in groups] == [
        [{"layers": 2, "units": 8}, {"layers": 2, "units": 16}],
        [{}],
    ]
    assert groups[0].key == "dblstm(layers=2,units=*)/jax/cpu/train/b128/float32/jit/device/x1"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"data": "signals"}, "data set 'signals', which is not there; choose from "),
        ({"layers": (Dense(7),)}, r"last layer gives \(7,\), but classes=10 takes \(10,\)"),
        ({"loss": "reconstruction"}, r"last layer gives \(10,\), but its input takes \(784,\)"),
    ],
)
def test_a_network_that_does_not_fit_its_data_or_loss_is_refused(monkeypatch, fields, line):
    wrong = msgspec.structs.replace(WORKLOADS["mlp"], name="wrong", **fields)
    monkeypatch.setitem(WORKLOADS, "wrong", wrong)
    with pytest.raises(SuiteError, match=line):
        plan_cells(suite(workloads=["wrong"]))


@pytest.mark.parametrize(
    ("axes", "line"),
    [
        ({"workloads": ["gpt2"], "tasks": ["fit"]}, "gpt2 has no fit"),
        ({"workloads": ["mlp"], "tasks": ["decode"]}, "mlp takes no tokens.*choose from gpt2"),
        ({"workloads": ["gpt2"], "tasks": ["decode"], "feeds": ["host"]}, "leave out --feed host"),
        ({"workloads": ["gpt2"], "tasks": ["decode"], "device_counts": [2]}, "leave out --feed host and --devices"),
    ],
)
def test_a_task_that_a_network_or_a_feed_does_not_have_is_refused(axes, line):
    with pytest.raises(SuiteError, match=line):
        plan_cells(suite(**axes))


def test_a_batch_is_divided_among_devices_or_there_is_one_for_each():
    cells = plan_cells(load_suite("scaling"))
    alone, together = {(1, 64, "default"), (2, 64, "default")}, {(2, 128, "default"), (2, 64, "no-all-reduce")}
    assert {(cell.devices, cell.batch, cell.variant) for cell in cells} == alone | together


def test_a_baseline_that_was_narrowed_away_is_the_first_cell():
    narrowed = requested_suite(RunRequest(suite="batch-sweep", workloads=("mlp",), batches=(1, 1000)))
    groups = plan_groups(plan_cells(narrowed), narrowed.compare, narrowed.baseline)
    assert all("/b1/" in group.baseline for group in groups)
    assert narrowed.compared == ["batch"]
    kept = requested_suite(RunRequest(suite="batch-sweep", backends=("torch",)))
    assert kept.baseline == "100"


# Operations as cells: which there are, in what groups and workers, and beside which networks.
networks = partial(suite, backends=["torch", "jax"], batches=[1, 128], tasks=["train", "infer"])


def operations(planned):
    return [cell for cell in plan_cells(planned) if is_operation(cell)]


def test_the_suite_has_every_operation_once_in_each_framework_and_products_in_each_precision():
    cells = plan_cells(load_suite("ceilings"))
    assert {cell.workload for cell in cells} == set(OPERATIONS)
    assert len({cell.key for cell in cells}) == len(cells) == 3 * (2 * len(MATMUL.sizes) + len(TRIAD.sizes) + 3)
    assert {cell.precision for cell in cells if cell.workload != "matmul"} == {"float32"}
    assert {(cell.task, cell.batch, cell.feed) for cell in cells} == {("infer", 1, "device")}


def test_an_accelerator_has_larger_products_and_sizes_can_be_given():
    sizes = {cell.parameters["n"] for cell in operations(networks(workloads=["matmul"], devices=["gpu"]))}
    assert sizes == set(MATMUL.accelerator_sizes)
    given = networks(workloads=["matmul", "mlp"], parameters={"n": [64]})
    assert [cell.parameters for cell in operations(given)] == [{"n": 64}] * 2


@pytest.mark.parametrize("compare", [(), ("batch",), ("task",), ("workload",)])
def test_beside_networks_they_are_groups_of_frameworks_in_processes_of_their_own(compare):
    plain = networks(compare)
    extended = with_ceilings(plain)
    assert extended.measure.ceiling_rounds == CEILING_ROUNDS
    cells = plan_cells(extended)
    assert [cell for cell in cells if not is_operation(cell)] == plan_cells(plain)
    groups = plan_groups(cells, extended.compared)
    by_key = {cell.key: cell for cell in cells}
    for group in groups:
        compared = [by_key[key] for key in group.cells]
        assert len({is_operation(cell) for cell in compared}) == 1
        if is_operation(compared[0]):
            assert [cell.backend for cell in compared] == ["torch", "jax"]
            assert len({cell.key_without(("backend", "compile_mode")) for cell in compared}) == 1
    for bundle in plan_bundles(cells, groups, ["task", "batch", "workload"]):
        for worker in bundle.workers:
            assert len({(is_operation(cell), cell.backend) for cell in worker.cells}) == 1
    # One start of a framework pays for all of them.
    processes = {
        worker.name
        for bundle in plan_bundles(cells, groups, [])
        for worker in bundle.workers
        if is_operation(worker.cells[0])
    }
    assert len(processes) == 2


def test_they_have_the_precisions_and_threads_of_the_networks():
    extended = with_ceilings(networks(precisions=["float32", "bfloat16"], threads=[1, 2]))
    products = [cell for cell in operations(extended) if cell.workload == "matmul" and cell.backend == "jax"]
    assert {(cell.precision, cell.threads) for cell in products} == {
        (precision, threads) for precision in ("float32", "bfloat16") for threads in (1, 2)
    }


def programs(folder, name, **fields):
    (folder / f"{name}.py").write_text("def program(batch, device):\n    return lambda: 1.0\n")
    return plan_cells(requested_suite(RunRequest(programs=(str(folder / f"{name}.py"),), **fields)))


def test_beside_programs_every_framework_is_measured(tmp_path):
    cells = programs(tmp_path, "mine", batches=(1, 128), ceilings=True)
    assert {cell.backend for cell in cells if is_operation(cell)} == {"tensorflow", "torch", "jax"}
    assert sum(not is_operation(cell) for cell in cells) == 2
    # A program may be called as an operation.
    assert [is_operation(cell) for cell in programs(tmp_path, "empty")] == [False]


@pytest.mark.parametrize(
    ("suite", "modes", "shared"),
    [
        ("standard", ["default"], ["workload", "task"]),
        ("standard", ["eager", "compile"], []),
        ("quick", ["eager", "compile"], []),
    ],
)
def test_cells_whose_compile_modes_are_compared_share_no_process(suite, modes, shared):
    request = RunRequest(suite=suite, backends=["torch"], compile_modes=modes)
    plan = plan_of(request, lambda _: None)
    assert plan.suite.process_axes == shared
