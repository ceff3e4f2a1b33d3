"""Cells that were to differ in code and loaded the same: no verdict, a finding, and the gate does not pass."""

import json

import msgspec
import profile_builder as b
import pytest
from audit.asking import outcomes
from kit_process import invoke

from kit.compare.compare import compare_within
from kit.compare.fail_if_slower import limit_slow_downs
from kit.profile.cell import Variant
from kit.profile.program_source import ProgramSource
from kit.profile.schema import ImportedCode, ImportedFile
from kit.runner.rounds_left import next_round

BASE, HEAD = ({"PYTHONPATH": f"/{side}"} for side in ("base", "head"))


def code(*contents, left_out=0, where="", environment="e"):
    files = [ImportedFile(path=f"package/{name}.py", sha256=name * 64) for name in contents]
    return {
        "imported": ImportedCode(
            files=files, left_out=left_out, left_out_sha256=where, environment_sha256=environment * 64
        )
    }


def side(variant, launch, *, workload="model", step_ms=2.0, **more):
    launch = {"parity": None} | launch
    return b.member("program", step_ms, workload, variant=variant, launch=launch, precision="own", **more)


def program(path="model.py", content="a", function="program"):
    return ProgramSource(path=path, function=function, takes_task=False, sha256=content * 64)


def two_variants(base, head, base_launch, head_launch, **more):
    """A profile of a program in two variants, given what these set and what each loaded."""
    variants = [Variant(name="base", **base), Variant(name="head", **head)]
    return built([side("base", base_launch, **more), side("head", head_launch, **more)], variants=variants)


def built(members, variants=(), programs=None):
    profile = b.profile(b.group("model train", *members), rounds=8, variants=variants, compare=["variant"])
    profile.suite = msgspec.structs.replace(profile.suite, programs=programs or {"model": program()})
    return profile


def codes_of(profile):
    """Return the baseline's row and the other one, and what the gate makes of it."""
    comparison = compare_within("p", profile)
    (row,) = (row for row in comparison.rows if not row.is_baseline)
    return row, limit_slow_downs(comparison, 5.0).exit_code


@pytest.mark.parametrize(
    ("base", "head", "by"),
    [
        ({"env": BASE}, {"env": HEAD}, "PYTHONPATH"),
        ({}, {"env": HEAD}, "PYTHONPATH"),
        ({"python": "base/bin/python"}, {"python": "head/bin/python"}, "python"),
        ({"env": BASE | {"OMP_NUM_THREADS": "1"}}, {"env": HEAD}, "PYTHONPATH"),
    ],
)
def test_variants_that_were_to_differ_and_loaded_the_same_get_no_verdict(base, head, by):
    profile = two_variants(base, head, code("a", "b"), code("b", "a"))
    row, exit_code = codes_of(profile)
    assert (row.versus, row.kept_apart, exit_code) == (None, "same_code", 4)
    (finding,), lacking = outcomes("same_code", profile)
    assert (finding.severity, finding.values, lacking) == ("bad", {"by": by, "files": 2}, [])
    assert finding.cell_key.endswith("/head")


@pytest.mark.parametrize(
    ("base", "head", "base_launch", "head_launch"),
    [
        ({"env": BASE}, {"env": HEAD}, code("a"), code("b")),  # another content
        ({"env": BASE}, {"env": HEAD}, code("a"), code("a", "b")),  # a further file
        ({"python": "base/bin/python"}, {"python": "head/bin/python"}, code("a"), code("a", environment="f")),
        ({"env": {"OMP_NUM_THREADS": "1"}}, {"env": {"OMP_NUM_THREADS": "2"}}, code("a"), code("a")),  # a setting
        ({}, {}, code("a"), code("a")),  # the same on purpose
        ({"image": "base", "env": BASE}, {"image": "head", "env": HEAD}, code("a"), code("a")),
    ],
)
def test_variants_that_differ_or_were_not_to_are_compared(base, head, base_launch, head_launch):
    profile = two_variants(base, head, base_launch, head_launch)
    row, exit_code = codes_of(profile)
    assert row.versus is not None and exit_code == 0
    assert outcomes("same_code", profile) == ([], [])


def test_what_was_not_recorded_is_compared_and_not_checked():
    profile = two_variants({"env": BASE}, {"env": HEAD}, {}, {})
    assert codes_of(profile)[0].versus is not None
    assert outcomes("same_code", profile) == ([], ["not_recorded"])


@pytest.mark.parametrize(("where", "is_same"), [("a", True), ("b", False)])
def test_files_beyond_the_limit_are_told_apart_by_where_they_lie(where, is_same):
    launches = (code("a", left_out=3, where=side) for side in ("a", where))
    row, exit_code = codes_of(two_variants({"env": BASE}, {"env": HEAD}, *launches))
    assert (row.kept_apart, exit_code) == (("same_code", 4) if is_same else ("", 0))


@pytest.mark.parametrize(
    ("head", "is_same"),
    [
        (program("head/model.py"), True),
        (program("head/model.py", "b"), False),
        (program("model.py", function="other"), False),
        (program("model.py"), False),  # given twice
    ],
)
def test_two_programs_of_one_content_are_the_same(head, is_same):
    members = [side("default", code("a"), workload=name) for name in ("base", "head")]
    profile = built(members, programs={"base": program(), "head": head})
    row, exit_code = codes_of(profile)
    assert (row.kept_apart, exit_code) == (("same_code", 4) if is_same else ("", 0))
    assert [finding.values["by"] for finding in outcomes("same_code", profile)[0]] == ["program"] * is_same


def test_a_slower_row_fails_beside_one_of_the_same_code():
    variants = [Variant(name=name, env={"PYTHONPATH": f"/{name}"}) for name in ("base", "head", "next")]
    members = [side("base", code("a")), side("head", code("a")), side("next", code("b"), step_ms=4.0)]
    comparison = compare_within("p", built(members, variants=variants))
    limit = limit_slow_downs(comparison, 5.0)
    assert (limit.exit_code, len(limit.slower), len(limit.kept_apart["same_code"]), limit.unresolved) == (1, 1, 1, [])
    assert comparison.groups[0].leaders.tied == ["base"]


def test_every_output_withholds_the_verdict_and_force_gives_it(tmp_path):
    b.write(tmp_path / "p.json", two_variants({"env": BASE}, {"env": HEAD}, code("a"), code("a")))

    def kit(*words):
        return invoke(words[0], str(tmp_path / "p.json"), *words[1:])

    gate = ("--fail-if-slower", "5")
    shown = kit("compare", *gate)
    assert shown.return_value == 4 and "same code" in shown.output
    rows = map(json.loads, kit("compare", "--format", "jsonl").output.splitlines())
    (head,) = (row for row in rows if row["name"] == "head")
    assert (head["not_compared"], head["verdict"], head["ratio"]) == ("same_code", None, None)
    assert '<error message="not compared: same code"' in kit("compare", "--format", "junit", *gate).output
    assert kit("audit", "--fail-on", "bad", "--rule", "same-code").return_value == 1
    assert kit("compare", "--force", *gate).return_value == 0


def test_rounds_do_not_go_on_for_a_precision_that_says_nothing():
    profile = two_variants({"env": BASE}, {"env": HEAD}, code("a"), code("a"), sd=0.3)
    other = two_variants({"env": BASE}, {"env": HEAD}, code("a"), code("b"), sd=0.3)
    plans = []
    for each in (profile, other):
        each.suite = msgspec.structs.replace(each.suite, precision_pct=1.0)
        launches = [launch for result in each.cells for launch in result.launches]
        plans.append(next_round(b.run_plan(each), launches, 8))
    assert plans[0] is None and plans[1] is not None
