"""Operations as cells: which there are, in what groups and processes, and beside which networks."""

import pytest
from msgspec.structs import replace

from kit.errors import KitError
from kit.suites.plan import plan_cells, plan_groups, plan_shared_groups
from kit.suites.program import programs_given
from kit.suites.request import CEILING_ROUNDS, with_ceilings
from kit.suites.suite import Axes, Suite, load_suite
from kit.workloads.operations import MATMUL, OPERATIONS, TRIAD, is_operation


def suite(compare=(), **axes):
    defaults = {"workloads": ["mlp"], "backends": ["torch", "jax"], "batches": [1, 128], "tasks": ["train", "infer"]}
    return Suite(name="x", title="x", compare=list(compare), cells=Axes(**(defaults | axes)))


def operations(of):
    return [cell for cell in plan_cells(of) if is_operation(cell)]


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
    of = with_ceilings(plain)
    assert of.measure.ceiling_rounds == CEILING_ROUNDS
    cells = plan_cells(of)
    assert [cell for cell in cells if not is_operation(cell)] == plan_cells(plain)
    groups = plan_groups(cells, of.compared)
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
    of = with_ceilings(suite(precisions=["float32", "bfloat16"], threads=[1, 2]))
    products = [cell for cell in operations(of) if cell.workload == "matmul" and cell.backend == "jax"]
    assert {(cell.precision, cell.threads) for cell in products} == {
        (precision, threads) for precision in ("float32", "bfloat16") for threads in (1, 2)
    }


def test_beside_programs_every_framework_is_measured(tmp_path):
    (tmp_path / "mine.py").write_text("def program(batch, device):\n    return lambda: 1.0\n")
    programs = programs_given([str(tmp_path / "mine.py")])
    axes = {"precisions": ["own"], "compile_modes": ["own"], "feeds": ["own"], "backends": ["program"]}
    of = replace(suite(workloads=["mine"], tasks=["train"], **axes), programs=programs)
    cells = plan_cells(with_ceilings(of))
    assert {cell.backend for cell in cells if is_operation(cell)} == {"tensorflow", "torch", "jax"}
    assert sum(not is_operation(cell) for cell in cells) == 2


def test_a_program_may_be_called_as_an_operation(tmp_path):
    (tmp_path / "empty.py").write_text("def program(batch, device):\n    return lambda: 1.0\n")
    axes = {"precisions": ["own"], "compile_modes": ["own"], "feeds": ["own"], "backends": ["program"]}
    programs = programs_given([str(tmp_path / "empty.py")])
    of = replace(suite(workloads=["empty"], batches=[8], tasks=["train"], **axes), programs=programs)
    (cell,) = plan_cells(of)
    assert not is_operation(cell)


def test_a_backend_without_operations_is_refused_with_those_that_have_them(monkeypatch):
    monkeypatch.setattr("kit.suites.plan.has_operations", lambda name: name == "jax")
    with pytest.raises(KitError, match="torch cannot run operations; choose from jax"):
        plan_cells(suite(workloads=["empty"], backends=["torch"]))
