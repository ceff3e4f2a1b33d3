"""A cell in two groups is a row of both tables, with what was measured there; between runs it is one cell."""

import profile_builder as b
import pytest

from kit.audit.audit import findings_of
from kit.compare.compare import compare, compare_within
from kit.compare.naming import label_members
from kit.compare.notes import read_run

COMPARE = ["variant", "compile_mode", "precision"]
TORCH, JAX = (b.cell(name, variant="tuned") for name in ("torch", "jax"))
PLAIN = b.cell("torch", variant="plain")


def profile(**fields):
    # Beside the other framework both are half as fast.
    return b.profile(
        b.group("within", b.member(cell=PLAIN, step_ms=6.0), b.member(cell=TORCH, step_ms=4.0)),
        b.group("between", b.member(cell=TORCH, step_ms=8.0), b.member(cell=JAX, step_ms=4.0)),
        compare=COMPARE,
        **fields,
    )


def test_each_table_has_what_was_measured_in_its_group():
    within, between = compare_within("p", profile()).groups
    rows = {row.name: row for row in within.rows}
    assert rows.keys() == {"plain", "tuned"}
    assert rows["tuned"].versus.ratio == pytest.approx(4 / 6, rel=0.03)
    assert rows["tuned"].value("step_ns") == pytest.approx(4e6, rel=0.1)
    rows = {row.name: row for row in between.rows}
    assert rows.keys() == {"torch", "jax"}
    assert rows["jax"].versus.ratio == pytest.approx(1 / 2, rel=0.03)
    assert rows["torch"].value("step_ns") == pytest.approx(8e6, rel=0.1)
    assert between.leaders.tied == ["jax"]


def test_it_is_one_cell_where_runs_are_compared():
    runs = [read_run(label, profile(id=label, seed=seed)) for seed, label in enumerate(("before", "after"))]
    names = [row.name for group in compare(runs).groups for row in group.rows]
    assert len(names) == len(set(names)) == 2 * 3


def test_percentiles_of_all_launches_together_are_of_no_group():
    run = read_run("p", profile())
    known = {
        (sample.group, sample.cell.backend, sample.name): sample.percentiles_ns for sample in run.samples_of_groups
    }
    assert known["within", "torch", "tuned"] == known["between", "torch", "torch"] == (None, None, None)
    assert known["between", "jax", "jax"][1] is not None


def test_pages_and_findings_take_it_in_each_group():
    run = read_run("p", profile())
    assert {finding.group for finding in findings_of(run)} <= {"within", "between"}
    assert run.sample_of("between", TORCH.key) is not run.sample_of("within", TORCH.key)
    assert run.samples[TORCH.key] is run.sample_of("within", TORCH.key)


def names(*cells, compare=COMPARE):
    return [*label_members({cell.key: cell for cell in cells}, compare).values()]


def test_rows_are_named_by_what_tells_them_apart_and_say_another_arithmetic():
    half = {"precision": "bfloat16"}
    assert names(PLAIN, b.cell(variant="autocast", **half)) == ["plain", "autocast bfloat16"]
    assert names(PLAIN, b.cell(variant="compile", compile_mode="compile")) == ["plain", "compile"]
    assert names(TORCH, b.cell("jax", variant="tuned", **half)) == ["torch", "jax bfloat16"]
    assert names(b.cell(), b.cell(**half), compare=["precision"]) == ["float32", "bfloat16"]
