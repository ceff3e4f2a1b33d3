"""Suites as files and as the command line changes them: what is wrong is one line with the choices."""

import pytest
from msgspec.structs import replace
from refusals import refused

from kit.backends.backend_catalog import CATALOG
from kit.runner.time_left import estimate
from kit.suites.groups import GROUP_FRAMEWORKS_MAX, plan_bundles, plan_groups
from kit.suites.plan import QUICK_FIT_STEPS, is_whole, plan_cells, requested_suite
from kit.suites.run_request import RunRequest, parameters_given, variants_given
from kit.suites.suite import VariantTable, builtin_suites, load_suite

MINE = """
name = "mine"
title = "Mine"
[cells]
workloads = ["mlp"]
backends = ["torch"]
tasks = ["train"]
"""


def requested(suite="standard", **fields):
    return requested_suite(RunRequest(suite=str(suite), **fields))


def suite_file(folder, text=MINE):
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", builtin_suites())
def test_every_built_in_suite_loads_and_has_cells(name):
    suite = load_suite(name)
    assert suite.name == name
    compared = {
        "batch-sweep": ["batch"],
        "selftest": ["variant"],
        "scaling": ["devices", "batch", "variant"],
        "tuned": ["variant", "compile_mode", "precision"],
    }
    assert suite.compared == compared.get(name, ["backend"])
    cells = plan_cells(suite)
    assert {cell.backend for cell in cells} == ({"torch"} if name == "selftest" else {"tensorflow", "torch", "jax"})
    # Each framework's cells lie in as few processes as may be: a start is paid once.
    groups = plan_groups(cells, suite.compared, suite.baseline, suite.also_compare)
    bundles = plan_bundles(cells, groups, suite.measure.share)
    assert all(len(bundle.workers) <= GROUP_FRAMEWORKS_MAX for bundle in bundles)


def test_the_first_hour_has_each_network_on_both_devices_and_loads_in_workers_of_their_own():
    suite = load_suite("first-hour")
    cells = plan_cells(suite)
    fits = {(cell.workload, cell.backend, cell.device) for cell in cells if cell.task == "fit"}
    assert fits == {(*names, device) for *names, _ in fits for device in ("cpu", "gpu")}
    assert {cell.device for cell in cells if cell.task != "fit"} == {"gpu"}
    bundles = plan_bundles(cells, plan_groups(cells, suite.compared, suite.baseline), suite.measure.share)
    held = [{(cell.workload, cell.variant) for cell in worker.cells} for bundle in bundles for worker in bundle.workers]
    for load in ("matmul", "transformer"):
        assert held.count({(load, "default")}) == 3
    assert held.count({("mlp", "alone")}) == 1


def test_a_users_own_suite_has_the_defaults_that_are_documented(tmp_path):
    measure = load_suite(suite_file(tmp_path)).measure
    plan = measure.plan()
    fields = (measure.rounds, measure.cycles, measure.block_s, measure.warmup_steps, measure.energy_s)
    assert fields == (8, 8, 0.25, 10, None) and (plan.warmup_least_s, plan.warmup_s) == (0.1, 1)


def test_a_warm_up_whose_length_is_set_has_that_length(tmp_path):
    plans = [
        load_suite(suite_file(tmp_path, f"{MINE}\n[measure]\nwarmup_s = 5.0\n{least}")).measure.plan()
        for least in ("", "warmup_least_s = 0.2")
    ]
    assert [(plan.warmup_least_s, plan.warmup_s) for plan in plans] == [(5, 5), (0.2, 5)]


def test_options_replace_axes_and_quick_replaces_the_measure(tmp_path):
    five = tmp_path / "five.toml"
    five.write_text(MINE + "[measure]\nrounds = 1\n")
    assert requested(five, quick=True).measure.rounds == 1, "a quick run is never longer"
    suite = requested("five-nets", batches=[7, 9], tasks=["infer"], rounds=5, quick=True)
    cells = {(cell.batch, cell.task, cell.feed) for cell in plan_cells(suite)}
    assert cells == {(7, "infer", "device"), (9, "infer", "device")}
    assert suite.measure.rounds == 5
    assert suite.measure.cycles == 4
    assert suite.name == "five-nets-quick"
    assert requested(quick=True).name == "quick", "the quick form of the default has a name of its own"


def test_variants_of_the_command_line_are_compared_unless_it_says_otherwise():
    given = {"tcmalloc": VariantTable(env={"LD_PRELOAD": "x.so"})}
    suite = requested(variants=given)
    assert suite.compared == ["variant"]
    # One alone is compared with the default.
    assert [variant.name for variant in suite.all_variants()] == ["default", "tcmalloc"]
    assert requested(variants=given, compare=["backend"]).compared == ["backend"]
    assert "no axis 'color'; choose from workload" in refused(requested, compare=["color"])


@pytest.mark.parametrize(
    ("fields", "compared"),
    [
        ({"batches": [32, 64]}, ["batch"]),
        ({"batches": [32, 64], "threads": [1, 2]}, ["batch", "threads"]),
        ({"feeds": ["device", "host"]}, ["feed"]),
        ({"batches": [32, 32]}, ["backend"]),
        ({"workloads": ["dblstm"], "parameters": {"units": [16, 32], "layers": [1]}}, ["units"]),
        # Asked for otherwise.
        ({"batches": [32, 64], "compare": ["backend"]}, ["backend"]),
        ({"batches": [32, 64], "variants": {"x": VariantTable(env={"A": "1"})}}, ["variant"]),
        ({"backends": ["torch", "jax"], "tasks": ["train", "infer"]}, ["backend"]),
    ],
)
def test_several_values_of_an_option_are_compared(fields, compared):
    suite = requested(**fields)
    assert suite.compared == compared
    groups = plan_groups(plan_cells(suite), suite.compared, suite.baseline)
    assert all(len(group.cells) > 1 for group in groups)


def test_what_a_variant_may_say():
    spin = "spin:env=OMP_WAIT_POLICY=active,env=GOMP_SPINCOUNT=1,2,3"
    assert variants_given([spin, "both:python=py,env=A=b=c,env=EMPTY=", "plain"]) == {
        "spin": VariantTable(env={"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "1,2,3"}),
        "both": VariantTable(python="py", env={"A": "b=c", "EMPTY": ""}),
        "plain": VariantTable(),
    }


TWO_TABLES = """
name = "two"
title = "two"
[[cells]]
workloads = ["mlp"]
backends = ["torch", "jax"]
tasks = ["train", "infer"]
[[cells]]
workloads = ["mlp", "cnn"]
backends = ["torch", "jax"]
tasks = ["fit"]
feeds = ["host"]
"""


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ({}, {"mlp train device", "mlp infer device", "mlp fit host", "cnn fit host"}),
        ({"tasks": ["train"]}, {"mlp train device"}),
        ({"tasks": ["fit", "train"]}, {"mlp train device", "mlp fit host", "cnn fit host"}),
        ({"workloads": ["cnn"]}, {"cnn fit host"}),
        # What no table has is put into all of them.
        ({"workloads": ["cnn_small"]}, {"cnn_small train device", "cnn_small infer device", "cnn_small fit host"}),
        ({"batches": [8]}, {"mlp train device", "mlp infer device", "mlp fit host", "cnn fit host"}),
    ],
)
def test_options_narrow_each_table_of_cells(tmp_path, axes, expected):
    (tmp_path / "two.toml").write_text(TWO_TABLES)
    suite = requested(tmp_path / "two.toml", **axes)
    cells = plan_cells(suite)
    assert {f"{cell.workload} {cell.task} {cell.feed}" for cell in cells} == expected
    assert {cell.batch for cell in cells} == set(axes.get("batches", [128]))


def test_quick_shortens_a_suite_and_leaves_its_cells_sharing_and_epochs():
    whole, quick = load_suite("frameworks-cnn"), requested("frameworks-cnn", quick=True)
    assert quick.name == "frameworks-cnn-quick"
    assert plan_cells(quick) == plan_cells(whole)
    assert quick.measure.share == whole.measure.share
    assert (quick.measure.epochs, quick.measure.fit_rounds) == (2, 1)
    assert whole.measure.fit_steps is None and quick.measure.fit_steps == QUICK_FIT_STEPS


OWN_QUICK = """
[measure]
cycles = 9
block_s = 0.5
[quick]
cycles = 7
fit_steps = 6
[quick.cells]
workloads = ["mlp"]
backends = ["torch"]
tasks = ["fit"]
"""


def test_a_suite_says_itself_what_is_quick(tmp_path):
    path = suite_file(tmp_path, MINE + OWN_QUICK)
    quick = requested(path, batches=[7], quick=True)
    (cell,) = plan_cells(quick)
    assert (cell.task, cell.batch) == ("fit", 7)
    assert (quick.measure.cycles, quick.measure.fit_steps) == (7, 6)
    # What it leaves out is by the general rule, or the suite's own.
    assert (quick.measure.rounds, quick.measure.block_s) == (6, 0.5)
    assert {cell.task for cell in plan_cells(requested(path))} == {"train"}


@pytest.mark.parametrize("name", ["five-nets", "batch-sweep", "cnn-batch", "frameworks-cnn", "dblstm-har"])
def test_quick_suites_of_the_literature_hold_processes_and_steps_to_a_few(name):
    suite = requested(name, quick=True)
    cells = plan_cells(suite)
    groups = plan_groups(cells, suite.compared, suite.baseline)
    bundles = plan_bundles(cells, groups, suite.measure.share)
    # A start takes 4 to 8 s: one of each framework in a round.
    assert sum(len(bundle.workers) for bundle in bundles) == 3
    assert 3 <= suite.measure.rounds <= 4
    assert suite.measure.fit_steps <= QUICK_FIT_STEPS
    assert estimate(cells, groups, suite.measure.share, suite.measure.plan(), suite.measure.rounds).seconds < 6 * 60


def test_parameters_of_the_command_line_replace_the_suites():
    given = parameters_given(["units=32,64", "layers=1"])
    cells = plan_cells(requested("dblstm-har", parameters=given))
    assert {(cell.parameters["layers"], cell.parameters["units"]) for cell in cells} == {(1, 32), (1, 64)}
    deeper = requested("dblstm-har", parameters={"depth": [2]})
    assert "no parameter of dblstm 'depth'" in refused(plan_cells, deeper)


def test_a_suite_that_a_framework_is_missing_from_is_whole_and_a_narrowed_one_is_not():
    suite = load_suite("batch-sweep")
    cells = plan_cells(suite)
    assert is_whole(suite, [cell for cell in cells if cell.backend == "torch"])
    assert not is_whole(suite, [cell for cell in cells if cell.batch != 100])


@pytest.mark.parametrize("name", ["five-nets", "dblstm-har", "cnn-batch", "batch-sweep", "frameworks-cnn", "scaling"])
def test_what_is_held_against_the_literature_or_scaled_has_each_frameworks_own_mode_on_a_gpu_too(name):
    suite = load_suite(name)
    on_gpu = replace(suite, cells=[replace(axes, devices=["gpu"]) for axes in suite.axes])
    assert all(cell.compile_mode == CATALOG[cell.backend].compile_modes[0] for cell in plan_cells(on_gpu))
