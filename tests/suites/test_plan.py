import pytest

from kit.errors import KitError
from kit.suites.override import override
from kit.suites.plan import plan_cells
from kit.suites.suite import builtin_suites, load_suite
from kit.worker.steady_energy import WINDOW_MIN_NS


def test_quick_suite_is_two_networks_in_three_frameworks_train_and_infer():
    cells = plan_cells(load_suite("quick").cells)
    assert len(cells) == 12
    assert {(cell.workload, cell.backend, cell.task) for cell in cells} == {
        (workload, backend, task)
        for workload in ("mlp", "cnn")
        for backend in ("tensorflow", "torch", "jax")
        for task in ("train", "infer")
    }


@pytest.mark.parametrize("name", builtin_suites())
def test_every_built_in_suite_loads_and_has_cells(name):
    suite = load_suite(name)
    assert suite.name == name
    assert plan_cells(suite.cells)


def test_default_compile_mode_is_the_backends_own():
    modes = {cell.backend: cell.compile_mode for cell in plan_cells(load_suite("quick").cells)}
    assert modes == {"tensorflow": "graph", "torch": "eager", "jax": "jit"}


def test_a_compile_mode_keeps_only_the_backends_that_have_it():
    suite = override(load_suite("quick"), {"compile_modes": ["xla", "jit"]})
    assert {cell.backend for cell in plan_cells(suite.cells)} == {"tensorflow", "jax"}


def test_options_replace_axes_and_quick_replaces_the_measure():
    suite = override(load_suite("standard"), {"batches": [7, 9], "tasks": ["infer"]}, launches=4, quick=True)
    assert {cell.batch for cell in plan_cells(suite.cells)} == {7, 9}
    assert {cell.task for cell in plan_cells(suite.cells)} == {"infer"}
    assert suite.measure.launches == 4
    assert suite.measure.steady_s == load_suite("quick").measure.steady_s
    assert suite.name == "standard-quick"


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ({"workloads": ["mpl"]}, "no workload 'mpl'; choose from mlp, cnn"),
        ({"backends": ["pytorch"]}, "no backend 'pytorch'; choose from tensorflow, torch, jax"),
        ({"devices": ["npu"]}, "no device 'npu'; choose from cpu, gpu, tpu"),
        ({"tasks": ["test"]}, "no task 'test'; choose from train, infer"),
        ({"compile_modes": ["fast"]}, "no compile mode 'fast'; choose from default, graph, xla, eager, compile, jit"),
        ({"batches": [0]}, "batch 0 is not a number of samples; give 1 or more"),
        (
            {"batches": [60001], "tasks": ["train"]},
            "batch 60001 is more than the 60000 samples there are to train on; give fewer",
        ),
        ({"batches": [10001]}, "batch 10001 is more than the 10000 samples there are to infer on; give fewer"),
    ],
)
def test_unknown_names_are_answered_with_the_choices(axes, expected):
    with pytest.raises(KitError) as error:
        plan_cells(override(load_suite("quick"), axes).cells)
    assert str(error.value) == expected


def test_a_users_own_suite_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ntitle = "Mine"\n[cells]\nworkloads = ["mlp"]\nbackends = ["torch"]\ntasks = ["train"]\n'
        "[measure]\nlaunches = 2\nwarmup_s = 0.1\nwarmup_steps_min = 2\nsteady_s = 1\nsteps_min = 20\nsteps_max = 40\n"
    )
    assert [cell.key for cell in plan_cells(load_suite(str(path)).cells)] == [
        "mlp/torch/cpu/train/b128/float32/eager/device/x1"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = ", "not TOML"),
        ('name = "x"', "not a suite: Object missing required field"),
        ('name = "x"\ntitle = "x"\nextra = 1\n', "not a suite"),
    ],
)
def test_a_damaged_suite_file_is_one_line(tmp_path, text, expected):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(KitError) as error:
        load_suite(str(path))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


SOUND = {
    "launches": "1",
    "warmup_s": "0",
    "warmup_steps_min": "0",
    "steady_s": "0.1",
    "steps_min": "20",
    "steps_max": "20",
}


def suite_file(tmp_path, batches="[1]", **measure):
    path = tmp_path / "numbers.toml"
    numbers = "\n".join(f"{name} = {value}" for name, value in (SOUND | measure).items())
    axes = f'workloads = ["mlp"]\nbackends = ["torch"]\nbatches = {batches}\n'
    path.write_text(f'name = "x"\ntitle = "x"\n[cells]\n{axes}[measure]\n{numbers}\n')
    return str(path)


def test_the_least_a_suite_may_ask_for(tmp_path):
    assert load_suite(suite_file(tmp_path)).measure.plan().steps_min == 20


@pytest.mark.parametrize(
    ("number", "word"),
    [
        ({"launches": "0"}, "launches"),
        ({"launches": "-1"}, "launches"),
        ({"warmup_s": "nan"}, "warmup_s"),
        ({"warmup_s": "-1.0"}, "warmup_s"),
        ({"steady_s": "inf"}, "steady_s"),
        ({"warmup_steps_min": "-1"}, "warmup_steps_min"),
        ({"steps_min": "19"}, "steps_min"),
        ({"steps_min": "30"}, "steps_min 30 is more than steps_max 20"),
        ({"batches": "[128, 0]"}, "batches"),
    ],
)
def test_numbers_that_measure_nothing_are_one_line(tmp_path, number, word):
    with pytest.raises(KitError, match="not a suite") as error:
        load_suite(suite_file(tmp_path, **number))
    assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_a_batch_may_be_the_whole_split():
    suite = override(load_suite("quick"), {"batches": [10000], "tasks": ["infer"]})
    assert {cell.batch for cell in plan_cells(suite.cells)} == {10000}


def test_a_backend_asked_for_by_name_does_not_vanish():
    suite = override(load_suite("quick"), {"backends": ["torch", "tensorflow"], "compile_modes": ["xla"]})
    with pytest.raises(KitError, match=r"torch has no compile mode xla; add one of its own \(eager, compile\)"):
        plan_cells(suite.cells, named=["torch", "tensorflow"])
    assert {cell.backend for cell in plan_cells(suite.cells, named=["tensorflow"])} == {"tensorflow"}


def test_an_unknown_suite_is_answered_with_the_choices():
    with pytest.raises(KitError, match="no suite 'fast'; choose from quick, standard"):
        load_suite("fast")


def test_the_standard_suite_measures_long_enough_for_joules_where_a_sensor_answers():
    measure = load_suite("standard").measure
    assert measure.plan().steady_s == 5
    assert measure.plan(energy_answers=True).steady_s * 1e9 > WINDOW_MIN_NS
    quick = load_suite("quick").measure
    assert quick.plan(energy_answers=True) == quick.plan()
