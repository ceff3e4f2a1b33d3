"""A suite's own table: what stands in which row, under which device, and why a cell is blank."""

import profile_builder as b
import pytest

from kit.compare.suite_table import suite_table
from kit.profile.fields import reason
from kit.profile.schema import Fit
from kit.report.formats import write
from kit.report.suite_report import suite_report

DEAD = dict.fromkeys((0, 1), reason("eager"))


def planted(launch):
    """Four blocks of 10, 9, 10 and 10 steps of 2.5 ms, and 100 ms between: two epochs of 20 with the first step."""
    launch.blocks.steps = [10, 9, 10, 10]
    launch.blocks.duration_ns = [25_000_000, 22_500_000, 25_000_000, 35_000_000]


def fitted(backend="torch", device="cpu", **fields):
    known = {"epochs": 2, "updates": 40, "test_ns": b.S // 10, "confusion": [[90, 10], [20, 80]]} | fields
    launch = {"fit": Fit(reference_ns=[2e6] * 5, **known), "turns": "sequential"}
    return b.member(backend, 2.5, task="fit", feed="host", device=device, launch=launch, change=planted)


def profile(*members, rounds=2, **fields):
    tasks = dict.fromkeys(member.cell.task for member in members)
    groups = (b.group(task, *(member for member in members if member.cell.task == task)) for task in tasks)
    return b.profile(*groups, rounds=rounds, cycles=4, **fields)


def table_of(axes, figures, *profiles):
    return suite_table("t", axes, figures, [(f"p{number}", built) for number, built in enumerate(profiles)])


def entries(table, *row, column=0):
    return table.values[table.rows.index(row)][column]


def test_a_row_has_the_figures_of_all_its_tasks():
    whole = profile(fitted(), b.member("torch", 2.0), b.member("torch", 0.5, task="infer"), drift=0)
    expected = {
        "train_time_s": 0.1075,
        "epoch_time_s": 0.060,  # the first epoch is left out
        "test_time_s": 0.1,
        "step_ns": 2e6,
        "accuracy": 0.85,
        "train_sample_ns": 2e6 / 128,
        "infer_sample_ns": 0.5e6 / 128,
        "f1": (2 * 90 / (2 * 90 + 30) + 2 * 80 / (2 * 80 + 30)) / 2,
    }
    table = table_of(["workload", "backend"], [*expected], whole)
    assert (table.rows, table.columns[0].epochs) == ([("mlp", "torch")], 2)
    row = entries(table, "mlp", "torch")
    steps = ("step_ns", "train_sample_ns", "infer_sample_ns")
    for name, value in expected.items():
        assert row[name].value == pytest.approx(value, rel=0.05 if name in steps else 1e-6), name
    assert row["accuracy"].spread == 0.0


def test_of_a_part_of_a_fit_times_are_computed_and_scores_blank():
    figures = ["train_time_s", "epoch_time_s", "test_time_s", "accuracy", "train_gain_pct"]
    part = {"confusion": None, "epoch_updates": 100, "reason": reason("part_of_a_fit")}
    table = table_of(["backend"], figures, profile(fitted(**part)), profile(fitted(device="gpu", **part)))
    row, gpu = entries(table, "torch"), entries(table, "torch", column=1)
    # 39 steps in 107.5 ms; whole it has 2 x 100 updates.
    assert row["train_time_s"].value == pytest.approx(199 * 0.1075 / 39)
    assert row["epoch_time_s"].value == pytest.approx(100 * 0.1075 / 39)
    assert row["test_time_s"].value == pytest.approx(0.1)
    assert row["accuracy"].reason == reason("part_of_a_fit")
    assert gpu["train_gain_pct"].value == pytest.approx(100) and gpu["train_gain_pct"].is_computed
    assert [name for name in figures if row[name].is_computed] == ["train_time_s", "epoch_time_s"]
    shown = write(suite_report(table))
    assert "≈ 549 ms" in shown and "≈ extrapolated" in shown and "≈ 100 ms" not in shown


def test_times_beside_other_work_are_marked_and_scores_are_not():
    def beside_others(launch):
        planted(launch)
        b.beside_others(0.5, cpus=1.0)(launch)

    busy, figures = fitted(), ["train_time_s", "accuracy"]
    busy.change = beside_others
    table = table_of(["backend"], figures, profile(busy, fitted("jax")))
    marked = {row: [name for name in figures if entries(table, *row)[name].contention_pct] for row in table.rows}
    assert marked == {("torch",): ["train_time_s"], ("jax",): []}
    assert entries(table, "torch")["train_time_s"].contention_pct == pytest.approx(50)
    shown = write(suite_report(table))
    assert "! 107 ms" in shown and "up to 50 % of the CPUs" in shown


def test_gains_are_the_cpus_time_over_the_devices():
    cpu, gpu = profile(b.member("torch", 2.0), drift=0), profile(b.member("torch", 0.1, device="gpu"), drift=0)
    figure = "train_sample_gain_pct"
    table = table_of(["backend"], [figure], cpu, gpu)
    assert [(column.profile, column.device) for column in table.columns] == [("p0", "cpu"), ("p1", "gpu")]
    assert entries(table, "torch")[figure].reason == reason("gains_are_over_this")
    assert entries(table, "torch", column=1)[figure].value == pytest.approx(2000, rel=0.1)
    alone = entries(table_of(["backend"], [figure], gpu), "torch")
    assert alone[figure].reason == reason("no_cpu_to_gain_over")


def other_losses(away, device):
    return b.member("torch", 1.0, device=device, launch={"parity": b.losses(away)})


@pytest.mark.parametrize(
    ("cpu", "other", "figure", "kind"),
    [
        (fitted(epochs=1), profile(fitted(device="gpu")), "train_gain_pct", "epochs"),
        # A pass over the test split is one pass.
        (fitted(epochs=1), profile(fitted(device="gpu")), "test_gain_pct", None),
        (b.member(), profile(b.member(device="gpu"), data="synthetic"), "train_sample_gain_pct", "data"),
        # A GPU's losses may lie further from the CPU's than another CPU's.
        (b.member(), profile(other_losses(1e-4, "gpu")), "train_sample_gain_pct", None),
        (b.member(), profile(other_losses(0.01, "gpu")), "train_sample_gain_pct", "other_losses"),
    ],
)
def test_cells_that_answer_another_question_than_the_cpus_have_no_gain(cpu, other, figure, kind):
    entry = entries(table_of(["backend"], [figure], profile(cpu, id="cpu"), other), "torch", column=1)[figure]
    assert (entry.value is not None, entry.reason and entry.reason.values["kind"]) == (kind is None, kind)


@pytest.mark.parametrize(
    ("member", "figure", "why"),
    [
        (b.member("torch", 2.0), "accuracy", reason("not_measured")),
        (fitted(epochs=1), "epoch_time_s", reason("one_epoch")),
        (fitted(confusion=None, mean_squared_error=0.1), "accuracy", reason("no_classes")),
        (b.member("torch", 2.0, failed_rounds=DEAD), "step_ns", reason("eager")),
    ],
)
def test_a_blank_says_why(member, figure, why):
    assert entries(table_of(["backend"], [figure], profile(member)), "torch")[figure].reason == why
