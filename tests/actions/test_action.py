"""The action for GitHub: its steps run here, on a repository whose head does more work than its base.

KIT_TEST_PLANTED_PCT=5 plants so little that only a quiet machine shows it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml
from actions.composite import run_action
from kit_process import REPOSITORY

from kit.cli import VERBS
from kit.cli.compare_and_audit import run_comparison
from kit.profile.store import read_profile
from kit.version import __version__

ACTION = REPOSITORY / ".github/actions/compare"
FORK = {"github.event.pull_request.head.repo.full_name": "me/fork", "github.repository": "me/project"}
# Beside another test a program's step may take half as long again.
PLANTED = 1 + float(os.environ.get("KIT_TEST_PLANTED_PCT", "200")) / 100
LESS, MORE = 200, round(200 * PLANTED)
ROUNDS = "3" if PLANTED > 2 else "20"
OURS = "github-actions[bot]"
WORK = """
import numpy as np

def work(x):
    for _ in range({count}):
        y = np.sin(x)
    return y
"""
PROGRAM = """
import numpy as np
from package.work import work

def program(batch, device):
    x = np.linspace(0, 1, 40 * batch)
    return lambda: work(x)
"""


def comment_of(number, login, body="<!-- steadykit -->\n**passed**"):
    return {"id": number, "user": {"login": login}, "body": body}


# Somebody else's that begins as the action's, and what another action wrote.
STRANGERS = [comment_of(10, "someone"), comment_of(11, OURS, "coverage")]


@pytest.fixture
def job(tmp_path):
    """Run the action in a job whose repository has a base and a head, each with its own `package.work`."""
    repository, commands = tmp_path / "repository", tmp_path / "bin"
    (repository / "bench").mkdir(parents=True)
    commands.mkdir()
    for name, line in {
        # `known` has the comments there are; the API's answer is what --jq leaves of them.
        "gh": f'printf "%s\\n" "$@" >> {tmp_path}/comments\n'
        f'case "$2" in */7/comments) for word; do filter=$word; done; jq "$filter" {tmp_path}/known;; esac',
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)

    def git(*words):
        name = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *name, *words], cwd=repository, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")

    def commit(work, package):
        (repository / package).mkdir(parents=True, exist_ok=True)
        (repository / package / "work.py").write_text(work)
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "--message", "work")
        return git("rev-parse", "HEAD").strip()

    def run(base_work, head_work, *, github=FORK, known=(), python=sys.executable, package="src/package", **inputs):
        line = f'quick=; [ "$1" != run ] || quick=--quick; exec {python} -P -m kit "$@" $quick'
        (commands / "kit").write_text(f"#!/bin/sh\n{line}\n")
        (commands / "kit").chmod(0o755)
        program = inputs.get("program", "bench/model.py")
        if program != "gone.py":
            (repository / program).write_text(PROGRAM)
        (tmp_path / "known").write_text(json.dumps(known))
        older, base, head = (commit(work, package) for work in (f"{head_work}# older", base_work, head_work))
        if "github.event.pull_request.number" in github:
            # The base branch has got commits since, and HEAD was merged with them.
            shas = {"github.event.pull_request.base.sha": older, "github.event.pull_request.head.sha": head}
            github = github | shas
        git("checkout", "--quiet", git("commit-tree", "HEAD^{tree}", "-p", base, "-p", head, "-m", "merge").strip())
        given = {"program": "bench/model.py", "python-path": package.rpartition("/")[0] or ".", "base": base} | inputs
        path = f"{commands}:{os.environ['PATH']}"
        done = run_action(ACTION, given, github, tmp_path, PATH=path, PYTHONPATH=str(REPOSITORY))
        assert git("worktree", "list").count("\n") == 1  # no checkout is left
        comments = tmp_path / "comments"
        return done, comments.read_text() if comments.exists() else ""

    return run


def uploaded(done) -> Path:
    (upload,) = done.uploads
    assert upload["uses"].startswith("actions/upload-artifact@")
    return Path(upload["path"])


@pytest.mark.quiet
@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "head", "ratio", "verdict"),
    [(LESS, MORE, PLANTED, "slower"), (MORE, LESS, 1 / PLANTED, "passed")],
    ids=["planted", "removed"],
)
def test_a_planted_delay_comes_out(job, base, head, ratio, verdict):
    known, says = STRANGERS, ["pr", "comment", "7"]
    if verdict == "passed":
        known = [*STRANGERS, comment_of(12, OURS), *STRANGERS]
        says = ["--method", "PATCH", "repos/{owner}/{repo}/issues/comments/12"]
    # The branch is the repository's own, so that the token may write.
    github = {**FORK, "github.event.pull_request.head.repo.full_name": "me/project"}
    github["github.event.pull_request.number"] = "7"
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed, which stands for that of gh")
    done, comment = job(
        WORK.format(count=base), WORK.format(count=head), github=github, known=known,
        base="", allowed="1", rounds=ROUNDS, comment="true",
    )  # fmt: skip
    folder = uploaded(done)
    (row,) = (row for row in run_comparison(folder / "run.json").rows if not row.is_baseline)
    assert row.versus.ratio == pytest.approx(ratio, rel=0.5 if PLANTED > 2 else 0.03), done.log
    if done.outputs["verdict"] == "unresolved" and (row.value("is_disturbed") or row.value("rounds") < int(ROUNDS)):
        pytest.skip(f"other programs disturbed most cycles: {done.summary}")
    assert (done.outputs["verdict"], done.codes[0]) == (verdict, 1 if verdict == "slower" else 0), done.log
    assert ("slower by more than 1 % in 2 of 2 runs" in done.summary) == (verdict == "slower")
    assert (folder / "run.confirm.json").exists() == (verdict == "slower")
    kept = {"run.json", "summary.md", *(["page.html"] if "report" in VERBS else [])}
    assert kept <= {file.name for file in folder.iterdir()}
    assert done.summary == (folder / "summary.md").read_text()
    assert "| head |" in re.sub(" +", " ", done.summary) and "| base |" in re.sub(" +", " ", done.summary)
    assert "\n".join(says) in comment and f"{folder}/summary.md" in comment
    assert comment.count("summary.md") == 1


@pytest.fixture
def with_a_copy(tmp_path):
    """An interpreter in whose environment a normal copy of the package is installed, as fast as the base."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "here.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    (site / "package").mkdir()
    (site / "package/__init__.py").touch()
    (site / "package/work.py").write_text(WORK.format(count=LESS))
    return folder / "bin/python"


def lasting(done):
    """The row of the head, and whether each side loaded code of its own; other programs may withhold a verdict."""
    path = uploaded(done) / "run.json"
    (row,) = (row for row in run_comparison(path).rows if not row.is_baseline)
    loaded = [
        {file.sha256 for launch in result.launches for file in launch.imported.files}
        for result in read_profile(path).cells
    ]
    return row, loaded[0] != loaded[1]


@pytest.mark.quiet
@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "is_installed"), [("package", False), ("src/package", True)], ids=["root", "src and installed"]
)
def test_a_later_commit_that_does_three_times_the_work_is_slower(job, request, package, is_installed):
    folder = request.getfixturevalue("tmp_path") / "repository" / package
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    python = request.getfixturevalue("with_a_copy") if is_installed else sys.executable
    done, _ = job(
        WORK.format(count=LESS), WORK.format(count=3 * LESS), package=package, python=python, rounds="3", batch="8"
    )
    row, have_own_code = lasting(done)
    assert have_own_code, done.log
    if done.outputs["verdict"] == "unresolved" and (row.value("is_disturbed") or row.value("rounds") < int(ROUNDS)):
        pytest.skip(f"other programs disturbed most cycles: {done.summary}")
    assert (done.outputs["verdict"], done.codes[0]) == ("slower", 1), done.log
    assert row.versus.ratio == pytest.approx(3, rel=0.3)


@pytest.mark.slow
def test_the_same_code_twice_does_not_pass(job, tmp_path):
    """And neither a name that begins as an option nor a package `kit` of the repository's own is in the way."""
    (tmp_path / "repository/kit").mkdir()
    (tmp_path / "repository/kit/__init__.py").write_text("raise RuntimeError")
    done, _ = job(
        WORK.format(count=LESS), WORK.format(count=LESS), package="package", program="-model.py", rounds="1", batch="8"
    )
    assert (done.outputs["verdict"], done.codes[0]) == ("failed", 4), done.log
    assert lasting(done)[0].kept_apart == "same_code"
    assert "same code" in done.summary


@pytest.mark.slow
def test_a_head_that_fails_does_not_pass(job):
    done, comment = job(
        WORK.format(count=LESS), "def work(x):\n    raise ValueError('planted')\n", rounds="1", comment="true"
    )
    assert done.outputs["verdict"] == "failed" and done.codes == [4], done.log
    assert "planted" in done.log
    assert (uploaded(done) / "run.json").exists()
    assert comment == ""  # it is a fork's branch


@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ({"base": "no-such-branch"}, "no-such-branch"),
        ({"base": "main:other"}, "main:other"),
        ({"base": ""}, "base"),
        ({"program": "gone.py"}, "gone.py"),
    ],
)
def test_what_cannot_be_measured_is_one_line(job, inputs, named):
    done, _ = job(WORK.format(count=LESS), WORK.format(count=MORE), **inputs)
    (line,) = (line for line in done.log.splitlines() if line.startswith("::error::"))
    assert done.codes == [2] and named in line
    assert done.uploads == [] and done.summary == ""


def test_a_name_cannot_begin_another_command_of_the_log(job):
    done, _ = job(WORK.format(count=LESS), WORK.format(count=MORE), base="x\n::add-mask::y")
    assert done.codes == [2] and not any(line.startswith("::add-mask") for line in done.log.splitlines())


def test_the_example_pins_a_version_and_leaves_no_credentials():
    example = yaml.safe_load((REPOSITORY / "docs/examples/github-actions.yml").read_text())
    steps = [step for job in example["jobs"].values() for step in job["steps"]]
    (action,) = (step["uses"] for step in steps if "compare@" in step.get("uses", ""))
    assert action.endswith(f"@v{__version__}")
    page = (REPOSITORY / "docs/how-to/ci.md").read_text()
    checkouts = page.split("uses: actions/checkout")[1:]
    assert checkouts and all("persist-credentials: false" in text.split("- uses")[0] for text in checkouts)


def test_no_value_is_pasted_into_a_script():
    workflows = [*(REPOSITORY / ".github/workflows").glob("*.yml"), REPOSITORY / "docs/examples/github-actions.yml"]
    action = yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"]
    example = [step for job in yaml.safe_load(workflows[-1].read_text())["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in [*action, *example] if "${{" in step.get("run", "")] == []


def test_their_schemas_hold():
    checker = shutil.which("check-jsonschema", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if checker is None:
        pytest.skip("check-jsonschema is not installed")
    for schema, file in (
        ("actions", ACTION / "action.yml"),
        ("workflows", REPOSITORY / "docs/examples/github-actions.yml"),
    ):
        done = subprocess.run(
            [checker, "--output-format", "json", "--builtin-schema", f"vendor.github-{schema}", str(file)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert json.loads(done.stdout)["status"] == "ok", done.stdout
