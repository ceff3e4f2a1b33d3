"""Operations as cells: which there are, in what groups and processes, and beside which networks."""

import pytest

from kit.errors import KitError
from kit.suites.plan import plan_cells, plan_groups, plan_shared_groups
from kit.suites.request import CEILING_ROUNDS, RunRequest, requested_suite, with_ceilings
from kit.suites.suite import Axes, Suite, load_suite
from kit.workloads.operations import MATMUL, OPERATIONS, TRIAD, is_operation


def suite(compare=(), **axes):
    defaults = {"workloads": ["mlp"], "backends": ["torch", "jax"], "batches": [1, 128], "tasks": ["train", "infer"]}
    return Suite(name="x", title="x", compare=list(compare), cells=Axes(**(defaults | axes)))


def operations(planned):
    return [cell for cell in plan_cells(planned) if is_operation(cell)]


def test_the_suite_has_every_operation_once_in_each_framework_and_products_in_each_precision():
    cells = plan_cells(load_suite("ceilings"))
    assert {cell.workload for cell in cells} == set(OPERATIONS)
    assert len({cell.key for cell in cells}) == len(cells) == 3 * (2 * len(MATMUL.sizes) + len(TRIAD.sizes) + 3)
    assert {cell.precision for cell in cells if cell.workload != "matmul"} == {"float32"}
    assert {(cell.task, cell.batch, cell.feed) for cell in cells} == {("infer", 1, "device")}


def test_an_accelerator_has_larger_products_and_sizes_can_be_given():
    sizes = {cell.parameters["n"] for cell in operations(suite(workloads=["matmul"], devices=["gpu"]))}
    assert sizes == set(MATMUL.accelerator_sizes)
    given = suite(workloads=["matmul", "mlp"], parameters={"n": [64]})
    assert [cell.parameters for cell in operations(given)] == [{"n": 64}] * 2


@pytest.mark.parametrize("compare", [(), ("batch",), ("task",), ("workload",)])
def test_beside_networks_they_are_groups_of_frameworks_in_processes_of_their_own(compare):
    plain = suite(compare)
    extended = with_ceilings(plain)
    assert extended.measure.ceiling_rounds == CEILING_ROUNDS
    cells = plan_cells(extended)
    assert [cell for cell in cells if not is_operation(cell)] == plan_cells(plain)
    groups = plan_groups(cells, extended.compared)
    by_key = {cell.key: cell for cell in cells}
    for group in groups:
        members = [by_key[key] for key in group.cells]
        assert len({is_operation(cell) for cell in members}) == 1
        if is_operation(members[0]):
            assert [cell.backend for cell in members] == ["torch", "jax"]
            assert len({cell.key_without(("backend", "compile_mode")) for cell in members}) == 1
    for shared in plan_shared_groups(cells, groups, ["task", "batch", "workload"]):
        for member in shared.members:
            assert len({(is_operation(cell), cell.backend) for cell in member.cells}) == 1
    # One start of a framework pays for all of them.
    processes = {
        member.name
        for shared in plan_shared_groups(cells, groups, [])
        for member in shared.members
        if is_operation(member.cells[0])
    }
    assert len(processes) == 2


def test_they_have_the_precisions_and_threads_of_the_networks():
    extended = with_ceilings(suite(precisions=["float32", "bfloat16"], threads=[1, 2]))
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


def test_a_backend_without_operations_is_refused_with_those_that_have_them(monkeypatch):
    monkeypatch.setattr("kit.suites.plan.has_operations", lambda name: name == "jax")
    with pytest.raises(KitError, match="torch cannot run operations; choose from jax"):
        plan_cells(suite(workloads=["empty"], backends=["torch"]))
