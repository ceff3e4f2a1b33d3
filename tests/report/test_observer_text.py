import msgspec
from profile_builder import build_cell, build_profile, six_cells

from kit.profile.examination import Observed
from kit.profile.schema import ObserverOverhead
from kit.report import observer_text, profile_text

KEY = build_cell().key
EVIL = "x\x1b[2J\x07\r\n\u202e"
FOUND = ObserverOverhead(
    cell_key=KEY,
    ratio=1.00123,
    low=0.99811,
    high=1.00436,
    mean_ratio=1.00301,
    mean_low=0.99502,
    mean_high=1.01107,
    pairs=70,
)
NOTHING = dict.fromkeys(("ratio", "low", "high", "mean_ratio", "mean_low", "mean_high"))


def section_of(observer):
    rendered = profile_text.render(build_profile(six_cells(launches=2), observer=observer))
    return rendered.split("\nObserver test (sampler running / stopped)\n")[1].split("\n\n")[0]


def test_a_profile_shows_both_ratios_with_their_intervals():
    assert [line.split() for line in section_of(FOUND).splitlines()] == [
        [f"{KEY},", "70", "pairs", "of", "blocks"],
        ["on", "/", "off", "ratio", "95", "%", "interval"],
        ["median", "step", "1.0012", "[0.9981,", "1.0044]"],
        ["mean", "step", "1.0030", "[0.9950,", "1.0111]"],
    ]


def test_a_profile_without_it_says_why():
    assert "not run: the suite gives it no time (observer_s)" in section_of(None)
    failed = ObserverOverhead(cell_key=KEY, pairs=0, reason="the sampler was killed: signal 9", **NOTHING)
    assert section_of(failed).strip() == f"no number from {KEY}: the sampler was killed: signal 9"


def test_what_a_profile_brings_is_made_harmless():
    shown = section_of(ObserverOverhead(cell_key=EVIL, pairs=0, reason=EVIL, **NOTHING))
    assert not set("\x1b\x07\r\u202e") & set(shown)
    huge = section_of(msgspec.structs.replace(FOUND, ratio=1e300, high=1e308))
    assert max(map(len, huge.splitlines())) < 100


def test_a_ratio_below_1_is_explained():
    assert "measure when it is idle" not in section_of(FOUND)
    for field in ("high", "mean_high"):
        assert "measure when it is idle" in section_of(msgspec.structs.replace(FOUND, **{field: 0.99}))


def test_the_table_of_doctor_says_what_watching_costs():
    observed = Observed(overhead=FOUND, sampler_cpu_pct=0.3611, samples_per_s=9.98, reason=None)
    rendered = observer_text.render(observed)
    assert "median step  1.0012  [0.9981, 1.0044]" in rendered
    assert "sampler CPU  0.36 % of one core" in rendered
    assert "10.0 a second" in rendered
    assert "\x1b[" in observer_text.render(observed, color=True)


def test_the_table_of_doctor_says_what_is_not_known():
    overhead = ObserverOverhead(cell_key=KEY, pairs=0, reason="in import: no torch", **NOTHING)
    observed = Observed(overhead=overhead, sampler_cpu_pct=None, samples_per_s=None, reason="in import: no torch")
    assert "sampler CPU  – in import: no torch" in observer_text.render(observed)
