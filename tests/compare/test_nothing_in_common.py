"""Runs without a common cell: what is said of them, and that the advice is what `kit run` takes."""

import shlex

import msgspec
import profile_builder as b
import pytest
from kit_process import invoke
from refusals import refusal

from kit.cli.run_and_selftest import parse_request
from kit.compare.axes import filter_runs
from kit.compare.notes import read_run
from kit.profile.program_source import ProgramSource
from kit.profile.store import read_profile
from kit.suites.plan import plan_of

PROGRAM = "def program(batch, device): ...\ndef other(batch, device): ...\n"
OWN = {"backend": "program", "precision": "own", "compile_mode": "own", "feed": "own"}


def with_programs(path, *named, **axes):
    """Write a run of user programs, which are functions of one file by their names."""
    cells = [b.cell(workload=name, **OWN | axes) for name, *_ in named]
    sources = {
        name: ProgramSource(path=str(file), function=function, takes_task=False, sha256="a" * 64)
        for name, file, function in named
    }
    built = b.profile(b.group("g", *(b.member(cell=cell) for cell in cells)), id=path.stem, compare=["workload"])
    built.suite = msgspec.structs.replace(built.suite, programs=sources)
    return b.write(path, built)


def advised(before, after):
    """The words after `measure … with`, as a shell gives them to `kit run`."""
    line = refusal(invoke("compare", before, after))
    return line, shlex.split(line.rpartition("; measure after with ")[2])


def test_renamed_programs_get_their_names_back(tmp_path):
    (tmp_path / "base_v2.py").write_text(PROGRAM)
    file = tmp_path / "base_v2.py"
    before = with_programs(tmp_path / "before.json", ("base", "base.py", "program"), ("other", "base.py", "other"))
    after = with_programs(tmp_path / "after.json", ("other2", file, "other"), ("renamed", file, "program"))
    line, words = advised(before, after)
    assert "program base in before, other2 in after" in line and "--workload" not in line
    plan = plan_of(parse_request(words), print)
    assert {name: source.function for name, source in plan.suite.programs.items()} == {
        "base": "program",
        "other": "other",
    }
    assert {cell.workload for cell in plan.cells} == {"base", "other"}


def test_a_renamed_program_of_another_batch_gets_both_back(tmp_path):
    (tmp_path / "my model.py").write_text(PROGRAM)
    before = with_programs(tmp_path / "before.json", ("net", "net.py", "program"), batch=8)
    after = with_programs(tmp_path / "after.json", ("my_model", tmp_path / "my model.py", "program"), batch=16)
    plan = plan_of(parse_request(advised(before, after)[1]), print)
    assert [(cell.workload, cell.batch) for cell in plan.cells] == [("net", 8)]


def test_a_program_in_the_home_folder_is_named_as_a_shell_finds_it(tmp_path):
    before = with_programs(tmp_path / "before.json", ("net", "net.py", "program"))
    after = with_programs(tmp_path / "after.json", ("model", "~/model.py", "program"))
    assert '--program net="$HOME"/model.py' in advised(before, after)[0]


@pytest.mark.parametrize(
    ("axes", "others"),
    [
        ({"workload": "mlp"}, {"workload": "cnn"}),
        ({"devices": 2}, {"devices": 1}),
        ({"batch": 64, "precision": "bfloat16"}, {}),
        ({"threads": 2}, {"threads": None}),
        ({"compile_mode": "compile"}, {}),
    ],
    ids="-".join,
)
def test_the_advice_for_networks_plans_the_cells_of_the_baseline(tmp_path, axes, others):
    for name, more in (("before", axes), ("after", others)):
        b.write(tmp_path / f"{name}.json", b.profile(b.group("g", b.member("torch", **more)), id=name))
    words = advised(tmp_path / "before.json", tmp_path / "after.json")[1]
    plan = plan_of(parse_request(["--backend", "torch", "--task", "train", "--workload", "mlp", *words]), print)
    for axis, value in axes.items():
        assert {cell.value(axis) for cell in plan.cells} == {value}


@pytest.mark.parametrize(
    ("term", "left"),
    [
        ("program=net", {"net"}),
        ("network!=net", {"other"}),
        ("compile-mode=own", {"net", "other"}),
        ("dtype=own", {"net", "other"}),
        ("framework=program", {"net", "other"}),
    ],
)
def test_an_axis_has_the_names_of_its_option_and_of_tables(tmp_path, term, left):
    path = with_programs(tmp_path / "run.json", ("net", "net.py", "program"), ("other", "net.py", "other"))
    run = read_run("run", read_profile(path))
    filter_runs([run], term)
    assert {sample.cell.workload for sample in run.samples.values()} == left
    for option in ("--rows", "--split"):
        shown = invoke("compare", path, option, "program")
        assert shown.exception is None and "net" in shown.stdout
    assert "did you mean program?" in refusal(invoke("compare", path, "--rows", "progam"))
