"""What is drawn is what was planted, read from the figure's own artists."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import profile_builder as b
import pytest
from click import ClickException
from click.testing import CliRunner
from matplotlib import image
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from kit.cli.app import app
from kit.compare.within import compare_within
from kit.errors import KitError
from kit.profile.store import read_profile
from kit.report.plot.draw import draw, file_of
from kit.report.plot.frame import Asked
from kit.report.plot.kinds import KINDS, usual_kind

pytestmark = pytest.mark.filterwarnings("error")  # a warning is a line on a user's terminal
ROOT = Path(__file__).parents[2]
TITLES = {"jax": "JAX", "torch": "PyTorch", "tensorflow": "TensorFlow"}
EXACT = {"sd": 0.0, "noise": 0.0}
PLANTED_MS = {"torch": 4.0, "jax": 2.0, "tensorflow": 6.0}
BATCHES = (1, 10, 100, 1000)
DEAD = dict.fromkeys(range(8), b.reason("out_of_memory", signal="SIGKILL"))


def sweep(batches=BATCHES, backends=("torch", "jax"), device="cpu", factor=1.0, rounds=4, **more):
    """Steps of `batch + 10` ms in training and half of it in inference, `jax` twice as fast, without any noise."""
    plans = [
        b.group(f"{name} {task}", *members)
        for name in backends
        for task in ("train", "infer")
        for members in [
            [
                b.member(
                    name, factor * step_ms(name, task, batch), task=task, batch=batch, device=device, **EXACT, **more
                )
                for batch in batches
            ]
        ]
    ]
    return b.profile(*plans, rounds=rounds, cycles=3, drift=0.0, suite="batch-sweep", compare=("batch",))


def step_ms(name, task, batch):
    return (batch + 10) / (2 if name == "jax" else 1) / (2 if task == "infer" else 1)


def layered():
    plans = [
        b.group(
            f"{name} {layers}",
            *(
                b.member(name, layers * units / 10, "dblstm", parameters={"layers": layers, "units": units}, **EXACT)
                for units in (32, 64, 128, 256)
            ),
        )
        for name in ("torch", "jax")
        for layers in (1, 2, 3)
    ]
    return b.profile(*plans, rounds=3, cycles=3, drift=0.0, compare=("units",))


def drawn(kind, *profiles, baseline=None):
    labelled = [("p", profiles[0])] if len(profiles) == 1 else [(f"p{at}", one) for at, one in enumerate(profiles)]
    return draw(Asked(kind, labelled, TITLES, baseline))


def lines(axes):
    """Name in the legend -> (x, y) of each line with that look."""
    legend = axes.figure.legends[0]
    looks = {
        (to_hex(one.get_color()), one.get_marker()): text.get_text()
        for one, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
    }
    found = {}
    for one in axes.lines:
        name = looks.get((to_hex(one.get_color()), one.get_marker()))
        if name is not None:
            found.setdefault(name, []).append((list(one.get_xdata()), list(one.get_ydata())))
    return found


def line(axes, name):
    (only,) = lines(axes)[name]
    return only


def bars(axes):
    """The ends of each interval, by x."""
    segments = [one for own in axes.collections if isinstance(own, LineCollection) for one in own.get_segments()]
    return sorted((round(float(low[0]), 6), float(low[1]), float(high[1])) for low, high in segments)


def words(figure):
    return " ".join(text.get_text() for text in figure.texts)


def test_batch_shows_the_planted_time_of_a_sample():
    figure, left_out = drawn("batch", sweep())
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
    (cells,) = compare_within("p", profile, parity_tolerance=1e-5).groups
    expected = {
        row.cell.batch: [end / row.cell.batch / 1e3 for end in row.numbers.step_interval_ns] for row in cells.rows
    }
    assert axes.get_ylabel() == "time per sample (µs)"
    for batch, low, high in bars(axes):
        assert (low, high) == pytest.approx(expected[batch])
        assert high > 1.02 * low
    assert len(bars(axes)) == 2


def test_one_round_has_points_and_no_bars():
    figure = drawn("batch", sweep(rounds=1)).figure
    assert bars(figure.axes[0]) == [] and len(line(figure.axes[0], "JAX")[0]) == len(BATCHES)


@pytest.mark.parametrize(
    ("kind", "values", "other"), [("units", [32, 64, 128, 256], "layers"), ("layers", [1, 2, 3], "units")]
)
def test_units_and_layers_have_a_line_for_each_value_of_the_other(kind, values, other):
    (axes,) = drawn(kind, layered()).figure.axes
    others = {"units": [1, 2, 3], "layers": [32, 64, 128, 256]}[kind]
    assert set(lines(axes)) == {f"{title} {one} {other}" for title in ("PyTorch", "JAX") for one in others}
    for one in others:
        x, y = line(axes, f"JAX {one} {other}")
        assert x == values
        assert y == pytest.approx([one * value / 10 for value in values])
    assert axes.get_ylabel() == "step time (ms)" and axes.get_xlabel().startswith(kind)


def test_gain_is_the_first_profiles_time_in_percent_of_the_others():
    cpu, gpu = sweep(), sweep(device="gpu", factor=0.25)
    figure, _ = drawn("gain", cpu, gpu)
    for axes in figure.axes:
        x, y = line(axes, "JAX")
        assert x == list(BATCHES) and y == pytest.approx([400] * 4)
        assert any(list(own.get_ydata()) == [100, 100] for own in axes.lines)
        assert bars(axes) == []  # two runs at different times cannot be paired
    assert "(%)" in figure.axes[0].get_ylabel()
    turned = drawn("gain", cpu, gpu, baseline="p1").figure.axes[0]
    assert line(turned, "JAX")[1] == pytest.approx([25] * 4)


def test_devices_that_took_turns_have_an_interval():
    members = [b.member("torch", ms, batch=8, device=device, sd=0.02) for device, ms in (("cpu", 4.0), ("gpu", 2.0))]
    profile = b.profile(b.group("g", *members), compare=("device",))
    (axes,) = drawn("gain", profile).figure.axes
    (group,) = compare_within("p", profile, baseline="gpu", parity_tolerance=1e-5).groups
    versus = next(row.versus for row in group.rows if row.versus)
    assert bars(axes) == [(8, pytest.approx(100 * versus.low), pytest.approx(100 * versus.high))]
    (point,) = [one for one in axes.lines if one.get_marker() == "o"]
    assert list(point.get_ydata()) == pytest.approx([100 * versus.ratio])


def test_cells_that_the_gate_keeps_apart_have_no_gain():
    other = b.profile(b.group("g", b.member("torch", 2.0), b.member("jax", 2.0)), data="synthetic")
    with pytest.raises(KitError, match="not comparable, data"):
        drawn("gain", b.profile(b.group("g", b.member("torch", 2.0), b.member("jax", 2.0))), other)


def test_latency_is_joined_in_order_of_batch_and_labelled_with_it():
    figure, _ = drawn("latency", sweep(batches=(100, 1, 10, 1000)))
    training = figure.axes[0]
    x, y = line(training, "PyTorch")
    assert x == pytest.approx([1.1 * step_ms("torch", "train", batch) for batch in BATCHES])
    assert y == pytest.approx([1e3 * batch / step_ms("torch", "train", batch) for batch in BATCHES])
    assert training.get_xlabel() == "p95 of a step (ms)" and training.get_ylabel() == "throughput (samples/s)"
    shown = {one.get_text(): one.xy for one in training.texts if one.get_visible()}
    assert shown["1,000"][0] in (x[-1], line(training, "JAX")[0][-1])


def test_labels_of_crowded_batches_do_not_overlap():
    figure, _ = drawn("latency", sweep(batches=range(1, 120), backends=("torch",), rounds=2))
    for axes in figure.axes:
        boxes = [one.get_window_extent() for one in axes.texts if one.get_visible()]
        assert 2 <= len(boxes) < 119
        assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])


def test_blocks_are_each_block_in_order_of_time_and_rounds_stand_apart():
    profile = b.profile(b.group("g", b.member("torch", 2.0), b.member("jax", 4.0)), rounds=3, cycles=5)
    (axes,) = drawn("blocks", profile).figure.axes
    for title, result in zip(("PyTorch", "JAX"), profile.cells, strict=True):
        stretches = lines(axes)[title]
        assert len(stretches) == 3
        for (x, y), launch in zip(stretches, result.launches, strict=True):
            assert y == pytest.approx([ns / 1e6 for ns in launch.blocks.median_ns])
            assert np.diff(x) == pytest.approx(np.diff(launch.blocks.begin_ns) / 1e9)
    ends = [[x[0], x[-1]] for x, _ in lines(axes)["JAX"]]
    assert all(before[1] < after[0] for before, after in pairwise(ends))
    assert [one.get_text() for one in axes.get_xticklabels()] == ["0", "10", "20"]  # 10 s from round to round
    assert axes.get_ylabel() == "step (ms)" and "(s)" in axes.get_xlabel()


def test_rounds_are_the_ratios_that_the_verdict_rests_on():
    profile = b.profile(
        b.group("g", b.member("torch", 4.0), b.member("jax", 2.0), b.member("tensorflow", 6.0)), rounds=4
    )
    (axes,) = drawn("rounds", profile).figure.axes
    (group,) = compare_within("p", profile, parity_tolerance=1e-5).groups
    for row in (row for row in group.rows if row.versus):
        (_, by_round), (_, whole) = lines(axes)[TITLES[row.name]]
        assert np.log(by_round).mean() == pytest.approx(row.versus.mean_log)
        assert len(by_round) == 4 and whole == pytest.approx([row.versus.ratio])
        assert any((low, high) == pytest.approx((row.versus.low, row.versus.high)) for _, low, high in bars(axes))
    faint = [one for one in axes.lines if one.get_alpha()]
    assert [len(one.get_ydata()) for one in faint] == [12] * 8
    assert any(list(one.get_ydata()) == [1, 1] for one in axes.lines)
    assert axes.get_ylabel() == "step ÷ PyTorch"
    assert [one.get_text() for one in axes.get_xticklabels()] == ["1", "2", "3", "4", "all"]


def test_rounds_take_another_baseline():
    profile = b.profile(b.group("g", b.member("torch", 4.0, **EXACT), b.member("jax", 2.0, **EXACT)), drift=0.0)
    (axes,) = drawn("rounds", profile, baseline="jax").figure.axes
    assert any(list(one.get_ydata()) == pytest.approx([2.0] * 8) for one in axes.lines)
    with pytest.raises(KitError, match="no baseline 'numpy'"):
        drawn("rounds", profile, baseline="numpy")


def test_cells_without_a_number_are_left_out_and_named():
    members = [b.member("torch", 2.0, batch=batch, failed_rounds=DEAD if batch == 64 else {}) for batch in (8, 64)]
    figure, left_out = drawn("batch", b.profile(b.group("g", *members)))
    assert [one.get_xdata().tolist() for one in figure.axes[0].lines if one.get_marker() == "o"] == [[8]]
    assert len(left_out) == 1 and "/b64/" in left_out[0] and "memory" in left_out[0]
    assert "/b64/" in words(figure)


def test_what_is_not_asked_for_is_what_the_suite_varies():
    assert usual_kind([sweep()]) == "batch"
    assert usual_kind([layered()]) == "units"
    assert usual_kind([b.profile()]) == "rounds"


def test_lines_are_told_apart_without_colour():
    (axes,) = drawn("units", layered()).figure.axes
    own = [one for one in axes.lines if len(one.get_xdata()) == 4 and one.get_marker() != "_"]  # ends of bars
    assert len({one.get_marker() for one in own}) == len(own) == 6
    assert len({one.get_linestyle() for one in own}) > 3


def odd_profiles():
    mixed = [b.member("torch", 2.0, batch=4), b.member("torch", 3.0, batch=8, failed_rounds=DEAD)]
    many = [b.member("torch", 0.01 * batch, batch=batch) for batch in range(1, 51)]
    names = ("plain", "_v", "$x_^{\n", "\x1b[31m<&>", *(f"{'long' * 40}{end}{'long' * 40}" for end in "ab"))
    strange = b.group("g", *(b.member("jax$x_^{", 2.0, "_net\n$", variant=name) for name in names))
    renamed = b.profile(rounds=2, cycles=3)
    renamed.cells[0].cell = b.cell("torch", batch=3)
    return {
        "a key of another cell": renamed,
        "plain": b.profile(rounds=3),
        "one cell": b.profile(b.group("g", b.member())),
        "failed": b.profile(b.group("g", *mixed)),
        "one round": b.profile(rounds=1),
        "many": b.profile(b.group("g", *many), rounds=2, cycles=2),
        "alike": b.profile(b.group("g", b.member(**EXACT), b.member("jax", **EXACT)), drift=0.0, rounds=2),
        "one after the other": b.profile(turns="whole", rounds=2),
        "names": b.profile(strange, id="\x1b[31m<&>", compare=("variant",)),
        "parameters": layered(),
        "all failed": b.profile(b.group("g", b.member(failed_rounds=DEAD), b.member("jax", failed_rounds=DEAD))),
        "batch of zero": b.profile(b.group("g", b.member(batch=0), b.member(batch=2))),
    }


# What has nothing to show of a kind says so instead.
NOTHING = {"all failed": set(KINDS), "one cell": {"rounds"}, "failed": {"rounds"}}


@pytest.mark.parametrize("name", odd_profiles())
def test_odd_profiles_are_drawn_or_refused_in_one_line(name):
    profile = odd_profiles()[name]
    for kind in KINDS:
        profiles = [profile, profile] if kind == "gain" else [profile]
        expected = kind not in NOTHING.get(name, set()) and (kind not in ("units", "layers") or name == "parameters")
        if not expected:
            with pytest.raises(KitError) as refused:
                drawn(kind, *profiles)
            assert str(refused.value).isprintable()
            continue
        figure, _ = drawn(kind, *profiles)
        legends = [text.get_text() for own in figure.legends for text in own.get_texts()]
        assert len(set(legends)) == len(legends) and all(text.isprintable() for text in legends)
        if name == "names":
            assert len(legends) >= 5 and any("_v" in text for text in legends)
        assert all(one.get_ylim()[1] > one.get_ylim()[0] > 0 for one in figure.axes)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_an_svg_with_text_and_a_png(kind, tmp_path):
    one = layered() if kind in ("units", "layers") else sweep(backends=("torch",))
    profiles = [one, one] if kind == "gain" else [one]
    picture = drawn(kind, *profiles)
    svg = file_of(picture, ".svg")
    texts = [one.text for one in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert any("Example CPU 9000" in (text or "") for text in texts)
    (tmp_path / "p.png").write_bytes(file_of(picture, ".png"))
    pixels = image.imread(tmp_path / "p.png")
    assert pixels.shape[1] == 1300 and pixels.shape[0] > 500 and pixels.std() > 0.05
    assert file_of(drawn(kind, *profiles), ".svg") == svg and b"<dc:date>" not in svg


def test_nothing_is_written_over_another_or_beyond_the_edge():
    figure, _ = drawn("rounds", b.profile(*b.six_cells(), b.group("g", b.member("jax", batch=2), b.member())))
    texts = [*figure.texts, *figure.legends, *(axes.title for axes in figure.axes)]
    boxes = [one.get_window_extent() for one in texts if not hasattr(one, "get_text") or one.get_text()]
    boxes += [axes.get_tightbbox() for axes in figure.axes]
    assert all(figure.bbox.x0 <= one.x0 and one.x1 <= figure.bbox.x1 and one.y0 >= figure.bbox.y0 for one in boxes)
    assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])


def test_a_users_own_style_changes_nothing():
    profile = sweep(batches=(1, 2))
    plain = file_of(drawn("batch", profile), ".svg")
    with mpl.rc_context({"axes.facecolor": "red", "svg.fonttype": "path", "lines.linewidth": 9}):
        assert file_of(drawn("batch", profile), ".svg") == plain


@pytest.fixture
def folder(tmp_path, monkeypatch):
    b.write(tmp_path / "p.json", sweep())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kit(*arguments):
    return CliRunner().invoke(app, ["plot", *arguments], standalone_mode=False)


def test_the_command_writes_what_is_asked_for(folder):
    assert kit("p.json", "-o", "a.svg").exit_code == 0
    first = (folder / "a.svg").read_bytes()
    assert b"time per sample" in first
    refused = kit("p.json", "-o", "a.svg", "--kind", "blocks")
    assert "--force" in str(refused.exception) and (folder / "a.svg").read_bytes() == first
    assert kit("p.json", "-o", "a.svg", "--kind", "blocks", "--force").exit_code == 0
    assert b"Medians of blocks" in (folder / "a.svg").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "a.pdf"], r"\.svg or \.png"),
        (["-o", "a"], r"\.svg or \.png"),
        (["-o", "none/a.svg"], "no such folder"),
        (["-o", "a.svg", "--kind", "pie"], "pie"),
        (["-o", "a.svg", "--kind", "layers"], "no cell has layers"),
        (["-o", "a.svg", "--kind", "gain"], "two profiles"),
        (["-o", "a.svg", "--kind", "batch", "--baseline", "jax"], "--baseline"),
        (["-o", "a.svg", "--kind", "rounds", "--baseline", "numpy"], "no baseline 'numpy'"),
        ([], "--out"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(folder, arguments, says):
    result = kit("p.json", *arguments)
    line = result.exception.format_message() if isinstance(result.exception, ClickException) else str(result.exception)
    assert re.search(says, line) and "\n" not in line
    assert getattr(result.exception, "exit_code", None) == 2
    assert [one.name for one in folder.iterdir()] == ["p.json"]


def test_only_drawing_imports_matplotlib():
    code = "import sys, kit.cli.app, kit.cli.plot, kit.report.plot.kinds; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_pictures_of_the_documentation_are_those_of_the_reference_profile():
    profile = read_profile(ROOT / "profiles" / "reference" / "cpu-epyc-2-vcpu-quick.json")
    for kind in ("rounds", "blocks"):  # the words: how lines are written is matplotlib's
        svg = file_of(draw(Asked(kind, [("cpu-epyc-2-vcpu-quick", profile)], TITLES)), ".svg").decode()
        committed = (ROOT / "docs" / "plots" / f"{kind}.svg").read_text()
        assert re.findall("<text.*?</text>", svg) == re.findall("<text.*?</text>", committed)
