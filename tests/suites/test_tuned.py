"""The suite `tuned`: settings beside their framework's defaults, frameworks beside each other, and the sources."""

import re
from collections import Counter
from pathlib import Path

import pytest

from kit.profile.schema import PART
from kit.suites.groups import plan_bundles, plan_groups
from kit.suites.plan import plan_cells, requested_suite
from kit.suites.run_request import RunRequest
from kit.suites.suite import Axes, Suite, SuiteError, load_suite
from kit.suites.suite import __file__ as suites_file

FILE = Path(suites_file).with_name("tuned.toml")
GPU_ONLY = {
    "reduce-overhead",
    "max-autotune",
    "tf32",
    "cudnn-benchmark",
    "gpu-threads",
    "latency-hiding",
    "triton-gemm",
}
# These are no setting of a guide: what is left out, and what is chosen.
SUMS = {"defaults", "tuned", "tuned-gpu"}


def planned(**fields):
    """Cells by key, and their groups, each as variants and frameworks."""
    suite = requested_suite(RunRequest(suite="tuned", **fields))
    cells = {cell.key: cell for cell in plan_cells(suite)}
    groups = plan_groups([*cells.values()], suite.compared, suite.baseline, suite.also_compare)
    return cells, groups


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(("device", "tuned"), [("cpu", "tuned"), ("gpu", "tuned-gpu")])
def test_settings_are_compared_within_a_framework_and_frameworks_at_defaults_and_tuned(quick, device, tuned):
    cells, groups = planned(quick=quick, devices=(device,))
    assert {cell.device for cell in cells.values()} == {device}
    between = Counter()
    for group in groups:
        members = [cells[key] for key in group.cells]
        if len({cell.backend for cell in members}) == 1:
            assert cells[group.baseline].variant == "defaults"
            assert len({cell.variant for cell in members}) == len(members)
        else:
            assert [cell.backend for cell in members] == ["tensorflow", "torch", "jax"]
            (variant,) = {cell.variant for cell in members}
            between[variant] += 1
    networks = len({cell.workload for cell in cells.values()})
    assert between == {"defaults": networks, tuned: networks}


def test_a_look_has_the_settings_that_every_guide_begins_with():
    cells, groups = planned(quick=True)
    within = [{cells[key].variant for key in group.cells} for group in groups[:3]]
    assert within == [
        {"defaults", "jit-compile", "tuned"},
        {"defaults", "fused", "compile", "tuned"},
        {"defaults", "donated", "tuned"},
    ]
    assert not any(PART in group.key for group in groups)


def test_what_only_a_gpu_has_is_planned_only_where_a_gpu_is_named():
    variants = {device: {cell.variant for cell in planned(devices=device)[0].values()} for device in ((), ("gpu",))}
    assert not GPU_ONLY & variants[()] and variants["gpu",] >= GPU_ONLY
    assert {cell.device for cell in planned()[0].values()} == {"cpu"}
    assert variants[()] | variants["gpu",] == load_suite("tuned").variants.keys()


def test_every_setting_has_its_source_above_it():
    comments = re.findall(r"((?:#.*\n)*)\[variants\.([\w-]+)", FILE.read_text())
    assert {name for _, name in comments} == load_suite("tuned").variants.keys()
    assert {name for comment, name in comments if "https://" not in comment} == SUMS


def test_a_cell_that_is_compared_twice_has_a_worker_of_each_group():
    suite = Suite(
        name="x",
        title="x",
        compare=["task"],
        also_compare=["framework"],
        cells=Axes(workloads=["mlp"], backends=["torch", "jax"]),
    )
    cells = plan_cells(suite)
    groups = plan_groups(cells, suite.compared, None, suite.also_compare)
    assert [[key.split("/")[1:4:2] for key in group.cells] for group in groups] == [
        [["torch", "train"], ["torch", "infer"]],
        [["jax", "train"], ["jax", "infer"]],
        [["torch", "train"], ["jax", "train"]],
        [["torch", "infer"], ["jax", "infer"]],
    ]
    # One process a framework holds both tasks of its first group, and another one both of its second.
    bundles = plan_bundles(cells, groups, ["task"])
    assert [len(bundle.workers) for bundle in bundles] == [1, 1, 2]
    with pytest.raises(ValueError, match=r"no axis 'bakend'; .*did you mean backend"):
        Suite(name="x", title="x", also_compare=["bakend"], cells=Axes(workloads=["mlp"], backends=["torch"]))


@pytest.mark.parametrize(
    ("lines", "mistake"),
    [
        ("only_if_named = 3", "line 6: cells.only_if_named is 3; give true or false"),
        ('only_if_named = true\ntasks = ["trian"]', 'line 7: cells.tasks[0] is "trian"'),
    ],
)
def test_a_mistake_beside_a_truth_value_is_the_one_that_is_named(tmp_path, lines, mistake):
    path = tmp_path / "own.toml"
    path.write_text(f'name = "own"\ntitle = "x"\n[cells]\nworkloads = ["mlp"]\nbackends = ["jax"]\n{lines}\n')
    with pytest.raises(SuiteError, match=re.escape(mistake)):
        load_suite(str(path))
