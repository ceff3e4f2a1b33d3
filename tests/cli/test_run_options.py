"""What the options of `kit run` decide, and what is refused, before anything is measured."""

from importlib.util import find_spec

import click
import pytest
from kit_process import invoke as kit
from refusals import refusal

from kit.cli import VERBS, app
from kit.cli import run_and_selftest as run_module


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
