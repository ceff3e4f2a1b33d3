"""What is drawn is what was planted; every plot is a file with readable text, the same bytes each time."""

import re
from pathlib import Path

import matplotlib as mpl
import profile_builder as b
import pytest
from msgspec.structs import replace

from kit.compare.compare import compare_within
from kit.errors import KitError
from kit.profile.store import read_profile
from kit.report.plot_figure import draw, file_of
from kit.report.plot_kinds import KINDS, SWEPT, PlotRequest, plot_data

pytestmark = pytest.mark.filterwarnings("error")  # a warning is a line on a user's terminal
ROOT = Path(__file__).parents[2]
TITLES = {"jax": "JAX", "torch": "PyTorch", "tensorflow": "TensorFlow"}
BATCHES = (1, 10, 100, 1000)


def request(kind, *profiles, **options):
    labels = ["p"] if len(profiles) == 1 else [f"p{index}" for index in range(len(profiles))]
    return PlotRequest(kind, list(zip(labels, profiles, strict=True)), TITLES, **options)


def rows_of(kind, *profiles, **options):
    return plot_data(request(kind, *profiles, **options)).rows


def points(kind, *profiles, **options):
    """Panel and line -> [(x, y)]."""
    by_line = {}
    for row in rows_of(kind, *profiles, **options):
        by_line.setdefault((row["panel"], " ".join(row["line"])), []).append((row["x"], row["y"]))
    return by_line


def svg(kind, *profiles, **options):
    return file_of(draw(request(kind, *profiles, **options))[0], ".svg", 200).decode()


def texts(drawing):
    return [re.sub("<.*?>", "", text) for text in re.findall("<text.*?</text>", drawing, re.DOTALL)]


def step_ms(name, task, batch):
    return (batch + 10) / (2 if name == "jax" else 1) / (2 if task == "infer" else 1)


def sweep(device="cpu", factor=1.0, **more):
    def member(name, task, batch):
        ms = factor * step_ms(name, task, batch)
        return b.member(name, ms, task=task, batch=batch, device=device, **b.EXACT)

    cells = [(name, task) for name in ("torch", "jax") for task in ("train", "infer")]
    plans = [b.group(f"{name} {task}", *(member(name, task, batch) for batch in BATCHES)) for name, task in cells]
    return b.profile(*plans, rounds=4, cycles=3, drift=0.0, suite="batch-sweep", compare=("batch",), **more)


def layered(backends):
    members = [
        b.member(name, layers * units / 10, "dblstm", parameters={"layers": layers, "units": units}, **b.EXACT)
        for name in backends
        for layers in (1, 2, 3)
        for units in (32, 64, 128, 256)
    ]
    return b.profile(b.group("g", *members), rounds=2, cycles=2, drift=0.0, compare=("units",))


def with_ceilings(profile):
    """The profile with products of 200 and 100 GFLOP/s and triads of 40 and 10 GB/s."""
    planted = b.operations(b.PRODUCT, ("matmul", 0.02, {"n": 100}), *b.TRIADS, **b.EXACT)
    ceilings = b.profile(*planted, rounds=2, cycles=2, drift=0.0)
    return replace(profile, cells=[*profile.cells, *ceilings.cells], groups=[*profile.groups, *ceilings.groups])


def busy(share=0.48, **more):
    """Torch and JAX; other programs take a share of the CPUs in two cycles of round 1 and in the whole of round 3."""
    others = b.beside_others(share, lambda number: {0: [1, 4], 2: range(12)}.get(number, []), **more)
    members = [b.member("torch", 4.0, **b.EXACT), b.member("jax", 2.0, change=others, **b.EXACT)]
    return b.profile(b.group("g", *members), rounds=4, drift=0.0)


def test_a_sweep_has_the_planted_times_of_a_sample():
    drawn = points("batch", sweep())
    assert drawn == {
        (title, name): [(batch, pytest.approx(1e6 * step_ms(backend, task, batch) / batch)) for batch in BATCHES]
        for title, task in (("training", "train"), ("inference", "infer"))
        for name, backend in (("PyTorch", "torch"), ("JAX", "jax"))
    }
    shown = texts(svg("batch", sweep()))
    assert {"training", "inference", "PyTorch", "JAX", "time per sample (ms)", "batch (samples per step)"} <= {*shown}
    assert "batch-sweep on Example CPU 9000, 4 CPUs" in shown and not any("run-1" in text for text in shown)


def test_devices_scale_strongly_in_one_panel_and_weakly_in_another():
    measured = ((1, 64, 8), (2, 64, 5), (2, 128, 9))
    members = [b.member("torch", ms, batch=batch, devices=n, **b.EXACT) for n, batch, ms in measured]
    drawn = points("devices", b.profile(b.group("g", *members), drift=0.0))
    assert drawn == {
        ("training · batch 64", "PyTorch"): [(1, pytest.approx(8_000)), (2, pytest.approx(12_800))],
        ("training · batch 64 a device", "PyTorch"): [(1, pytest.approx(8_000)), (2, pytest.approx(128 / 0.009))],
    }


def test_gain_is_the_baselines_time_in_percent():
    cpu, gpu = sweep(), sweep(device="gpu", factor=0.25, id="there")
    for baseline, gain in ((None, 400), ("gpu · gpu", 25)):
        drawn = points("gain", cpu, gpu, baseline=baseline)
        assert all(line == [(batch, pytest.approx(gain)) for batch in BATCHES] for line in drawn.values())
    members = [b.member("torch", ms, batch=8, device=device, sd=0.02) for device, ms in (("cpu", 4.0), ("gpu", 2.0))]
    (row,) = rows_of("gain", b.profile(b.group("g", *members), compare=("device",)))
    assert row["low"] < row["y"] < row["high"] < 1.2 * row["low"]  # of rounds in which both took turns
    with pytest.raises(KitError, match="two measured profiles"):
        rows_of("gain", cpu)


def test_a_roofline_has_the_planted_ceilings_and_what_networks_reach():
    members = [*(b.member(name, 8.0, **b.EXACT) for name in ("torch", "jax")), b.member("torch", 2.0, "mine")]
    profile = b.profile(b.group("g", *members), rounds=2, cycles=2, drift=0.0)
    data = plot_data(request("roofline", with_ceilings(profile)))
    assert [row["panel"] for row in data.rows] == ["PyTorch · cpu", "JAX · cpu"] and "mine" in data.left_out[0]
    guide_words = {guide.words for guide in data.guides}
    assert guide_words == {"200 GFLOP/s float32", "10.0 GB/s triad 256 MiB", "40.0 GB/s triad 16 MiB"}
    flops = 3 * b.MLP_FLOPS - 2 * 128 * 784 * 512
    assert data.rows[0]["y"] == pytest.approx(flops / 8e-3, rel=1e-3)
    assert guide_words <= {*texts(svg("roofline", with_ceilings(profile)))}
    with pytest.raises(KitError, match="--ceilings"):
        rows_of("roofline", profile)


def test_rounds_have_every_cycle_and_the_verdicts_interval():
    rows = rows_of("rounds", busy(slow=1.2))
    cycles = [row for row in rows if "faint" in row]
    assert len(cycles) == 48 and sum(row["disturbed"] for row in cycles) == 14
    by_round = [row for row in rows if "faint" not in row and row["x"] != "all"]
    assert [row["disturbed"] for row in by_round] == [False, False, True, False]
    (versus,) = (row.versus for row in compare_within("p", busy(slow=1.2)).groups[0].rows if row.versus)
    assert (rows[-1]["x"], rows[-1]["y"], rows[-1]["low"]) == ("all", versus.ratio, versus.low)
    (axes,) = draw(request("rounds", busy(slow=50.0)))[0].axes  # what counts is not pressed together
    assert 0.1 < axes.get_ylim()[0] < axes.get_ylim()[1] < 2.5
    assert "Hollow marks at an end of an axis lie beyond it." in svg("rounds", busy(slow=50.0))
    with pytest.raises(KitError, match="no baseline 'numpy'"):
        rows_of("rounds", busy(), baseline="numpy")


@pytest.mark.parametrize("kind", ["rounds", "times"])
def test_a_plot_counts_rounds_as_the_table_does(kind):
    disturb = b.beside_others(0.5, lambda number: range(100) if number in {1, 4} else ())
    members = [b.member(name, 2.0, change=disturb) for name in ("torch", "jax")]
    built = b.profile(b.group("mlp train", *members), rounds=6)
    (head,) = compare_within("p", built).headlines
    (line,) = [text for text in texts(svg(kind, built)) if "kit 0" in text and "round" in text]
    assert head.rounds == 4 and "4 of 6 rounds" in line


def test_intervals_are_those_of_the_comparison():
    profile = b.profile(b.group("g", b.member("torch", 2.0, batch=4), b.member("torch", 3.0, batch=8)), rounds=5)
    expected = {row.cell.batch: row for row in compare_within("p", profile).groups[0].rows}
    for kind, is_per_sample in (("batch", True), ("times", False)):
        for row in rows_of(kind, profile):
            ends = [expected[row["batch"]].value(f"step_{end}_ns") for end in ("low", "high")]
            size = row["batch"] if is_per_sample else 1
            assert [row["low"], row["high"]] == pytest.approx([end / size for end in ends])


def test_a_plot_takes_title_size_axis_and_metric():
    profile = b.profile(*b.six_cells(), rounds=4)
    figure, _ = draw(request("times", profile, title="Mine", axis="log", size_in=(9.0, 6.0)))
    assert tuple(figure.get_size_inches()) == (9.0, 6.0) and {axes.get_yscale() for axes in figure.axes} == {"log"}
    assert "Mine" in texts(svg("times", profile, title="Mine"))
    assert {axes.get_yscale() for axes in draw(request("batch", sweep(), axis="linear"))[0].axes} == {"linear"}
    assert "compile (ms)" in texts(svg("times", profile, metric="compile_ns"))
    with pytest.raises(KitError, match="did you mean peak_memory_b"):
        rows_of("times", profile, metric="peak_memory")
    with pytest.raises(KitError, match=r"use 9x[0-9.]+"):
        draw(request("times", profile, size_in=(9.0, 1.5)))


def test_a_disturbed_cell_is_marked_in_every_kind():
    taken = b.beside_others(0.48)
    members = [b.member(name, 8.0, batch=batch, change=taken) for name in ("torch", "jax") for batch in (1, 8)]
    profile = b.profile(*(b.group(member.cell.key, member) for member in members), rounds=2)
    cells = [b.member("torch", 1.0, batch=batch, device="gpu") for batch in (1, 8)]
    there = b.profile(b.group("g", *cells), id="there")
    shown = {"times": [profile], "batch": [profile], "platforms": [profile, there], "gain": [profile, there]}
    for kind, profiles in shown.items():
        drawing = svg(kind, *profiles)
        assert "Hollow: disturbed, as other programs took up to 48 % of the CPUs." in texts(drawing)
        assert re.search(r"fill: (#ffffff|url\(#h\w+\)); stroke: #(d55e00|000000)", drawing)
    assert "Hollow" not in svg("times", b.profile(*b.six_cells(), rounds=4))


def odd_profiles():
    names = ("plain", "_v", "$x_^{\n", "\x1b[31m<&>", *(f"{'long' * 40}{end}{'long' * 40}" for end in "ab"))
    strange = b.group("g", *(b.member("jax$x_^{", 2.0, "_net\n$", variant=name) for name in names))
    failed = b.group("g", b.member(failed_rounds=b.DEAD), b.member("jax", failed_rounds=b.DEAD))
    return {
        "plain": b.profile(*b.six_cells(), rounds=3),
        "one after the other": b.profile(turns="sequential", rounds=2),
        "many": b.profile(b.group("g", *(b.member(batch=n) for n in range(1, 51))), rounds=2, cycles=2),
        "names": b.profile(strange, id="\x1b[31m<&>", compare=("variant",)),
        "parameters": layered(("torch", "jax")),
        "all failed": b.profile(failed),
        "batch of zero": b.profile(b.group("g", b.member(batch=0), b.member("jax", batch=2))),
    }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "many" else name for name in odd_profiles()]
)
def test_odd_profiles_are_drawn_on_the_page_or_refused_in_one_line(name):
    profile = odd_profiles()[name]
    for kind in KINDS:
        more = (
            [replace(profile, id="there", identity=b.identity("Another CPU"))] if kind in ("platforms", "gain") else []
        )
        try:
            figure, _ = draw(request(kind, with_ceilings(profile) if kind == "roofline" else profile, *more))
        except KitError as refused:
            assert str(refused).isprintable() and (kind in (*SWEPT, "rounds", "roofline") or name == "all failed")
            continue
        (body,) = figure.subfigs
        boxes = [text.get_window_extent() for text in (*figure.texts, *body.texts, *body.legends)]
        boxes += [axes.get_tightbbox() for axes in figure.axes]
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 + 1 and box.y0 >= 0 for box in boxes)
        assert not any(box.overlaps(other) for index, box in enumerate(boxes) for other in boxes[:index])
        legend = [text.get_text() for legend in body.legends for text in legend.get_texts()]
        assert len({*legend}) == len(legend) and all(text.isprintable() for text in legend)
        ticks = [tick for axes in figure.axes for tick in axes.get_yticks() if tick <= axes.get_ylim()[1]]
        assert max(ticks) < 1000 or kind in ("gain", "devices", "roofline")  # one unit, of which none is a thousand


@pytest.mark.parametrize("kind", ["times", "rounds", "batch", "roofline"])
def test_the_same_input_gives_the_same_bytes_whatever_the_users_style(kind):
    profile = with_ceilings(sweep())
    first = svg(kind, profile)
    with mpl.rc_context({"axes.facecolor": "red", "svg.fonttype": "path", "lines.linewidth": 9, "svg.hashsalt": None}):
        assert svg(kind, profile) == first
    assert "<dc:date>" not in first and profile.id not in first


def test_the_plots_of_the_documentation_are_those_of_the_reference_profiles():
    reference = ROOT / "profiles" / "reference"
    shown = {
        "rounds": ["cpu-xeon-2-vcpu-quick"],
        "times": ["cpu-xeon-2-vcpu-quick"],
        "batch": ["cpu-epyc-2-vcpu-batch-sweep-torch-mlp"],
        "platforms": ["cpu-xeon-2-vcpu-quick", "gpu-h100-quick"],
    }
    for kind, names in shown.items():  # the words: how lines are written is matplotlib's
        profiles = [(name, read_profile(reference / f"{name}.json")) for name in names]
        drawing = file_of(draw(PlotRequest(kind, profiles, TITLES))[0], ".svg", 200).decode()
        assert texts(drawing) == texts((ROOT / "docs" / "plots" / f"{kind}.svg").read_text())
