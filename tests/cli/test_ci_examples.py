"""The pipelines of docs/how-to/ci.md: they are YAML, their kit commands are commands, and their suite is one."""

import re
import shlex
from pathlib import Path

import yaml
from click import Context

from kit.cli import app
from kit.cli.run_and_selftest import parse_request
from kit.suites.groups import plan_groups
from kit.suites.plan import plan_cells, requested_suite

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "ci.md").read_text(encoding="utf-8")
PYTHON, ACTION, _, TOML, ACTIONS, GITLAB, _ = re.findall(r"```(?:python|toml|yaml)\n(.*?)```", PAGE, re.DOTALL)


def commands():
    """The words of each kit command of both pipelines, up to where its output goes."""
    steps = [step["run"] for step in yaml.safe_load(ACTIONS)["jobs"]["speed"]["steps"] if "run" in step]
    lines = "\n".join([*steps, *yaml.safe_load(GITLAB)["speed"]["script"]])
    return [shlex.split(command) for command in re.findall(r"bin/kit ([^>|\n]*)", lines)]


def test_its_commands_are_those_of_the_kit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.json").touch()
    shown = commands()
    assert [name for name, *_ in shown] == ["run", "compare", "compare", "run", "compare"]
    for name, *words in shown:
        app.get_command(Context(app), name).make_context(name, words)


def test_the_file_for_github_is_the_one_on_the_page():
    assert (DOCS / "examples" / "github-actions.yml").read_text(encoding="utf-8") == ACTION


def test_its_action_takes_what_the_page_gives_and_lists():
    inputs = yaml.safe_load((DOCS.parent / ".github/actions/compare/action.yml").read_text())["inputs"]
    (step,) = (step for step in yaml.safe_load(ACTION)["jobs"]["speed"]["steps"] if "compare@" in step.get("uses", ""))
    assert {name for name, table in inputs.items() if table.get("required")} <= step["with"].keys() <= inputs.keys()
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE) == [*inputs]


def test_its_suite_compares_base_and_head(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "head/benchmarks").mkdir(parents=True)
    (tmp_path / "head/benchmarks/model.py").write_text(PYTHON)
    (tmp_path / "head/ci.toml").write_text(TOML)
    (_, *words), *_ = commands()
    suite = requested_suite(parse_request(words))
    (group,) = plan_groups(plan_cells(suite), suite.compared, suite.baseline)
    assert [key.rpartition("/")[2] for key in group.cells] == ["base", "head"] and group.baseline.endswith("/base")
