import json
import sys
from typing import NamedTuple

import pytest
from junitparser import JUnitXml
from profile_builder import build_cell, build_failed, build_identity, build_profile, build_result, six_cells

from kit.cli import main
from kit.profile.identity import Container
from kit.profile.launch import Threads
from kit.profile.store import write_profile

ONE_CPU = Threads(requested=1, reported=1, reported_reason=None, cpus=[0])
SLOWER = {"tensorflow": 4.4, "torch": 2.0, "jax": 2.001}


class Answer(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def kit(folder, monkeypatch, capsys):
    """`kit compare …` in this process, as `main` ends it, in the folder of the profiles."""

    def run(*arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["kit", "compare", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return Answer(ended.value.code or 0, shown.out, shown.err)

    return run


@pytest.fixture
def folder(tmp_path):
    limited = build_identity(container=Container(engine="docker", cpu_limit=0.5, memory_limit_b=None, image=None))
    for name, results, fields in (
        ("a", six_cells(), {}),
        ("slower", six_cells(medians_ms=SLOWER), {"identity": limited}),
        ("synthetic", six_cells(data="synthetic"), {}),
        ("one", six_cells(medians_ms=SLOWER, threads=ONE_CPU), {}),
    ):
        write_profile(tmp_path / f"{name}.json", build_profile(results, id=name, **fields))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("a.json", "slower.json"), 0),
        (("a.json", "slower.json", "--fail-if-slower", "5"), 1),
        (("a.json", "slower.json", "--fail-if-slower", "9.99"), 1),
        (("a.json", "slower.json", "--fail-if-slower", "12"), 0),
        (("slower.json", "a.json", "--fail-if-slower", "0"), 0),  # faster
        (("a.json", "slower.json", "--format", "junit"), 0),
        (("a.json", "slower.json", "--format", "junit", "--fail-if-slower", "5"), 1),
        (("a.json", "synthetic.json"), 4),
        (("a.json", "one.json", "--fail-if-slower", "5"), 4),  # what is not comparable is not slower
        (("a.json", "one.json", "--fail-if-slower", "5", "--force"), 1),
        (("a.json", "one.json", "--fail-if-slower", "12", "--force"), 0),
        (("a.json", "one.json", "--why"), 0),
        (("a.json", "none.json", "--fail-if-slower", "5"), 2),
        (("a.json", "one.json", "--baseline", "c", "--fail-if-slower", "5"), 2),
        (("a.json", "--why"), 2),
        (("a.json", "one.json", "slower.json", "--why"), 2),
        (("a.json", "one.json", "--why", "--fail-if-slower", "3"), 2),
        (("a.json", "one.json", "--why", "--format", "csv"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_exit_codes(kit, arguments, code):
    answer = kit(*arguments)
    assert answer.returncode == code, answer.stderr
    assert "Traceback" not in answer.stderr
    if code in (2, 4):
        assert answer.stdout == "" or "junit" in arguments
        assert answer.stderr.startswith("kit: ") and answer.stderr.count("\n") == 1


def test_slower_is_said_in_a_line_a_cell(kit):
    answer = kit("a.json", "slower.json", "--fail-if-slower", "5")
    assert answer.stderr.splitlines() == [
        f"kit: slower by more than 5 %: slower: {workload}/tensorflow/cpu/train/b128/float32/graph/device/x1"
        for workload in ("mlp", "cnn")
    ]


def test_a_ratio_beyond_what_is_allowed_fails_only_where_it_is_resolved(kit, folder):
    for name, factor in (("noisy", 1.0), ("noisier", 1.06)):
        results = six_cells(jitter=0.05, launches=5, medians_ms={"torch": 2.0 * factor})[:1]
        write_profile(folder / f"{name}.json", build_profile(results, id=name))
    answer = kit("noisy.json", "noisier.json", "--fail-if-slower", "3")
    assert answer.returncode == 0
    assert answer.stderr == "kit: 0 slower, 1 unresolved: what is unresolved does not fail the gate\n"


def test_a_cell_is_counted_once_by_the_gate(kit, folder):
    """Too few launches are not compared, and not unresolved, too."""
    cells = [
        build_result(build_cell("torch"), [2.0e6, 2.1e6, 1.9e6]),
        build_result(build_cell("jax"), [2.0e6]),
    ]
    for name in ("few", "again"):
        write_profile(folder / f"{name}.json", build_profile(cells, id=name))
    answer = kit("few.json", "again.json", "--fail-if-slower", "3")
    assert answer.stderr.splitlines() == [
        "kit: 1 cell not compared: 1 too few launches",
        "kit: 0 slower, 1 unresolved: what is unresolved does not fail the gate",
    ]


def test_a_gate_without_a_comparison_is_an_error_in_junit_too(kit, folder):
    for name in ("once", "twice"):
        write_profile(folder / f"{name}.json", build_profile([build_result(build_cell(), [2.0e6])], id=name))
    answer = kit("once.json", "twice.json", "--fail-if-slower", "3", "--format", "junit")
    assert answer.returncode == 4
    assert JUnitXml.fromstring(answer.stdout.encode()).errors == 1
    # Without a gate nothing was asked that could fail.
    assert JUnitXml.fromstring(kit("once.json", "twice.json", "--format", "junit").stdout.encode()).errors == 0


@pytest.mark.parametrize("command", ["compare", "show", "run"])
def test_an_empty_name_is_none(command, monkeypatch, capsys):
    """As a shell gives one where a variable is not set."""
    monkeypatch.setattr(sys, "argv", ["kit", command, ""])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("kit: ") and shown.err.count("\n") == 1


def test_force_carries_the_difference_in_every_format(kit):
    for name, words in (
        ("text", "FORCED: threads 1 against 2"),
        ("markdown", "FORCED: threads 1 against 2"),
        ("csv", "threads 1 against 2"),
        ("json", '"forced": "threads 1 against 2"'),
        ("junit", "FORCED: threads 1 against 2"),
    ):
        answer = kit("a.json", "one.json", "--force", "--format", name)
        assert answer.stdout.count(words) >= 6, name


def test_why_in_words_and_as_json(kit):
    shown = kit("a.json", "slower.json", "--why").stdout
    assert "a has no CPU limit; slower may use 0.5 of its 4 CPUs." in shown
    answer = json.loads(kit("a.json", "slower.json", "--why", "--json").stdout)
    assert answer["labels"] == ["a", "slower"]
    assert {reason["name"]: reason["grade"] for reason in answer["reasons"]} == {
        "CPU limit": "warns",
        "container": "warns",
    }


def test_why_takes_its_first_from_the_baseline(kit):
    answer = json.loads(kit("a.json", "slower.json", "--why", "--baseline", "slower", "--json").stdout)
    assert answer["labels"] == ["slower", "a"]


def test_json_has_the_graded_differences(kit):
    answer = json.loads(kit("a.json", "one.json", "--force", "--json").stdout)
    (threads,) = answer["differences"]
    assert (threads["grade"], threads["kind"], threads["values"]) == ("blocks", "threads", {"2": ["a"], "1": ["one"]})


def test_junit_is_read_by_its_consumers(kit):
    answer = kit("a.json", "slower.json", "--format", "junit", "--fail-if-slower", "5")
    (suite,) = JUnitXml.fromstring(answer.stdout.encode())
    assert (suite.tests, suite.failures) == (12, 2)


def test_the_gate_says_what_it_could_not_judge(kit, folder):
    """A run whose cells failed, found no steady state or are missing has not passed."""
    unsteady = [build_result(build_cell(result.cell.backend), [None] * 10) for result in six_cells()[:3]]
    failed = [build_failed(result.cell) for result in six_cells()]
    for name, results in (("unsteady", unsteady), ("failed", failed), ("fewer", six_cells()[1:])):
        write_profile(folder / f"{name}.json", build_profile(results, id=name))
    for name, said in (
        ("failed", "6 cells not compared: 6 no steady number"),
        ("unsteady", "6 cells not compared: 3 no steady number; 3 only in a"),
    ):
        answer = kit("a.json", f"{name}.json", "--fail-if-slower", "3")
        assert answer.returncode == 4
        assert answer.stderr.splitlines() == [
            f"kit: {said}",
            "kit: nothing was compared, so nothing has passed the gate",
        ]
    answer = kit("a.json", "fewer.json", "--fail-if-slower", "3")
    assert answer.returncode == 0
    assert answer.stderr == "kit: 1 cell not compared: 1 only in a\n"


def test_the_gate_of_one_profile_needs_a_pair_too(kit, folder):
    write_profile(folder / "torch.json", build_profile(six_cells()[1:2], id="torch"))
    answer = kit("torch.json", "--fail-if-slower", "3")
    assert answer.returncode == 4
    assert kit("torch.json").returncode == 0


def test_what_is_not_comparable_is_said_in_junit_too(kit):
    answer = kit("a.json", "one.json", "--format", "junit")
    assert answer.returncode == 4
    ((case,),) = JUnitXml.fromstring(answer.stdout.encode())
    assert "threads 1 against 2" in case.result[0].message


def test_two_formats_are_one_too_many(kit):
    answer = kit("a.json", "slower.json", "--json", "--format", "csv")
    assert answer.returncode == 2
    assert answer.stderr == "kit: --json and --format csv cannot both be had; give one\n"
