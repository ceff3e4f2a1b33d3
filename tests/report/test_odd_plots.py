"""Every kind is a file in both formats, or one line that says why not, whatever the profile holds."""

import re
from pathlib import Path

import matplotlib as mpl
import profile_builder as b
import pytest
from matplotlib import image
from msgspec.structs import replace
from planted_plots import DEAD, EXACT, TITLES, drawn, layered, sweep, with_ceilings

from kit.errors import KitError
from kit.profile.store import read_profile
from kit.report.plot import KINDS, SWEPT
from kit.report.plot.picture import PlotRequest, draw, file_of

pytestmark = pytest.mark.filterwarnings("error")  # a warning is a line on a user's terminal
ROOT = Path(__file__).parents[2]


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
        "one after the other": b.profile(turns="sequential", rounds=2),
        "names": b.profile(strange, id="\x1b[31m<&>", compare=("variant",)),
        "parameters": layered(),
        "all failed": b.profile(b.group("g", b.member(failed_rounds=DEAD), b.member("jax", failed_rounds=DEAD))),
        "batch of zero": b.profile(b.group("g", b.member(batch=0), b.member(batch=2))),
    }


PARAMETERS = ("units", "layers")
# Sweeps over other parameters are drawn as these are.
DRAWN = [kind for kind in KINDS if kind not in SWEPT or kind in ("batch", *PARAMETERS)]
# What has nothing to show of a kind says so instead.
NOTHING = {"all failed": set(KINDS) - {"roofline"}, "one cell": {"rounds"}, "failed": {"rounds"}}


def profiles_for(kind, profile):
    """What this kind needs to be drawn."""
    if kind == "platforms":
        return [profile, replace(profile, id="there", identity=b.identity("Another CPU"))]
    if kind == "roofline":
        profile = with_ceilings(profile)
    return [profile, profile] if kind == "gain" else [profile]


@pytest.mark.parametrize("name", odd_profiles())
def test_odd_profiles_are_drawn_or_refused_in_one_line(name):
    profile = odd_profiles()[name]
    for kind in DRAWN:
        profiles = profiles_for(kind, profile)
        expected = kind not in NOTHING.get(name, set()) and (kind not in PARAMETERS or name == "parameters")
        if not expected:
            with pytest.raises(KitError) as refused:
                drawn(kind, *profiles)
            assert str(refused.value).isprintable()
            continue
        figure = drawn(kind, *profiles).figure
        legends = [text.get_text() for legend in figure.subfigs[0].legends for text in legend.get_texts()]
        assert len(set(legends)) == len(legends) and all(text.isprintable() for text in legends)
        if name == "names" and kind not in ("platforms", "roofline"):
            assert len(legends) >= 5 and any("_v" in text for text in legends)
        assert all(panel.get_ylim()[1] > panel.get_ylim()[0] > 0 for panel in figure.axes)


@pytest.mark.parametrize("kind", DRAWN)
def test_every_kind_is_an_svg_with_text_and_a_png_whatever_the_users_style(kind, tmp_path):
    profile = layered() if kind in PARAMETERS else sweep(backends=("torch",))
    profiles = profiles_for(kind, profile)
    svg = file_of(drawn(kind, *profiles), ".svg")
    assert re.search(b"<text[^>]*>[^<]*Example CPU 9000", svg) and b"<dc:date>" not in svg
    with mpl.rc_context({"axes.facecolor": "red", "svg.fonttype": "path", "lines.linewidth": 9}):
        picture = drawn(kind, *profiles)
        assert file_of(picture, ".svg") == svg
        (tmp_path / "p.png").write_bytes(file_of(picture, ".png"))
    pixels = image.imread(tmp_path / "p.png")
    assert pixels.shape[1] == 1300 and pixels.shape[0] > 500 and pixels.std() > 0.05


def test_nothing_is_written_over_another_or_beyond_the_edge():
    figure = drawn("rounds", b.profile(*b.six_cells(), b.group("g", b.member("jax", batch=2), b.member()))).figure
    figure.draw_without_rendering()
    (body,) = figure.subfigs
    boxes = [text.get_window_extent() for text in (*figure.texts, *body.texts, *body.legends)]
    boxes += [axes.get_tightbbox() for axes in figure.axes]
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and box.y0 >= figure.bbox.y0 for box in boxes)
    assert not any(box.overlaps(other) for at, box in enumerate(boxes) for other in boxes[:at])


def test_the_pictures_of_the_documentation_are_those_of_the_reference_profile():
    profile = read_profile(ROOT / "profiles" / "reference" / "cpu-xeon-2-vcpu-quick.json")
    for kind in ("rounds", "blocks"):  # the words: how lines are written is matplotlib's
        svg = file_of(draw(PlotRequest(kind, [("cpu-xeon-2-vcpu-quick", profile)], TITLES)), ".svg").decode()
        committed = (ROOT / "docs" / "plots" / f"{kind}.svg").read_text()
        assert re.findall("<text.*?</text>", svg) == re.findall("<text.*?</text>", committed)
