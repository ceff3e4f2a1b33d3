"""Programs as they are named: found, told apart and read, never run."""

import hashlib
import sys

import pytest
from refusals import refused

from kit.suites.groups import plan_groups
from kit.suites.plan import plan_cells, requested_suite
from kit.suites.programs import programs_given, sources_of
from kit.suites.run_request import RunRequest
from kit.suites.suite import load_suite

# To import it is an error.
MODEL = """
raise ImportError("run by a member only")

def program(batch, device):
    pass

def both(batch, device, task):
    pass

alias = both
"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    for name in ("model.py", "old/model.py", "new/model.py", "pack/__init__.py", "pack/deep.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suite_of(*texts, **axes):
    return requested_suite(RunRequest(suite="quick", programs=texts, **axes))


def cells_of(*texts, **axes):
    return [(cell.workload, cell.task) for cell in plan_cells(suite_of(*texts, **axes))]


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["model.py"], ["model"]),
        (["model.py", "model.py:both"], ["model", "both"]),
        (["old/model.py", "new/model.py"], ["old.model", "new.model"]),
        (["old/model.py:both", "new/model.py:both", "model.py"], ["old.model.both", "new.model.both", "model"]),
        (["pack.deep", "pack.deep:both"], ["deep", "both"]),
        (["a b/ü.py"], ["program"]),
        (["pack.deep:f", "pack.other:f"], ["deep.f", "other.f"]),
    ],
)
def test_names_are_short_and_tell_apart(models, texts, names):
    assert list(programs_given(texts)) == names


@pytest.mark.parametrize(
    "texts",
    [
        ["my model.py", "my_model.py"],
        ["a b/model.py", "a_b/model.py"],
        ["модель.py", "мудель.py"],
        [f"model.py:{'f' * 41}"],
        [f"{'deep_' * 10}.py"],
    ],
)
def test_a_program_is_never_dropped_and_what_has_no_name_of_its_own_is_asked_for_one(models, texts):
    line = refused(lambda: programs_given(texts))
    assert "--program NAME=" in line
    assert len(programs_given([f"p{number}={text}" for number, text in enumerate(texts)])) == len(texts)


def test_each_is_found_with_its_path_and_hash(models):
    sources = sources_of(suite_of("old/model.py:both", "pack.deep"))
    both, deep = sources["both"], sources["deep"]
    assert (both.path, both.function, both.module, both.takes_task) == (f"{models}/old/model.py", "both", None, True)
    assert (deep.function, deep.module, deep.takes_task) == ("program", "pack.deep", False)
    assert (deep.path, deep.sha256) == (f"{models}/pack/deep.py", hashlib.sha256(MODEL.encode()).hexdigest())
    assert not {"pack", "pack.deep", "model"} & set(sys.modules)


def test_a_program_that_takes_no_task_has_one(models):
    assert cells_of("model.py") == [("model", "train")]
    assert cells_of("model.py", tasks=["infer"]) == [("model", "infer")]
    assert cells_of("model.py:both") == [("both", "train"), ("both", "infer")]
    # What the file does not define itself is not looked into.
    assert cells_of("model.py:alias") == [("alias", "train")]


def test_two_are_a_group_and_batches_have_no_limit(models):
    suite = suite_of("model.py", "model.py:both", tasks=["train"], batches=[1, 10**6])
    groups = plan_groups(plan_cells(suite), suite.compared)
    assert [len(group.cells) for group in groups] == [2, 2]


def test_a_suite_file_names_them_beside_itself(models, tmp_path_factory, monkeypatch):
    (models / "mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\n[cells]\nbatches = [8]\n[programs.mlp]\npath = "new/model.py"\n'
        '[programs.other]\npath = "new/model.py:both"\n'
    )
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    suite = load_suite(str(models / "mine.toml"))
    assert sources_of(suite)["mlp"].path == str(models / "new" / "model.py")
    cells = [(cell.workload, cell.task) for cell in plan_cells(suite)]
    assert cells == [("mlp", "train"), ("other", "train"), ("other", "infer")]

    def narrowed(**axes):
        return requested_suite(RunRequest(suite=str(models / "mine.toml"), **axes))

    assert [cell.workload for cell in plan_cells(narrowed(workloads=["mlp"]))] == ["mlp"]
    assert "choose from mlp, other" in refused(plan_cells, narrowed(workloads=["cnn"]))
    assert "choose from program" in refused(plan_cells, narrowed(backends=["torch"]))
