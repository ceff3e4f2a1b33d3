"""What the options of `kit run` decide, and what is refused, before anything is measured."""

from importlib.util import find_spec

import click
import pytest
from click.testing import CliRunner
from refusals import refusal

from kit.cli import VERBS, app, main
from kit.cli import run_and_selftest as run_module


def kit(*words):
    return CliRunner().invoke(app, words, standalone_mode=False)


def refused(*words):
    """The one line that a command ends with."""
    return refusal(kit(*words))


@pytest.fixture
def runs(monkeypatch):
    """What would have been measured."""
    begun = []
    monkeypatch.setattr(run_module, "measure", lambda running, request, **_: begun.append(running))
    return begun


@pytest.fixture
def planned(runs, tmp_path):
    """Return the plan that options come to; nothing is measured."""

    def plan(*words):
        ended = kit("run", "--out", str(tmp_path / f"{len(runs)}.json"), *words)
        assert ended.exit_code == 0 and ended.exception is None, ended.exception
        return runs[-1].plan

    return plan


@pytest.mark.skipif(find_spec("torch") is None, reason="plans cells of PyTorch")
def test_dtype_is_the_axis_precision(planned):
    torch = ("--data", "synthetic", "--quick", "--backend", "torch", "--workload", "mlp", "--task", "infer")
    both = planned(*torch, "--dtype", "float32", "--dtype", "bfloat16", "--compare", "precision")
    assert [cell.precision for cell in both.cells] == ["float32", "bfloat16"]
    assert len(both.groups) == 1
    narrow = planned(*torch, "--until-precision", "2")
    assert narrow.suite.precision_pct == 2


def test_resume_takes_the_same_words_again_and_refuses_what_differs(runs, tmp_path):
    words = ["run", "--quick", "--backend", "torch,jax", "--workload", "mlp", "--batch", "32,64", "--data", "synthetic"]
    words += ["--out", str(tmp_path / "a.json")]
    assert kit(*words).exception is None
    for again in ([], ["--json"], ["--seed", "0"]):
        runs[-1]._kept.close()
        assert kit(*words, *again, "--resume").exception is None
    assert [run.plan.id for run in runs] == [runs[0].plan.id] * 4
    runs[-1]._kept.close()
    other = [word.replace("32,64", "32") for word in words]
    assert "--batch is 32 here and 32, 64 in" in refused(*other, "--resume")
    dry = kit(*words, "--resume", "--dry-run")
    assert "4 groups" in dry.stdout and len(runs) == 4, "it measures nothing"


def test_a_label_is_one_short_line(planned):
    assert planned("--program", __file__ + ":kit", "--label", "tcmalloc, Tuesday").label == "tcmalloc, Tuesday"
    for label in ("x" * 61, "two\nlines", "\x1b[2J", " padded "):
        assert "--label" in refused("run", "--label", label)


@pytest.mark.parametrize(
    "words",
    [
        *(("run", option, "nan") for option in ("--until-precision", "--budget", "--wait-for-quiet", "--energy")),
        *(("compare", __file__, "--fail-if-slower", number) for number in ("nan", "inf")),
    ],
    ids=lambda words: " ".join(words[-2:]),
)
def test_an_option_takes_finite_numbers_alone(words):
    line = refused(*words)
    assert f"{words[-1]} is not a finite number" in line and "\n" not in line


def test_options_that_exclude_each_other_are_refused():
    assert "--until-precision" in refused("run", "--until-precision", "2", "--rounds", "3")
    assert "leave out --dtype" in refused("run", "--program", "mine.py", "--dtype", "float32")


def test_a_profile_is_replaced_only_by_force(planned, tmp_path):
    program = ("--program", __file__ + ":kit")
    old = tmp_path / "old.json"
    old.write_text("measured")
    assert "--force" in refused("run", *program, "--out", str(old))
    assert planned(*program, "--force", "--out", str(old)).suite.programs
    # Until there is another.
    assert old.read_text() == "measured"


def test_the_line_of_a_verb_in_the_help_is_said_once_and_offers_what_its_options_do():
    commands = {verb: app.get_command(click.Context(app), verb) for verb in VERBS}
    assert {verb for verb, command in commands.items() if command.short_help} == set()
    options = {verb: {option.name for option in command.params} for verb, command in commands.items()}
    with_hosts = {verb for verb, names in options.items() if "hosts" in names}
    assert {verb for verb, (_, line) in VERBS.items() if "host" in line} <= with_hosts


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["run", "--rounds", "x"], "--rounds: 'x' is not a whole number; give one such as 3"),
        (["run", "--rounds", "0"], "--rounds: 0 is out of range; give 1 to 100000"),
        (["run", "--budget", "0"], "--budget: 0.0 is out of range; give more than 0"),
        (["run", "--batch", "32,x"], "--batch: 'x' is not a whole number"),
        (["run", "--task", "x"], "--task: 'x' is not a choice; choose from train, infer, fit"),
        (["run", "--dtype", "bfloat"], "--dtype: 'bfloat' is not a choice; choose from float32, bfloat16, tf32, def"),
        (["compare", "x.json", "--format", "jsno"], "--format: 'jsno' is not a choice; choose from csv, json"),
        (["compare", "--fail-if-slower", "3%", "x"], "--fail-if-slower: '3%' is not a number; give one without"),
        (["compare", "gone.json"], "gone.json: no such file or folder"),
        (["compare"], "PROFILES is missing; "),
        (["compare", "gone.json", "--against"], "--against names no profile"),
        (["compare", "--fail-if-slower", "-1", "x"], "--fail-if-slower: -1.0 is too small; give 0 or more"),
        (["clock", "--source", "sundial"], "--source: 'sundial' is not a choice; choose from auto, monotonic_raw"),
        (["fly"], "No such command 'fly'"),
        (["launch"], "cpu|gpu|tpu is missing; "),
    ],
)
def test_bad_usage_is_told_in_plain_words(monkeypatch, capsys, words, line):
    monkeypatch.setattr("sys.argv", ["kit", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith(f"kit: {line}")
