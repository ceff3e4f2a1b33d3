"""Burst and sustained steps side by side: a planted board that throttles shows both, and its clock; others do not."""

import csv
import io
import json

import profile_builder as b
import pytest
from msgspec.structs import replace

from kit.compare.compare import compare_within
from kit.profile.consistency import CheckError, check_launch
from kit.profile.instruments import SensorReadings
from kit.report.comparison_report import comparison_report
from kit.report.formats import WRITERS

BURST_MS, LONG_STEPS = 2.0, 5000  # a long block of 10 s has so many steps of the burst's length
LAST = 7
CLOCK = "nvml.0.frequency"


def loaded(change_pct, clock_mhz=None, *, rounds=range(8)):
    """Change launches so that the step of their long block is longer by a percentage, at a clock."""

    def change(launch):
        if launch.round in rounds:
            steps = round(LONG_STEPS / (1 + change_pct / 100))
            fields = {"window_ns": 10 * b.S, "block_ns": 10 * b.S, "tier": "device_counter", "error_fraction": 0.01}
            launch.energy = b.energy(4000.0, sensor="nvml.0.energy", steps=steps, **fields)
        if clock_mhz is not None:
            # The host's clock is sampled beside every cell.
            values = {CLOCK: (clock_mhz, 1980.0, "MHz"), "cpu.frequency": (3000.0, 3000.0, "MHz")}
            launch.sensors = b.sampled(**values)

    return change


def compared(device="gpu", **changes):
    """A group of a cell for each change; all steps in bursts take 2 ms."""
    members = [b.member(name, BURST_MS, device=device, change=change, **b.EXACT) for name, change in changes.items()]
    return compare_within("x", b.profile(b.group("g", *members), drift=0.0))


def numbers_of(comparison):
    return {row.name: b.shown(row) for row in comparison.groups[0].rows}


def table(comparison, *, wide=False):
    """Return the cells of the table by the name of the row and the title of the column."""
    (made,) = comparison_report(comparison, {}, wide=wide).tables
    titles = [column.title for column in made.columns]
    return {cells[0].words: dict(zip(titles, (cell.words for cell in cells), strict=True)) for cells in made.rows}


def test_a_board_that_throttles_shows_its_sustained_step_and_clock_beside_the_burst_step():
    comparison = compared(torch=loaded(15, 1410.0), jax=loaded(1, 1980.0))
    rows = table(comparison)
    titles = list(rows["torch"])
    assert titles[1:4] == ["step", "sustained step", "mean clock"]
    assert list(rows["torch"].values())[1:4] == ["2.00 ms", "2.30 ms", "1,410 MHz"]
    assert list(rows["jax"].values())[1:4] == ["2.00 ms", "2.02 ms", "1,980 MHz"]
    legend = dict(comparison_report(comparison, {}).legend)
    assert "long energy block" in legend["sustained step"] and "mean clock" in legend
    numbers = numbers_of(comparison)
    assert numbers["torch"].sustained_ns == pytest.approx(2.3e6, rel=1e-3)
    assert numbers["torch"].sustained_change_pct == pytest.approx(15, abs=0.05)
    assert (numbers["torch"].sustained_clock_mhz, numbers["torch"].sustained_refusal) == (1410.0, None)


@pytest.mark.parametrize(("change_pct", "has_columns"), [(2.9, False), (3.1, True), (-2.9, False), (-3.2, True)])
def test_the_columns_are_there_where_some_row_differs_by_more_than_3_percent(change_pct, has_columns):
    comparison = compared(torch=loaded(change_pct, 1900.0), jax=loaded(0, 1980.0))
    shown = {"sustained step", "mean clock"}
    assert shown & table(comparison)["torch"].keys() == (shown if has_columns else set())
    assert shown <= table(comparison, wide=True)["torch"].keys()


def test_tables_of_a_processor_have_no_such_columns():
    comparison = compared("cpu", torch=loaded(15, 1410.0), jax=loaded(1, 1980.0))
    assert not {"sustained step", "mean clock"} & table(comparison)["torch"].keys()
    (record, _) = comparison_report(comparison, {}).records
    assert not {"sustained_clock_mhz", "sustained_change_pct", "sustained_refusal"} & record.keys()


@pytest.mark.parametrize(
    ("lacking", "code", "words"),
    [
        (loaded(0, 1410.0, rounds=()), "no_long_block", "no long energy block"),
        (loaded(15), "no_clock_sensor", "no sensor of the device's clock"),
    ],
)
def test_what_was_not_measured_is_null_with_a_reason(lacking, code, words):
    comparison = compared(torch=loaded(15, 1410.0), jax=lacking)
    assert table(comparison)["jax"]["mean clock"] == "–"
    (line,) = [line for title, line in comparison_report(comparison, {}).legend if title == "mean clock"]
    assert words in line and "jax" in line and "torch" not in line
    numbers = numbers_of(comparison)["jax"]
    assert (numbers.sustained_clock_mhz, numbers.sustained_refusal) == (None, code)
    assert (numbers.sustained_ns is None) == (numbers.sustained_change_pct is None) == (code == "no_long_block")


def test_without_any_clock_the_column_is_there_with_dashes_and_the_reason():
    rows = table(comparison := compared(torch=loaded(15)))
    assert (rows["torch"]["sustained step"], rows["torch"]["mean clock"]) == ("2.30 ms", "–")
    assert any("no sensor of the device's clock" in line for _, line in comparison_report(comparison, {}).legend)


def test_of_rounds_without_a_long_block_the_step_that_is_shown_is_sustained_by_the_ratio_of_those_with_one():
    """The last round alone has a long block, and all its steps take twice as long as those of other rounds."""

    def change(launch):
        loaded(15, 1410.0 if launch.round == LAST else 1980.0, rounds=[LAST])(launch)
        if launch.round == LAST:
            launch.energy = [replace(entry, block_ns=2 * entry.block_ns) for entry in launch.energy]
            launch.blocks.duration_ns = [2 * duration_ns for duration_ns in launch.blocks.duration_ns]
            launch.blocks.span_ns = [2 * span_ns for span_ns in launch.blocks.span_ns]

    comparison = compared(torch=change)
    numbers = numbers_of(comparison)["torch"]
    assert numbers.sustained_ns == pytest.approx(1.15 * numbers.step_ns, rel=1e-3)
    assert numbers.sustained_clock_mhz == 1410.0


def test_csv_and_json_have_what_the_table_has():
    report = comparison_report(compared(torch=loaded(15, 1410.0), jax=loaded(0)), {})
    stream = io.StringIO()
    lines = list(csv.DictReader(WRITERS["csv"](report, stream).splitlines()))
    torch, jax = sorted(lines, key=lambda line: line["name"], reverse=True)
    assert (float(torch["sustained_clock_mhz"]), torch["sustained_refusal"]) == (1410.0, "")
    assert (jax["sustained_clock_mhz"], jax["sustained_refusal"]) == ("", "no_clock_sensor")
    (group,) = json.loads(WRITERS["json"](report, stream))["groups"]
    numbers = {row["name"]: row["numbers"] for row in group["rows"]}
    assert numbers["torch"]["sustained_clock_mhz"] == 1410.0
    assert numbers["jax"]["sustained_clock_mhz"] is None


@pytest.mark.parametrize(
    ("at_ns", "values", "part"),
    [([0, 1], [1.0], "time for each value"), ([1, 0], [1.0, 1.0], "times that grow"), ([0], [-5.0], "0 to")],
)
def test_readings_that_cannot_be_are_refused(at_ns, values, part):
    profile = b.profile(b.group("g", b.member("torch", BURST_MS, device="gpu")), rounds=1, cycles=2)
    launch = profile.cells[0].launches[0]
    launch.long_block_readings = [SensorReadings(sensor="nvml.0.power", unit="W", at_ns=at_ns, values=values)]
    with pytest.raises(CheckError, match=part):
        check_launch(profile.cells[0].cell, launch)
