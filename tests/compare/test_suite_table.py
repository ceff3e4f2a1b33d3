"""A suite's own table: what stands in which row, under which device, and why a cell is blank."""

import msgspec
import profile_builder as b
import pytest

from kit.compare.suite_table import suite_table
from kit.profile.launch import Fit
from kit.profile.reason import reason
from kit.profile.schema import Published
from kit.report.formats import write
from kit.report.profile import profile_report
from kit.report.suite import suite_report

S = 1_000_000_000


def fit(confusion=((90, 10), (20, 80)), epochs=2, updates=40, mse=None, **fields):
    """Of 4 blocks: with the first step 1 + 4 × 10 steps would be too many; the builder's steps are planted below."""
    return Fit(
        epochs=epochs,
        updates=updates,
        reference_ns=[2e6] * 5,
        test_ns=S // 10,
        confusion=None if confusion is None else [list(row) for row in confusion],
        mean_squared_error=mse,
        **fields,
    )


def planted(launch):
    """Four blocks of 10, 9, 10 and 10 steps of 2.5 ms, and 100 ms between: two epochs of 20 with the first step."""
    launch.blocks.steps = [10, 9, 10, 10]
    launch.blocks.duration_ns = [25_000_000, 22_500_000, 25_000_000, 35_000_000]


def fitted(backend="torch", device="cpu", **more):
    launch = {"fit": fit(**more), "turns": "sequential"}
    return b.member(backend, 2.5, task="fit", feed="host", device=device, launch=launch, change=planted)


def profile(*members, rounds=2, **fields):
    tasks = dict.fromkeys(member.cell.task for member in members)
    groups = (b.group(task, *(member for member in members if member.cell.task == task)) for task in tasks)
    return b.profile(*groups, rounds=rounds, cycles=4, **fields)


def test_show_has_fits_and_every_class():
    shown = write(profile_report(profile(fitted())))
    fits = shown.partition("\nFits\n")[2].splitlines()
    assert fits[1].split()[1:4] == ["1", "2", "40"] and fits[1].endswith("accuracy 85.00 %")
    classes = shown.partition("over the repeats of a fit\n")[2].splitlines()
    # Of what was called class 0, 90 of 110 are; two repeats alike change nothing.
    assert classes[1].split()[1:] == ["0", "81.82", "90.00", "85.71"]
    assert classes[3].split()[1:] == ["macro", "85.35", "85.00", "84.96"]


def test_a_measured_parameter_of_0_is_itself():
    members = [b.member("torch", workload="mine", parameters={"skip": skip}) for skip in (0, 1)]
    table = suite_table("mine", ["workload"], ["train_sample_ns"], [("x", b.profile(b.group("g", *members)))])
    assert table.rows == [("mine", "0"), ("mine", "1")]


def entries(table, row, column=0):
    return table.values[table.rows.index(row)][column]


def test_a_row_has_the_figures_of_all_its_tasks():
    whole = profile(fitted(), b.member("torch", 2.0), b.member("torch", 0.5, task="infer"), drift=0)
    table = suite_table("t", ["workload", "backend"], ["train_time_s", "epoch_time_s", "test_time_s", "step_ns",
                  "accuracy", "train_sample_ns", "infer_sample_ns", "f1"], [("mine", whole)])  # fmt: skip
    assert table.rows == [("mlp", "torch")]
    row = entries(table, ("mlp", "torch"))
    assert row["train_time_s"].value == pytest.approx(0.1075)
    assert row["epoch_time_s"].value == pytest.approx(0.060), "the first epoch is left out"
    assert row["test_time_s"].value == pytest.approx(0.1)
    assert row["step_ns"].value == pytest.approx(2e6, rel=0.05)
    assert row["train_sample_ns"].value == pytest.approx(2e6 / 128, rel=0.05)
    assert row["infer_sample_ns"].value == pytest.approx(0.5e6 / 128, rel=0.05)
    assert (row["accuracy"].value, row["accuracy"].spread) == (pytest.approx(0.85), 0.0)
    assert row["f1"].value == pytest.approx((2 * 90 / (2 * 90 + 30) + 2 * 80 / (2 * 80 + 30)) / 2)
    assert table.columns[0].epochs == 2


def test_of_a_part_of_a_fit_times_are_computed_and_scores_blank():
    figures = ["train_time_s", "epoch_time_s", "test_time_s", "accuracy", "train_gain_pct"]
    part = {"confusion": None, "epoch_updates": 100, "reason": reason("part_of_a_fit")}
    cpu, gpu = profile(fitted(**part)), profile(fitted(device="gpu", **part))
    table = suite_table("t", ["backend"], figures, [("a", cpu), ("b", gpu)])
    row = entries(table, ("torch",))
    # 39 steps in 107.5 ms; whole it has 2 x 100 updates.
    assert row["train_time_s"].value == pytest.approx(199 * 0.1075 / 39)
    assert row["epoch_time_s"].value == pytest.approx(100 * 0.1075 / 39)
    assert row["test_time_s"].value == pytest.approx(0.1)
    assert row["accuracy"].reason == reason("part_of_a_fit")
    gain = entries(table, ("torch",), 1)["train_gain_pct"]
    assert gain.value == pytest.approx(100)
    computed = [name for name in figures if row[name].is_computed]
    assert computed == ["train_time_s", "epoch_time_s"] and gain.is_computed
    shown = write(suite_report(table))
    assert "≈ 549 ms" in shown and "≈ extrapolated" in shown and "≈ 100 ms" not in shown
    assert "extrapolated" not in write(suite_report(suite_table("t", ["backend"], figures, [("a", profile(fitted()))])))


def test_times_beside_other_work_are_marked_and_scores_are_not():
    def beside_others(launch):
        planted(launch)
        launch.blocks.counters["machine.busy_ns"] = [2 * ns for ns in launch.blocks.span_ns]
        launch.blocks.counters["machine.steal_ns"] = [0] * len(launch.blocks.span_ns)
        launch.blocks.counters["process.cpu_ns"] = launch.blocks.span_ns

    busy = fitted()
    busy.change = beside_others
    figures = ["train_time_s", "train_sample_ns", "accuracy"]
    whole = profile(busy, fitted("jax"), b.member("torch", 2.0))
    table = suite_table("t", ["backend"], figures, [("a", whole)])
    marked = {row: [name for name in figures if entries(table, row)[name].contention_pct] for row in table.rows}
    assert marked == {("torch",): ["train_time_s"], ("jax",): []}
    assert entries(table, ("torch",))["train_time_s"].contention_pct == pytest.approx(50)
    shown = write(suite_report(table))
    assert "! 107 ms" in shown and "up to 50 % of the CPUs" in shown
    assert "!" not in write(suite_report(suite_table("t", ["backend"], figures, [("a", profile(fitted()))])))


def test_gains_are_the_cpus_time_over_the_devices():
    cpu = profile(b.member("torch", 2.0), drift=0, rounds=3)
    gpu = profile(b.member("torch", 0.1, device="gpu"), drift=0, rounds=3)
    figures = ["train_sample_ns", "train_sample_gain_pct"]
    table = suite_table("t", ["backend"], figures, [("a", cpu), ("b", gpu)])
    assert [(column.profile, column.device) for column in table.columns] == [("a", "cpu"), ("b", "gpu")]
    assert entries(table, ("torch",), 0)["train_sample_gain_pct"].reason == reason("gains_are_over_this")
    assert entries(table, ("torch",), 1)["train_sample_gain_pct"].value == pytest.approx(2000, rel=0.1)
    alone = suite_table("t", ["backend"], figures, [("b", gpu)])
    assert entries(alone, ("torch",))["train_sample_gain_pct"].reason == reason("no_cpu_to_gain_over")


def test_a_gpus_losses_may_lie_further_from_the_cpus_than_another_cpus():
    def value(device, away):
        losses = [2.3 / (1 + step) * (1 + away) for step in range(20)]
        parity = b.Parity(losses=losses, weights_sha256="a" * 64, batches_sha256="b" * 64)
        cpu = profile(b.member("torch", 2.0), id="cpu")
        other = profile(b.member("torch", 1.0, device=device, launch={"parity": parity}))
        table = suite_table("t", ["backend"], ["train_sample_gain_pct"], [("a", cpu), ("b", other)])
        return entries(table, ("torch",), 1)["train_sample_gain_pct"].value

    assert value("gpu", 1e-4) and not value("gpu", 0.01)


@pytest.mark.parametrize(
    ("member", "figure", "why"),
    [
        (b.member("torch", 2.0), "accuracy", reason("not_measured")),
        (fitted(epochs=1), "epoch_time_s", reason("one_epoch")),
        (fitted(confusion=None, mse=0.1), "accuracy", reason("no_classes")),
        (b.member("torch", 2.0, failed_rounds={0: reason("eager"), 1: reason("eager")}), "step_ns", reason("eager")),
    ],
)
def test_a_blank_says_why(member, figure, why):
    table = suite_table("t", ["backend"], [figure], [("a", profile(member))])
    assert entries(table, ("torch",))[figure].reason == why


def published(**fields):
    made = profile(b.member("torch", 2.0))
    cells = []
    for result in made.cells:
        cell = msgspec.structs.replace(result.cell, backend="unknown", device="gpu", **fields)
        figures = [Published(figure="train_gain_pct", value=697.0)]
        cells.append(msgspec.structs.replace(result, key=cell.key, cell=cell, launches=[], published=figures))
    return msgspec.structs.replace(made, cells=cells, measured=False, source="a document")


def test_what_a_document_does_not_say_stands_beside_any_value_of_it():
    measured = profile(b.member("torch", 2.0, "dblstm", parameters={"layers": 3, "units": 128}))
    given = [("m", measured), ("d", published(workload="dblstm", parameters={"units": 128}))]
    table = suite_table("t", ["layers", "units"], ["train_sample_ns", "train_gain_pct"], given)
    assert table.rows == [("3", "128"), ("any", "128")]
    assert entries(table, ("any", "128"), 1)["train_gain_pct"].value == 697


def test_what_a_document_leaves_open_stands_once_in_a_row_of_its_own():
    measured = profile(fitted("torch"), fitted("jax"))
    columns = [("a", measured), ("p", published())]
    table = suite_table("t", ["workload", "backend"], ["train_time_s", "train_gain_pct"], columns)
    assert table.rows == [("mlp", "torch"), ("mlp", "jax"), ("mlp", "any")]
    assert entries(table, ("mlp", "any"), 1)["train_gain_pct"].value == 697.0
    for row in table.rows[:2]:
        assert entries(table, row, 1)["train_gain_pct"].reason == reason("not_published")
    assert [column.source for column in table.columns] == [None, "a document"]


def test_what_was_published_of_cells_that_were_not_measured_is_left_out():
    measured, document = profile(fitted("torch")), ("p", published(workload="cnn"))
    shape = "t", ["workload", "backend"], ["train_time_s", "train_gain_pct"]
    assert suite_table(*shape, [("a", measured), document]).rows == [("mlp", "torch")]
    assert suite_table(*shape, [document]).rows == [("cnn", "any")]


def test_rows_of_numbers_are_in_their_order():
    members = [b.member("torch", 2.0, batch=batch) for batch in (100, 9, 1000, 10)]
    table = suite_table("t", ["batch"], ["step_ns"], [("a", profile(*members))])
    assert table.rows == [("9",), ("10",), ("100",), ("1000",)]


def test_cells_that_no_row_tells_apart_get_an_axis_of_their_own():
    both = profile(*(b.member("torch", batch / 64, batch=batch) for batch in (64, 256)), drift=0)
    table = suite_table("t", ["workload", "backend"], ["step_ns"], [("a", both)])
    assert table.axes == ["workload", "backend", "batch"]
    assert [entries(table, row)["step_ns"].value for row in table.rows] == pytest.approx([1e6, 4e6], rel=0.05)


def test_fits_of_other_epochs_have_no_gain():
    cpu, gpu = profile(fitted(epochs=1)), profile(fitted(device="gpu"))
    figures = ["train_time_s", "train_gain_pct", "test_time_s", "test_gain_pct"]
    table = suite_table("t", ["backend"], figures, [("a", cpu), ("b", gpu)])
    assert [column.epochs for column in table.columns] == [1, 2]
    why = entries(table, ("torch",), 1)["train_gain_pct"].reason
    assert why == reason("not_like_the_cpus", kind="epochs", value="2", of_cpu="1")
    assert entries(table, ("torch",), 1)["test_gain_pct"].value is not None, "a pass over the test split is one pass"


def test_cells_on_other_data_have_no_gain():
    cpu, gpu = profile(b.member("torch", 2.0)), profile(b.member("torch", 1.0, device="gpu"), data="synthetic")
    table = suite_table("t", ["backend"], ["train_sample_ns", "train_sample_gain_pct"], [("a", cpu), ("b", gpu)])
    why = entries(table, ("torch",), 1)["train_sample_gain_pct"].reason
    assert why.values["kind"] == "data" and "synthetic" in why.values["value"] and "mnist" in why.values["of_cpu"]


def test_a_spread_is_not_written_like_an_interval():
    table = suite_table("t", ["backend"], ["accuracy"], [("a", profile(fitted()))])
    for format_name in ("text", "markdown"):
        shown = write(suite_report(table), format_name)
        assert "sd 0.00" in shown and "±" not in shown


def test_what_a_gain_is_stands_below_a_table_that_has_one():
    figures, cpu = ["train_sample_ns", "train_sample_gain_pct"], profile(b.member("torch", 2.0))
    gpu = profile(b.member("torch", 1.0, device="gpu"))
    columns = [("a", cpu), ("b", gpu)]
    alone, both = (suite_table("t", ["backend"], figures, columns[:count]) for count in (1, 2))
    assert "200 % twice as fast" in write(suite_report(both))
    assert "200 % twice as fast" not in write(suite_report(alone))
