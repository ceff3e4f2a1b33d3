"""What is drawn is what was planted, read from the figure's own artists."""

from itertools import pairwise

import numpy as np
import profile_builder as b
import pytest
from planted_plots import (
    BATCHES,
    DEAD,
    EXACT,
    TITLES,
    bars,
    drawn,
    layered,
    line,
    lines,
    step_ms,
    sweep,
    with_ceilings,
    words,
)

from kit.compare.ceilings import without_operations
from kit.compare.within import compare_within
from kit.errors import KitError
from kit.report.plot import usual_kind

pytestmark = pytest.mark.filterwarnings("error")  # a warning is a line on a user's terminal
PLANTED_MS = {"torch": 4.0, "jax": 2.0, "tensorflow": 6.0}


def test_batch_shows_the_planted_time_of_a_sample():
    figure, *_, left_out = drawn("batch", sweep())
    training, inference = figure.axes
    assert (training.get_title("left"), inference.get_title("left")) == ("training", "inference")
    for axes, task in ((training, "train"), (inference, "infer")):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert axes.get_xlabel() == "batch (samples per step)"
        for name, title in (("torch", "PyTorch"), ("jax", "JAX")):
            x, y = line(axes, title)
            assert x == list(BATCHES)
            assert y == pytest.approx([step_ms(name, task, batch) / batch for batch in BATCHES])
    assert training.get_ylabel() == "time per sample (ms)"
    assert "mlp" in words(figure) and "Example CPU 9000" in words(figure) and "batch-sweep" in words(figure)
    assert "run-1" in words(figure) and "kit 0.2.0" in words(figure)
    assert left_out == []


def test_the_bar_of_a_point_is_the_interval_of_its_cell():
    profile = b.profile(b.group("g", b.member("torch", 2.0, batch=4), b.member("torch", 3.0, batch=8)), rounds=5)
    axes = drawn("batch", profile).figure.axes[0]
    (cells,) = compare_within("p", profile).groups
    expected = {
        row.cell.batch: [end / row.cell.batch / 1e3 for end in row.numbers.step_interval_ns] for row in cells.rows
    }
    assert axes.get_ylabel() == "time per sample (µs)"
    for batch, low, high in bars(axes):
        assert (low, high) == pytest.approx(expected[batch])
        assert high > 1.02 * low
    assert len(bars(axes)) == 2
    assert bars(drawn("batch", sweep(rounds=1)).figure.axes[0]) == []  # one round has points only


@pytest.mark.parametrize(
    ("kind", "values", "other", "others"),
    [("units", [32, 64, 128, 256], "layers", [1, 2, 3]), ("layers", [1, 2, 3], "units", [32, 64, 128, 256])],
)
def test_units_and_layers_have_a_line_for_each_value_of_the_other(kind, values, other, others):
    (axes,) = drawn(kind, layered()).figure.axes
    assert set(lines(axes)) == {f"{title} {other} {value}" for title in ("PyTorch", "JAX") for value in others}
    for factor in others:
        x, y = line(axes, f"JAX {other} {factor}")
        assert x == values and y == pytest.approx([factor * value / 10 for value in values])
    assert axes.get_ylabel() == "step time (ms)" and axes.get_xlabel().startswith(kind)
    # Six lines, which can be told apart without colour, too.
    drawn_lines = [each for each in axes.lines if len(each.get_xdata()) == len(values) and each.get_marker() != "_"]
    assert len({each.get_marker() for each in drawn_lines}) == len(drawn_lines) == 2 * len(others)
    assert len({each.get_linestyle() for each in drawn_lines}) > 3


def test_lines_that_nobody_could_tell_apart_get_panels():
    axes = drawn("units", layered(("torch", "jax", "tensorflow"))).figure.axes
    assert [panel.get_title("left") for panel in axes] == [f"training · layers {count}" for count in (1, 2, 3)]
    for layers, panel in enumerate(axes, start=1):
        assert set(lines(panel)) == {"PyTorch", "JAX", "TensorFlow"}
        assert line(panel, "JAX")[1] == pytest.approx([layers * units / 10 for units in (32, 64, 128, 256)])


def test_gain_is_the_first_profiles_time_in_percent_of_the_others():
    cpu, gpu = sweep(), sweep(device="gpu", factor=0.25)
    figure = drawn("gain", cpu, gpu).figure
    for axes in figure.axes:
        x, y = line(axes, "JAX")
        assert x == list(BATCHES) and y == pytest.approx([400] * 4)
        assert any(list(line.get_ydata()) == [100, 100] for line in axes.lines)
        assert bars(axes) == []  # two runs at different times cannot be paired
    assert "(%)" in figure.axes[0].get_ylabel()
    turned = drawn("gain", cpu, gpu, baseline="p1").figure.axes[0]
    assert line(turned, "JAX")[1] == pytest.approx([25] * 4)


def test_by_devices_a_panel_shows_strong_scaling_and_one_weak():
    measured = ((1, 64, 8), (2, 64, 5), (2, 128, 9))
    members = [
        b.member(name, ms, batch=batch, devices=n, **EXACT) for name in ("torch", "jax") for n, batch, ms in measured
    ]
    strong, weak = drawn("devices", b.profile(b.group("g", *members), drift=0.0)).figure.axes
    assert strong.get_title("left") == "training · batch 64"
    assert weak.get_title("left") == "training · batch 64 a device"
    assert line(strong, "PyTorch") == ([1, 2], pytest.approx([8_000, 12_800]))
    assert line(weak, "PyTorch") == ([1, 2], pytest.approx([8_000, 128 / 0.009]))
    ticks = [tick for tick in strong.get_xticks() if 0.5 < tick < 2.5]
    assert ticks == [1, 2]


def test_devices_that_took_turns_have_an_interval():
    members = [b.member("torch", ms, batch=8, device=device, sd=0.02) for device, ms in (("cpu", 4.0), ("gpu", 2.0))]
    profile = b.profile(b.group("g", *members), compare=("device",))
    (axes,) = drawn("gain", profile).figure.axes
    (group,) = compare_within("p", profile, baseline="gpu").groups
    versus = next(row.versus for row in group.rows if row.versus)
    assert bars(axes) == [(8, pytest.approx(100 * versus.low), pytest.approx(100 * versus.high))]
    (point,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert list(point.get_ydata()) == pytest.approx([100 * versus.ratio])


def test_a_gain_says_why_there_is_none_and_on_how_many_rounds_it_rests():
    plan = b.group("g", b.member("torch", 2.0), b.member("jax", 2.0))
    with pytest.raises(KitError, match="not comparable, as data is"):
        drawn("gain", b.profile(plan), b.profile(plan, data="synthetic"))
    with pytest.raises(KitError, match="batch 1, 10, p1 has 32; measure both at the same batches"):
        drawn("gain", sweep(batches=(1, 10)), sweep(batches=(32,)))
    assert "p0 in 1 round, p1 in 2 rounds" in words(drawn("gain", sweep(rounds=1), sweep(rounds=2)).figure)


def test_latency_is_joined_in_order_of_batch_and_labelled_with_it():
    figure = drawn("latency", sweep(batches=(100, 1, 10, 1000))).figure
    training = figure.axes[0]
    x, y = line(training, "PyTorch")
    assert x == pytest.approx([1.1e-3 * step_ms("torch", "train", batch) for batch in BATCHES])
    assert y == pytest.approx([1e3 * batch / step_ms("torch", "train", batch) for batch in BATCHES])
    assert training.get_xlabel() == "p95 of a step (s)" and training.get_ylabel() == "throughput (samples/s)"
    shown = {label.get_text(): label.xy for label in training.texts}
    assert shown["1,000"][0] in (x[-1], line(training, "JAX")[0][-1])
    for axes in drawn("latency", sweep(batches=range(1, 120), backends=("torch",), rounds=2)).figure.axes:
        boxes = [label.get_window_extent() for label in axes.texts]
        assert 2 <= len(boxes) < 119
        assert not any(box.overlaps(other) for at, box in enumerate(boxes) for other in boxes[:at])


def test_blocks_are_each_block_in_order_of_time_and_rounds_stand_apart():
    profile = b.profile(b.group("g", b.member("torch", 2.0), b.member("jax", 4.0)), rounds=3, cycles=5)
    (axes,) = drawn("blocks", profile).figure.axes
    for title, result in zip(("PyTorch", "JAX"), profile.cells, strict=True):
        stretches = lines(axes)[title]
        assert len(stretches) == 3
        for (x, y), launch in zip(stretches, result.launches, strict=True):
            assert y == pytest.approx([ns / 1e6 for ns in launch.blocks.median_ns])
            assert np.diff(x) == pytest.approx(np.diff(launch.blocks.begin_ns) / 1e9)
    assert all(before[0][-1] < after[0][0] for before, after in pairwise(lines(axes)["JAX"]))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "10", "20"]  # 10 s from round to round
    assert axes.get_ylabel() == "step (ms)" and "(s)" in axes.get_xlabel()


def test_rounds_are_the_ratios_that_the_verdict_rests_on():
    profile = b.profile(
        b.group("g", b.member("torch", 4.0), b.member("jax", 2.0), b.member("tensorflow", 6.0)), rounds=4
    )
    (axes,) = drawn("rounds", profile).figure.axes
    (group,) = compare_within("p", profile).groups
    for row in (row for row in group.rows if row.versus):
        (_, by_round), (_, whole) = lines(axes)[TITLES[row.name]]
        assert np.log(by_round).mean() == pytest.approx(row.versus.mean_log)
        assert len(by_round) == 4 and whole == pytest.approx([row.versus.ratio])
        assert any((low, high) == pytest.approx((row.versus.low, row.versus.high)) for _, low, high in bars(axes))
    faint = [line for line in axes.lines if line.get_alpha()]
    assert [len(line.get_ydata()) for line in faint] == [12] * 8
    assert any(list(line.get_ydata()) == [1, 1] for line in axes.lines)
    assert axes.get_ylabel() == "step ÷ PyTorch"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3", "4", "all"]


def hollow(*panels):
    """(x, y) of each hollow marker."""
    shown = [line for axes in panels for line in axes.lines if line.get_markerfacecolor() == "white"]
    return [point for line in shown for point in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def busy(slow=5.0):
    """The second and the fifth cycle of round 0, and all of round 2, are disturbed: 14 of 48."""
    cycles = {0: (1, 4), 2: range(12)}
    others = b.beside_others(0.48, lambda number: cycles.get(number, ()), slow=slow)
    members = b.member("torch", 4.0, change=others), b.member("jax", 2.0, change=b.beside_others(0.0))
    return b.profile(b.group("g", *members), rounds=4)


def test_blocks_of_cycles_that_do_not_count_are_hollow():
    figure = drawn("blocks", busy()).figure
    (axes,) = figure.axes
    assert "Hollow: 14 of 48 cycles do not count, as other programs took more than 10 % of the CPUs." in words(figure)
    expected = []
    for result in busy().cells:
        of_first, _, of_third, _ = (launch.blocks for launch in result.launches)
        taken_ns = [of_first.duration_ns[1], of_first.duration_ns[4], *of_third.duration_ns]
        steps = [of_first.steps[1], of_first.steps[4], *of_third.steps]
        expected += [ns / count / 1e6 for ns, count in zip(taken_ns, steps, strict=True)]
    assert sorted(y for _, y in hollow(axes)) == pytest.approx(sorted(expected))
    # Every block is joined, whether it counts or not, and has one marker.
    joined = [each for each in axes.lines if each.get_linestyle() != "None"]
    assert sum(len(each.get_xdata()) for each in joined) == 2 * 48
    filled = [each.get_markevery() or [True] * 12 for each in joined]
    assert sum(sum(of_line) for of_line in filled) == 2 * (48 - 14)


def test_rounds_show_every_cycle_and_those_that_do_not_count_hollow():
    profile = busy(slow=1.2)
    picture = drawn("rounds", profile)
    (axes,) = picture.figure.axes
    assert "Hollow: 14 of 48 cycles" in words(picture.figure) and "beyond" not in words(picture.figure)
    faint = [each for each in axes.lines if each.get_alpha() and each.get_markerfacecolor() != "white"]
    assert [len(each.get_ydata()) for each in faint] == [12] * 4
    assert len(hollow(axes)) == 14 + 1  # and the point of the round
    (row,) = (row for row in compare_within("p", profile).groups[0].rows if row.versus)
    (by_round,) = (each.get_ydata() for each in axes.lines if not each.get_alpha() and len(each.get_ydata()) == 4)
    counting = np.log(by_round)[[0, 1, 3]]
    assert counting.mean() == pytest.approx(row.versus.mean_log)


def test_hollow_ratios_far_off_stand_at_the_end_of_the_axis():
    figure = drawn("rounds", busy(slow=50.0)).figure
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert 0.1 < low < high < 1.1  # what counts, 0.5 and 1, is not pressed together
    assert [y for _, y in hollow(axes)] == [low] * 15
    assert words(figure).count("Points at an end of the axis are beyond it.") == 1


def test_without_a_round_that_counts_all_is_hollow():
    others = b.beside_others(0.48)
    members = (b.member(name, ms, change=others) for name, ms in (("torch", 4.0), ("jax", 2.0)))
    profile = b.profile(b.group("g", *members), rounds=3)
    figure = drawn("rounds", profile).figure
    assert len(hollow(*figure.axes)) == 3 * 12 + 3 + 1
    assert "Hollow: 36 of 36 cycles" in words(figure) and "If no round counts" in words(figure)
    assert len(hollow(*drawn("blocks", profile).figure.axes)) == 2 * 3 * 12


def test_a_disturbed_cell_is_hollow_in_every_kind():
    taken = b.beside_others(0.48)
    tasks_ms = (("train", 8.0), ("infer", 2.0))
    groups = [
        b.group(f"{name} {task}", b.member(name, ms, task=task, change=taken if name == "torch" else None))
        for name in ("torch", "jax")
        for task, ms in tasks_ms
    ]
    profile = b.profile(*groups, rounds=2)
    on_gpu = b.profile(b.group("g", b.member("torch", 1.0, device="gpu")), id="there")
    says = "Hollow: other programs took up to 48 % of the CPUs; the numbers are of the least disturbed round."
    for kind, profiles, count in (
        ("batch", [profile], 2),
        ("gain", [profile, on_gpu], 1),
        ("roofline", [with_ceilings(profile)], 2),
        ("platforms", [profile, on_gpu], 2),
    ):
        figure = drawn(kind, *profiles).figure
        assert len(hollow(*figure.axes)) == count and says in words(figure)
    assert "torch" in drawn("latency", profile).left_out[0]  # p95 is of all cycles up to schema 2.6


def test_nothing_is_hollow_on_a_quiet_machine():
    quiet = b.profile(*b.six_cells(), rounds=4)
    for kind in ("blocks", "rounds", "batch"):
        figure = drawn(kind, quiet).figure
        assert hollow(*figure.axes) == [] and "Hollow" not in words(figure)


def test_every_interval_is_on_the_page_and_no_tick_is_a_thousand_of_a_unit():
    slow = {"slow": 4.0, "slow_rounds": (1,)}
    members = [b.member("torch", ms, batch=batch, **slow) for batch, ms in ((1, 0.9), (8, 0.2))]
    for kind in ("batch", "rounds", "blocks"):
        figure = drawn(kind, b.profile(b.group("g", *members, b.member("jax", 0.5)), rounds=2)).figure
        for axes in figure.axes:
            low, high = axes.get_ylim()
            assert all(low <= begin and end <= high for _, begin, end in bars(axes))
            assert kind == "rounds" or not any(1000 <= tick <= high for tick in axes.get_yticks())
    assert drawn("blocks", sweep()).figure.axes[0].get_ylabel() == "step (s)"


def test_rounds_take_another_baseline():
    profile = b.profile(b.group("g", b.member("torch", 4.0, **EXACT), b.member("jax", 2.0, **EXACT)), drift=0.0)
    (axes,) = drawn("rounds", profile, baseline="jax").figure.axes
    assert any(list(each.get_ydata()) == pytest.approx([2.0] * 8) for each in axes.lines)
    with pytest.raises(KitError, match="no baseline 'numpy'"):
        drawn("rounds", profile, baseline="numpy")


def test_cells_without_a_number_are_left_out_and_named():
    members = [b.member("torch", 2.0, batch=batch, failed_rounds=DEAD if batch == 64 else {}) for batch in (8, 64)]
    figure, *_, left_out = drawn("batch", b.profile(b.group("g", *members)))
    assert [line.get_xdata().tolist() for line in figure.axes[0].lines if line.get_marker() == "o"] == [[8]]
    assert len(left_out) == 1 and "/b64/" in left_out[0] and "memory" in left_out[0]
    assert "/b64/" in words(figure)


def test_what_is_not_asked_for_is_what_the_suite_varies():
    assert usual_kind([sweep()]) == "batch"
    assert usual_kind([layered()]) == "units"
    assert usual_kind([b.profile()]) == "rounds"


def test_platforms_have_a_point_for_each_cell_and_its_interval():
    here = b.profile(*b.six_cells(), rounds=4)
    there = b.profile(
        b.group("mlp/*/gpu/train", b.member("torch", 0.2, device="gpu"), b.member("jax", 0.1, device="gpu")),
        rounds=4,
        id="there",
    )
    figure = drawn("platforms", here, there).figure
    (axes,) = figure.axes
    assert axes.get_yscale() == "log" and axes.get_title("left") == "training"
    groups = compare_within("p", here).groups
    first, second = (points for ((_, points),) in lines(axes).values())
    rows = [row for group in groups for row in group.rows]
    assert sorted(first) == pytest.approx(sorted(row.numbers.step_ns / 1e6 for row in rows))
    assert sorted(second) == pytest.approx([0.1, 0.2], rel=0.2)
    expected = sorted(row.numbers.step_interval_ns[0] / 1e6 for row in rows)
    assert sorted(low for _, low, _ in bars(axes))[-6:] == pytest.approx(expected) and len(bars(axes)) == 8
    with pytest.raises(KitError, match="one machine"):
        drawn("platforms", here)


def test_groups_of_one_network_on_platforms_have_places_and_names_of_their_own():
    def on(device, **more):
        groups = [
            b.group(
                f"{units} {batch}",
                *(
                    b.member(name, 1.0, "dblstm", batch=batch, device=device, parameters={"units": units})
                    for name in ("torch", "jax")
                ),
            )
            for units in (32, 64)
            for batch in (1, 128)
        ]
        return b.profile(*groups, rounds=3, id=device, **more)

    figure = drawn("platforms", on("cpu"), on("gpu")).figure
    assert [axes.get_title("left") for axes in figure.axes] == ["training · batch 1", "training · batch 128"]
    for axes in figure.axes:
        placed = [x for ((xs, _),) in lines(axes).values() for x in xs]
        assert len(set(placed)) == 8
        names = [text.get_text() for text in axes.get_xticklabels()]
        assert {*names} == {f"dblstm\nunits {units}\n{name}" for units in (32, 64) for name in ("PyTorch", "JAX")}


def test_roofline_has_the_planted_ceilings_as_lines_and_networks_under_them():
    tasks_ms = (("train", 8.0), ("infer", 2.0))
    steps = [b.member(name, ms, task=task, **EXACT) for name in ("torch", "jax") for task, ms in tasks_ms]
    others = [b.member("torch", 2.0, name, **EXACT) for name in ("autoencoder", "somebodys_net")]
    plain = b.profile(b.group("g", *steps, *others), rounds=2, cycles=2, drift=0.0)
    profile = with_ceilings(plain)
    figure, _, looks, _, left_out = drawn("roofline", profile)
    assert [axes.get_title("left") for axes in figure.axes] == ["PyTorch on cpu", "JAX on cpu"]
    assert list(looks) == ["mlp", "autoencoder"] and len(left_out) == 1 and "somebodys_net" in left_out[0]
    axes = figure.axes[0]
    labels = [text.get_text() for text in axes.texts]
    assert labels == ["200 GFLOP/s float32", "10.0 GB/s triad 256 MiB", "40.0 GB/s triad 16 MiB"]
    flops = 2 * 128 * (784 * 512 + 512 * 512 + 512 * 10)
    trained, inferred = (y for _, (y,) in lines(axes)["mlp"])
    assert inferred == pytest.approx(flops / 2e-3, rel=1e-3)
    assert trained == pytest.approx((3 * flops - 2 * 128 * 784 * 512) / 8e-3, rel=1e-3)
    with pytest.raises(KitError, match="--ceilings"):
        drawn("roofline", plain)
    # Nothing else draws what networks are held against.
    assert without_operations(profile) == plain
