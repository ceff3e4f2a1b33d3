"""A self-test's answer as text."""

import msgspec
import pytest

from kit.profile.schema import Estimate, HostBand
from kit.profile.self_test import LaunchCount, Noise, RuleTally, SelfTestAnswer, Tally
from kit.report.selftest_text import render


def tally(slower=0, faster=0, same=0, of=200):
    return Tally(comparisons=of, faster=faster, slower=slower, same=same, unresolved=of - slower - faster - same)


@pytest.fixture
def answer():
    kinds = {"shuffled": tally(3, 4), "apart": None, "+3 %": tally(190, same=2)}
    simulated = {"shuffled": tally(30, 20, of=1000), "apart": None, "+3 %": tally(960, of=1000)}
    rules = [
        RuleTally(rule="kit, paired, band 1 %", ours=True, real=kinds, simulated=simulated),
        RuleTally(rule="Mann-Whitney, every step", ours=False, real=kinds, simulated=simulated),
    ]
    return SelfTestAnswer(
        cell_key="mlp/torch",
        cpu="Example\x1b[31m CPU",
        begun="2026-01-01T00:00:00+00:00",
        took_s=360.0,
        launches=[
            LaunchCount(planted_slowdown_pct=0.0, finished=40, steady=38, measured=None),
            LaunchCount(
                planted_slowdown_pct=3.0,
                finished=20,
                steady=19,
                measured=Estimate(value=1.031, low=1.02, high=1.042, launches=19),
            ),
        ],
        failed=0,
        launches_a_side=10,
        noise=Noise(launch_spread=0.02, launch_resemblance=0.3, step_spread=0.1, step_autocorrelation=0.2),
        band_shuffled=0.012,
        band_apart=0.034,
        band_expected=0.031,
        host_band=HostBand(band=0.034, taken="2026-01-01", cell_key="mlp", launches=38, hardware_sha256="a" * 64),
        no_band=None,
        rules=rules,
    )


def test_counts_shares_and_intervals_stand_beside_each_other(answer):
    text = render(answer, kept_in="/somewhere/a.json")
    (own, *_) = [line for line in text.splitlines() if line.startswith("  kit, paired, band 1 %  ")]
    assert own.split()[5:] == ["7/200", "3.5", "%", "–", "190/200", "95.0", "%"]
    assert "50/1000 5.0 % [3.7, 6.5]" in text
    assert "190 / 8 / 2 / 0" in text
    assert "+3.1 % [+2.0, +4.2] in 19 rounds" in text
    assert "3.40 %: what 95 % of comparisons" in text
    assert "the widest of 1.20 % shuffled, 3.40 % apart, 3.10 % expected of two runs" in " ".join(text.split())
    assert "kept in /somewhere/a.json" in text
    assert "\x1b" not in text


def test_colours_change_nothing_but_the_colours(answer):
    from rich.text import Text

    coloured = render(answer, color=True)
    assert "\x1b[" in coloured
    assert [line.rstrip() for line in Text.from_ansi(coloured).plain.splitlines()] == render(answer).splitlines()


def test_no_band_and_no_rules_say_why(answer):
    few = msgspec.structs.replace(answer, rules=[], noise=None, host_band=None, no_band="4 were left", took_s=None)
    text = render(few)
    assert "none: 4 were left" in text
    assert "Real launches" not in text


def test_width_stays_readable(answer):
    assert max(map(len, render(answer).splitlines())) <= 160
    assert all(line == line.rstrip() for line in render(answer).splitlines())
