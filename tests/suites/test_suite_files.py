"""Suites as files and as the command line changes them: what is wrong is one line with the choices."""

import msgspec
import pytest

from kit.errors import KitError
from kit.profile.cell import Variant
from kit.suites.changed import QUICK_FIT_STEPS, changed, parameters_given
from kit.suites.estimate import estimate
from kit.suites.plan import MEMBERS_MAX, plan_cells, plan_groups, plan_shared_groups
from kit.suites.published import is_whole
from kit.suites.suite import VariantTable, builtin_suites, load_suite
from kit.suites.variant import variants_given

MINE = """
name = "mine"
title = "Mine"
[cells]
workloads = ["mlp"]
backends = ["torch"]
tasks = ["train"]
"""


def suite_file(folder, text=MINE):
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def refused(load, *arguments, **options):
    with pytest.raises(KitError) as error:
        load(*arguments, **options)
    assert str(error.value).isprintable()
    return str(error.value)


@pytest.mark.parametrize("name", builtin_suites())
def test_every_built_in_suite_loads_and_has_cells(name):
    suite = load_suite(name)
    assert suite.name == name
    assert suite.compared == (["batch"] if name == "batch-sweep" else ["backend"])
    cells = plan_cells(suite)
    assert {cell.backend for cell in cells} == {"tensorflow", "torch", "jax"}
    # Each framework's cells lie in as few processes as may be: a start is paid once.
    bundles = plan_shared_groups(cells, plan_groups(cells, suite.compared, suite.baseline), suite.measure.share)
    assert all(len(bundle.members) <= MEMBERS_MAX for bundle in bundles)


def test_a_users_own_suite_has_the_defaults_that_are_documented(tmp_path):
    measure = load_suite(suite_file(tmp_path)).measure
    assert (measure.rounds, measure.cycles, measure.block_s, measure.warmup_s, measure.warmup_steps) == (
        8,
        12,
        0.25,
        1,
        10,
    )
    assert measure.plan().energy_s == 0


def test_the_hash_is_of_the_file(tmp_path):
    one = load_suite(suite_file(tmp_path))
    assert load_suite(suite_file(tmp_path)).sha256 == one.sha256
    assert load_suite(suite_file(tmp_path, f"{MINE}# another\n")).sha256 != one.sha256


def test_variants_of_a_file_are_compared_in_its_order(tmp_path):
    tables = '[variants.old]\npython = "/envs/old/bin/python"\n[variants.new]\nenv = {X = "1", Y = "a,b"}\n'
    suite = load_suite(suite_file(tmp_path, MINE + tables))
    assert suite.compared == ["variant"]
    assert suite.all_variants() == [
        Variant(name="old", python="/envs/old/bin/python"),
        Variant(name="new", env={"X": "1", "Y": "a,b"}),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "not TOML"),
        ('name = "x"', "missing required field"),
        (MINE + "extra = 1\n", "extra"),
        (MINE.replace('"train"', '"test"'), "test"),
        (MINE + "batches = [128, 0]\n", "batches"),
        ('compare = ["color"]\n' + MINE, "no axis 'color'; choose from workload, backend"),
        (MINE + '[measure]\nshare = ["backend"]\n', "cannot be shared over 'backend': it is set once"),
        (MINE + "[measure]\nrounds = 0\n", "rounds"),
        (MINE + "[quick]\nfit_steps = 1\n", "fit_steps"),
        (MINE + '[quick]\nshare = ["threads"]\n', "cannot be shared over 'threads'"),
        (MINE + "[measure]\ncycles = 0\n", "cycles"),
        (MINE + "[measure]\nblock_s = nan\n", "block_s"),
        (MINE + "[measure]\nblock_s = -1.0\n", "block_s"),
        (MINE + "[measure]\nblock_s = 0\n", "block_s"),
        (MINE + "[measure]\nwarmup_s = inf\n", "warmup_s"),
        (MINE + "[measure]\nlead_in_s = 0.3\n", "lead_in_s"),
        (MINE + '[variants.x]\npicture = "y"\n', "picture"),
        (MINE + '[variants."a b/c"]\n', "a b/c"),
    ],
)
def test_a_file_that_is_no_suite_is_one_line(tmp_path, text, said):
    assert said in refused(load_suite, suite_file(tmp_path, text))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('"infer"]', '"trian"]', "line 10: cells.tasks: invalid enum value 'trian'; choose from fit, infer, train;"),
        ("tasks", "taks", "line 10: cells: object contains unknown field `taks`; choose from workloads, backends,"),
        ("[64]", "[0]", "line 9: cells.batches: give a whole number >= 1;"),
        ("rounds", "runds", "line 12: measure: object contains unknown field `runds`; choose from rounds, cycles,"),
        ("rounds = 4", "block_s = 0", "line 11: measure: block_s 0.0 leaves no time"),
        ('title = "two"', 'title = "two"\nrows = 2', "measure, quick, variants, table, programs; docs/suites.md"),
        ('title = "two"', "title = 2", "line 2: title: a whole number stands there; give text in quotes;"),
        ("[64]", "64", "cells.batches: a whole number stands there; give a list in brackets;"),
        (
            'title = "two"',
            'title = "two"\nbaseline = 16',
            "baseline: a whole number stands there; give text",
        ),
        ('title = "two"\n', "", "not a suite: object missing required field `title`;"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_choices(tmp_path, right, wrong, said):
    text = """name = "two"
title = "two"
[[cells]]
workloads = ["mlp"]
backends = ["torch"]
[[cells]]
workloads = ["cnn"]
backends = ["torch"]
batches = [64]
tasks = ["train", "infer"]
[measure]
rounds = 4
"""
    assert said in refused(load_suite, suite_file(tmp_path, text.replace(right, wrong)))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('"cnn"', '"cmm"', "line 6: no workload 'cmm'; choose from"),
        ('"jax"', '"jacks"', "line 7: no backend 'jacks'; choose from tensorflow"),
        ("units", "unit", "line 8: no parameter 'unit' of cnn, dblstm; choose from layers, units"),
    ],
)
def test_a_name_that_nothing_has_is_told_with_its_line(tmp_path, right, wrong, said):
    text = """name = "one"
title = "one"

# cmm, jacks and unit are in no value of this line
[cells]
workloads = ["cnn", "dblstm"]
backends = ["torch", "jax"]
parameters = { units = [64] }
"""
    assert plan_cells(load_suite(suite_file(tmp_path, text)))
    assert said in refused(plan_cells, load_suite(suite_file(tmp_path, text.replace(right, wrong))))


def test_a_suite_that_is_not_there_is_one_line_with_the_choices(tmp_path):
    assert "frameworks-cnn, quick, standard" in refused(load_suite, "fast")
    assert "No such file" in refused(load_suite, str(tmp_path / "gone.toml"))
    assert "cannot be read" in refused(load_suite, f"{tmp_path}/")


def test_options_replace_axes_and_quick_replaces_the_measure():
    suite = changed(load_suite("standard"), {"batches": [7, 9], "tasks": ["infer"], "feeds": []}, rounds=5, quick=True)
    assert {(cell.batch, cell.task, cell.feed) for cell in plan_cells(suite)} == {
        (7, "infer", "device"),
        (9, "infer", "device"),
    }
    assert suite.measure.rounds == 5
    assert suite.measure.cycles == load_suite("quick").measure.cycles
    assert suite.name == "standard-quick"


def test_quick_is_never_longer_than_the_suite():
    suite = load_suite("standard")
    short = msgspec.structs.replace(suite, measure=msgspec.structs.replace(suite.measure, rounds=1))
    assert changed(short, {}, quick=True).measure.rounds == 1


def test_variants_of_the_command_line_are_compared_unless_it_says_otherwise():
    given = {"tcmalloc": VariantTable(env={"LD_PRELOAD": "x.so"})}
    suite = changed(load_suite("quick"), {}, variants=given)
    assert suite.compared == ["variant"]
    # One alone is compared with the default.
    assert [variant.name for variant in suite.all_variants()] == ["default", "tcmalloc"]
    assert changed(load_suite("quick"), {}, variants=given, compare=["backend"]).compared == ["backend"]


@pytest.mark.parametrize(
    ("axes", "more", "compared"),
    [
        ({"batches": [32, 64]}, {}, ["batch"]),
        ({"batches": [32, 64], "threads": [1, 2]}, {}, ["batch", "threads"]),
        ({"feeds": ["device", "host"]}, {}, ["feed"]),
        ({"batches": [32, 32]}, {}, ["backend"]),
        ({"workloads": ["dblstm"]}, {"parameters": {"units": [16, 32], "layers": [1]}}, ["units"]),
        # Asked for otherwise.
        ({"batches": [32, 64]}, {"compare": ["backend"]}, ["backend"]),
        ({"batches": [32, 64]}, {"variants": {"x": VariantTable(env={"A": "1"})}}, ["variant"]),
        ({"backends": ["torch", "jax"], "tasks": ["train", "infer"]}, {}, ["backend"]),
    ],
)
def test_several_values_of_an_option_are_compared(axes, more, compared):
    suite = changed(load_suite("standard"), axes, **more)
    assert suite.compared == compared
    groups = plan_groups(plan_cells(suite), suite.compared, suite.baseline)
    assert all(len(group.cells) > 1 for group in groups)


def test_what_a_suite_compares_anyway_it_goes_on_comparing():
    suite = changed(load_suite("batch-sweep"), {"batches": [10, 1000], "threads": [1]})
    assert suite.compared == ["batch"]


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"workloads": ["mpl"]}, "no workload 'mpl'; choose from"),
        ({"backends": ["pytorch"]}, "no backend 'pytorch'; choose from tensorflow, torch, jax; did you mean torch?"),
        ({"compile_modes": ["fast"]}, "no compile mode 'fast'; choose from default"),
        ({"devices": ["npu"]}, "npu"),
        ({"tasks": ["test"]}, "test"),
        ({"batches": [0]}, "batches"),
    ],
)
def test_unknown_names_are_one_line(axes, said):
    assert said in refused(lambda: plan_cells(changed(load_suite("quick"), axes)))


def test_an_axis_that_cannot_be_compared_is_answered_with_the_choices():
    assert "no axis 'color'; choose from workload" in refused(changed, load_suite("quick"), {}, compare=["color"])


def test_what_a_variant_may_say():
    given = variants_given(
        [
            "old:python=/envs/old/bin/python",
            "spin:env=OMP_WAIT_POLICY=active,env=GOMP_SPINCOUNT=1,2,3",
            "both:python=py,env=A=b=c,env=EMPTY=",
            "plain",
        ]
    )
    assert list(given) == ["old", "spin", "both", "plain"]
    assert given["old"] == VariantTable(python="/envs/old/bin/python")
    assert given["spin"].env == {"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "1,2,3"}
    assert given["both"] == VariantTable(python="py", env={"A": "b=c", "EMPTY": ""})
    assert given["plain"] == VariantTable()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["a:env=X=1", "a:env=X=2"], "two variants of one name"),
        (["", "b"], "is no name"),
        (["a/b"], "is no name"),
        (["-x"], "is no name"),
        (["A=1"], "give --variant NAME:env=A=1"),
        (["a:python="], "sets nothing"),
        (["a:env=X"], "sets nothing"),
        (["a:env==1"], "sets nothing"),
        (["a:picture=x"], "sets nothing"),
        (["a:image=x,python=y"], "give python or image"),
    ],
)
def test_what_names_no_variant_is_one_line(texts, said):
    assert said in refused(variants_given, texts)


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
    suite = changed(load_suite(str(tmp_path / "two.toml")), axes)
    cells = plan_cells(suite)
    assert {f"{cell.workload} {cell.task} {cell.feed}" for cell in cells} == expected
    assert {cell.batch for cell in cells} == set(axes.get("batches", [128]))


def test_quick_shortens_a_suite_and_leaves_its_cells_sharing_and_epochs():
    whole, quick = load_suite("frameworks-cnn"), changed(load_suite("frameworks-cnn"), {}, quick=True)
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
    suite = load_suite(suite_file(tmp_path, MINE + OWN_QUICK))
    quick = changed(suite, {"batches": [7]}, quick=True)
    (cell,) = plan_cells(quick)
    assert (cell.task, cell.batch) == ("fit", 7)
    assert (quick.measure.cycles, quick.measure.fit_steps) == (7, 6)
    # What it leaves out is by the general rule, or the suite's own.
    assert (quick.measure.rounds, quick.measure.block_s) == (4, 0.5)
    assert {cell.task for cell in plan_cells(changed(suite, {}))} == {"train"}


@pytest.mark.parametrize("name", ["five-nets", "batch-sweep", "cnn-batch", "frameworks-cnn", "dblstm-har"])
def test_quick_suites_of_the_literature_hold_processes_and_steps_to_a_few(name):
    suite = changed(load_suite(name), {}, quick=True)
    cells = plan_cells(suite)
    groups = plan_groups(cells, suite.compared, suite.baseline)
    bundles = plan_shared_groups(cells, groups, suite.measure.share)
    # A start takes 4 to 8 s: one of each framework in a round.
    assert sum(len(bundle.members) for bundle in bundles) == 3
    assert 3 <= suite.measure.rounds <= 4
    assert suite.measure.fit_steps <= QUICK_FIT_STEPS
    assert estimate(cells, groups, suite.measure.share, suite.measure.plan(), suite.measure.rounds).seconds < 6 * 60


@pytest.mark.parametrize("text", ["units", "units=0", "units=-1", "units=x", "=3", "units=3,,4"])
def test_a_parameter_that_is_no_number_is_refused(text):
    assert "whole numbers of 1 and more" in refused(parameters_given, [text])


def test_parameters_of_the_command_line_replace_the_suites():
    cells = plan_cells(changed(load_suite("dblstm-har"), {}, parameters=parameters_given(["units=32,64", "layers=1"])))
    assert {tuple(cell.parameters.items()) for cell in cells} == {
        (("layers", 1), ("units", 32)),
        (("layers", 1), ("units", 64)),
    }
    assert "no parameter 'depth'" in refused(
        lambda: plan_cells(changed(load_suite("dblstm-har"), {}, parameters={"depth": [2]}))
    )


def test_a_suite_that_a_framework_is_missing_from_is_whole_and_a_narrowed_one_is_not():
    suite = load_suite("batch-sweep")
    cells = plan_cells(suite)
    assert is_whole(suite, [cell for cell in cells if cell.backend == "torch"])
    assert not is_whole(suite, [cell for cell in cells if cell.batch != 100])
