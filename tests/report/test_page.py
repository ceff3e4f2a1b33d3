"""`kit report`: the page says what the commands say, loads nothing, and passes axe in a real browser."""

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import profile_builder as b
import pytest
from kit_process import invoke as kit
from refusals import refusal

from kit.documentation import DOCUMENTATION
from kit.profile.fields import reason
from kit.profile.instruments import SensorReadings
from kit.profile.schema import Failure, Phase
from kit.profile.store import read_profile

REFERENCE = Path(__file__).parents[2] / "profiles" / "reference"
FIVE, CPU, GPU = (
    REFERENCE / f"{name}.json" for name in ("cpu-epyc-2-vcpu-five-nets", "cpu-epyc-2-vcpu-quick", "gpu-h100-quick")
)
HOSTILE = "<script>alert(1)</script>\"'&amp;\u202e"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PAGE_MAX_B = 2_000_000
VOID = {"meta", "br", "link", "img", "input"}


class Page(HTMLParser):
    """The elements of a page with their attributes and text, and what is not closed where it should be."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.wrong, self.texts = [], [], [], []
        self.feed(html)
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open += [tag] if tag not in VOID else []

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def written(out, *profiles):
    ended = kit("report", *profiles, "--out", out, "--force")
    assert ended.exit_code == 0, ended.exception
    return out.read_text("utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def five(folder):
    return written(folder / "five.html", FIVE)


@pytest.fixture(scope="module")
def two(folder):
    return written(folder / "two.html", CPU, GPU)


def hostile(folder):
    """A profile whose label, names and reasons are markup."""
    plan = b.group("g", b.member("torch", 2.0), b.member("jax", 1.0))
    profile = b.profile(plan, rounds=3, cycles=3)
    profile.label = HOSTILE
    profile.suite = msgspec.structs.replace(profile.suite, name=HOSTILE)
    path = folder / "<b>x&y.json"
    b.write(path, profile)
    return path


def test_the_page_has_what_the_commands_print(five):
    page = Page(five)
    assert not page.wrong
    compared, audited = (json.loads(kit(verb, FIVE, "--json").stdout) for verb in ("compare", "audit"))
    printed = re.sub(r"\s+", " ", kit("compare", FIVE).stdout)
    assert "JAX is the fastest: 1.38 × as fast as PyTorch, 1.68 × as fast as TensorFlow." in printed
    assert page.text.count("JAX is the fastest: 1.38 × as fast as PyTorch, 1.68 × as fast as TensorFlow.") == 2
    for group in compared["groups"]:
        assert f"{' · '.join(group['title'])}" in page.text
    for finding in audited["findings"]:
        assert finding["rule"].replace("_", "-") in page.text
    profile = read_profile(FIVE)
    for known in ("697 %", profile.digest, profile.id, profile.identity.hardware_sha256, "AMD EPYC"):
        assert known in page.text
    blocks = sum(len(launch.blocks.steps) for result in profile.cells for launch in result.launches)
    marks = [attrs for tag, attrs in page.elements if tag == "use" and "x" in attrs]
    assert len(marks) == blocks


@pytest.mark.parametrize("name", ["five", "two"])
def test_a_page_is_one_small_file_without_scripts_or_anything_to_load(name, request):
    html = request.getfixturevalue(name)
    page = Page(html)
    assert len(html.encode()) < PAGE_MAX_B
    # An address of the documentation may be read; nothing of it is loaded.
    plain = html.replace(DOCUMENTATION, "").lower()
    assert "http" not in plain and "<script" not in plain and "@import" not in plain and "url(" not in plain
    for tag, attrs in page.elements:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
        assert not any(name.startswith("on") or name in ("src", "srcset", "style") for name in attrs)
        assert attrs.get("href", "#").startswith("#")
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for _, attrs in page.elements if "href" in attrs} <= set(ids)


def test_platforms_are_side_by_side_with_energy_where_it_was_measured(two):
    page = Page(two)
    assert not page.wrong
    assert "JAX is the fastest on cpu and gpu; comparing the fastest of each, gpu is 25 × as fast as cpu." in page.text
    order = [two.index(f'id="{part}"') for part in ("verdicts", "side-by-side", "groups", "findings", "identity")]
    assert order == sorted(order)
    compared = json.loads(kit("compare", GPU, "--json").stdout)
    rows = [row["numbers"] for group in compared["groups"] for row in group["rows"]]
    energy = two[two.index('id="energy-and-utilization"') :]
    for numbers in rows:
        assert f"{numbers['energy_power_w']:.0f} W<" in energy
        assert f"{numbers['utilization_pct']:.0f} %<" in energy
    cpu, gpu = energy.split("gpu-h100-quick</h3>", 1)
    assert "Mean power" in gpu and "Mean power" not in cpu


def test_charts_show_what_was_planted(tmp_path):
    plan = b.group("g", b.member("torch", 2.0, **b.EXACT), b.member("jax", 1.0, **b.EXACT))
    profile = b.profile(plan, rounds=2, cycles=3, drift=0.0)
    for result in profile.cells:
        for launch in result.launches:
            begin_ns = max(0, launch.blocks.begin_ns[0] - 10**10)
            launch.phases = [Phase(name="compile", begin_ns=begin_ns, duration_ns=7 * 10**9)]
    profile.cells[1].launches[1].failure = Failure(phase="steady", reason=reason("out_of_memory", signal="SIGKILL"))
    html = written(tmp_path / "p.html", b.write(tmp_path / "p.json", profile))
    words = " ".join(re.findall("<desc>(.*?)</desc>", html))
    assert "12 blocks in 2 rounds, 3 of them do not count" in words and "torch: 2.00 ms to 2.00 ms" in words
    assert "jax: compile 7.00 s, 3 blocks" in words
    # The framework's mark and the mark's height: a slower cell is nearer to the upper end.
    heights = {look: {float(y) for y in re.findall(f'#m{look}" x="[^"]*" y="([^"]*)"', html)} for look in (1, 2)}
    assert len(heights[1]) == len(heights[2]) == 1 and max(heights[1]) < min(heights[2])
    assert (
        html.count('<use class="c2 hollow"') == 3 and "hollow" not in html.replace("c2 hollow", "").split("</style>")[1]
    )


def test_a_page_draws_power_and_clock_of_long_blocks_against_time(tmp_path):
    """The clock of one of two boards falls by a third in the middle of its block; without readings nothing is drawn."""

    def reading(clocks_mhz):
        at_ns = [index * 10**9 for index in range(len(clocks_mhz))]
        readings = [("nvml.0.power", "W", [700.0] * len(at_ns)), ("nvml.0.frequency", "MHz", clocks_mhz)]
        return {
            "long_block_readings": [
                SensorReadings(sensor=name, unit=unit, at_ns=at_ns, values=values) for name, unit, values in readings
            ]
        }

    members = [
        b.member("torch", 2.0, device="gpu", launch=reading([1980.0, 1980.0, 1320.0, 1320.0])),
        b.member("jax", 1.0, device="gpu", launch=reading([1980.0] * 4)),
    ]
    html = written(tmp_path / "p.html", b.write(tmp_path / "p.json", b.profile(b.group("g", *members), rounds=2)))
    assert not Page(html).wrong
    drawn = html[html.index("power and clock in the long block</title>") :]
    drawn = drawn[: drawn.index("</svg>")]
    assert "Power of the first launch in W: jax from 700 to 700, torch from 700 to 700" in drawn
    assert "Clock of the first launch in MHz: jax from 1,980 to 1,980, torch from 1,980 to 1,320" in drawn
    paths = re.findall('<path class="level (c[0-9])" d="M([^"]*)"/>', drawn)
    assert len(paths) == 2 * 2 * 2, "a line for each quantity, cell and round"
    points = {look: [tuple(map(float, point.split())) for point in path.split("L")] for look, path in paths[-8:][4:]}
    (first, second, third, fourth) = points["c1"]  # PyTorch's look; y grows downwards
    assert first[1] == second[1] < third[1] == fourth[1]
    assert first[0] < second[0] < third[0] < fourth[0]
    assert len({y for _, y in points["c2"]}) == 1
    plain = b.profile(b.group("g", b.member("torch", 2.0, device="gpu")), rounds=2)
    assert "power and clock" not in written(tmp_path / "q.html", b.write(tmp_path / "q.json", plain))


def test_a_name_is_text_and_never_markup(tmp_path):
    html = written(tmp_path / "h.html", hostile(tmp_path))
    page = Page(html)
    assert not page.wrong and "<script" not in html and "\u202e" not in html
    assert "alert(1)" in page.text and "<b>x&y" in page.text


def test_profiles_that_cannot_be_compared_are_shown_each_with_the_reason(tmp_path):
    for name, workload in (("a", "mlp"), ("b", "cnn")):
        b.write(
            tmp_path / f"{name}.json", b.profile(b.group("g", b.member("torch", 2.0, workload)), rounds=2, cycles=3)
        )
    page = Page(written(tmp_path / "p.html", tmp_path / "a.json", tmp_path / "b.json"))
    assert "Not compared with each other: " in page.text and not page.wrong
    assert refusal(kit("compare", tmp_path / "a.json", tmp_path / "b.json")) in page.text


def browser():
    audited = next(filter(None, map(shutil.which, BROWSERS)), None)
    return audited or pytest.skip("no Chromium: apt-get install chromium-headless-shell, or the package chromium")


def axe():
    file = Path(os.environ.get("KIT_TEST_AXE", "axe.min.js"))
    if not file.is_file():
        pytest.skip("no axe-core: npm pack axe-core, unpack it, set KIT_TEST_AXE to its axe.min.js")
    return file.read_text("utf-8")


AUDITED = """
<script>{axe}</script><script>
addEventListener("load", () => axe.run(document).then(audited => {{
  const output = document.createElement("pre");
  const wrong = audited.violations.map(each => [each.id, each.nodes.map(node => node.html.slice(0, 200))]);
  const wide = [...document.querySelectorAll("main *")].filter(each => !each.closest(".scroll, .skip") &&
    each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 200));
  const beyond = document.documentElement.scrollWidth - innerWidth;
  output.id = "axe";
  output.textContent = JSON.stringify({{wrong, wide, beyond, passes: audited.passes.length, width: innerWidth,
    paper: getComputedStyle(document.body).backgroundColor}});
  document.body.append(output);
}}));
</script>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width", "is_dark"),
    [("two", 360, False), ("five", 1200, True), ("hostile", 360, True)],
)
def test_a_browser_finds_nothing_that_keeps_people_from_reading(name, width, is_dark, request, tmp_path):
    """axe-core, all rules, with everything unfolded; nothing but tables that scroll is wider than the window."""
    program, rules = browser(), axe()
    html = written(tmp_path / "h.html", hostile(tmp_path)) if name == "hostile" else request.getfixturevalue(name)
    assert html.count("</body>") == 1
    copy = tmp_path / "copy.html"
    html = html.replace("<details>", "<details open>")
    copy.write_text(html.replace("</body>", f"{AUDITED.format(axe=rules)}</body>"), "utf-8")
    done = subprocess.run(
        [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'user'}",
         f"--window-size={width},2000", f"--blink-settings=preferredColorScheme={int(not is_dark)}",
         "--virtual-time-budget=20000", "--dump-dom", copy.as_uri()],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    output = re.search('<pre id="axe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert output is not None, done.stderr[-2000:]
    audited = msgspec.json.decode(
        re.sub("&(lt|gt|amp);", lambda sign: {"lt": "<", "gt": ">", "amp": "&"}[sign[1]], output[1])
    )
    assert audited["width"] == width and (audited["paper"] == "rgb(255, 255, 255)") is not is_dark
    assert audited["passes"] > 20 and audited["wrong"] == []
    assert audited["beyond"] <= 0 and audited["wide"] == []
