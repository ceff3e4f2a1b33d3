"""What is foreseen of a run: how many cycles its rounds have from the third on, and how narrow its intervals are."""

import json
import math

import pytest
from kit_process import invoke as kit
from msgspec.structs import replace
from scripted_launcher import ScriptedLauncher, Watching

from kit.cli.run_and_selftest import begin, parse_request
from kit.compare.clean import CYCLES_LEAST
from kit.profile.store import write_profile
from kit.report.plan_report import foresight, plan_report
from kit.runner.interrupt import StopFlag
from kit.runner.plan_ahead import by_earlier_profiles, is_look, look_ahead, seen_in
from kit.runner.rounds_left import next_round
from kit.runner.time_left import TimeLeft


def cycles_of(profile):
    """How many cycles each round has."""
    launches = profile.cells[0].launches
    return [len(launch.blocks.cycle) for launch in launches]


def seen_of(profile):
    launches = [launch for result in profile.cells for launch in result.launches]
    return seen_in(profile.suite, profile.groups, [result.cell for result in profile.cells], launches)


def search(conducted, **fields):
    return conducted(**{"precision_pct": 1.0, "rounds": 8, "cycles": 6, "backends": ["torch", "jax"]} | fields)


def test_starts_that_differ_get_rounds_of_few_cycles_and_starts_that_do_not_get_many(conducted, tmp_path):
    run = search(conducted)
    few = cycles_of(run.begin(ScriptedLauncher(luck=0.03, noise=0.005, drift=0)))
    assert few[:2] == [6, 6] and few[2] == CYCLES_LEAST == few[-1]
    run.path = tmp_path / "other.json"
    many = cycles_of(run.begin(ScriptedLauncher(luck=0.0, noise=0.04, drift=0, compile_s=20)))
    assert many[:2] == [6, 6] and many[2] > 6


def test_a_run_without_end_by_precision_or_budget_keeps_to_its_plan(conducted):
    run = search(conducted, precision_pct=None, rounds=6)
    assert cycles_of(run.begin(ScriptedLauncher(luck=0.03, noise=0.005, drift=0))) == [6] * 6
    assert run.watching.foreseen == []


def test_a_budget_bounds_what_is_planned_and_makes_no_more_of_it(conducted, tmp_path):
    run = search(conducted, precision_pct=None, rounds=6)
    profile = run.begin(ScriptedLauncher(luck=0.0, noise=0.04, drift=0), budget_s=1e6)
    assert len(cycles_of(profile)) == 6 and max(cycles_of(profile)) <= 6
    run.path = tmp_path / "short.json"
    short = run.begin(ScriptedLauncher(luck=0.03, noise=0.005, drift=0), budget_s=1e-9)
    assert cycles_of(short) == [6], "the first round ends whatever it takes"


def test_it_looks_again_whenever_the_rounds_have_doubled_and_after_a_pause(conducted):
    assert [done for done in range(40) if is_look(done)] == [2, 4, 8, 16, 32]
    run = search(conducted)
    launcher = ScriptedLauncher(luck=0.01, noise=0.02, drift=0, seed=3)
    with pytest.raises(KeyboardInterrupt):
        run.begin(launcher, at_block=lambda count: setattr(run.stop, "requested", count >= 100))
    looks = [rounds for rounds, _ in run.watching.foreseen]
    assert looks == [done for done in (2, 4, 8) if done <= len(run.watching.rounds)]
    run.go_on(ScriptedLauncher(luck=0.01, noise=0.02, drift=0, seed=4), budget_s=1e-9)
    assert [rounds for rounds, _ in run.watching.foreseen] == [0], "of the rounds that it finds"


def test_what_is_foreseen_is_what_rounds_come_to(conducted, tmp_path):
    ratios = []
    for seed in range(12):
        run = search(conducted, precision_pct=None, rounds=16)
        run.path = tmp_path / f"{seed}.json"
        profile = run.begin(ScriptedLauncher(luck=0.015, noise=0.03, drift=0, seed=seed), budget_s=1e6)
        plan, launches = run.plan, [each for result in profile.cells for each in result.launches]
        first = [each for each in launches if each.round < 4]
        _, bundles = next_round(plan, first, 4)
        ahead = look_ahead(plan, bundles, first, [], 1e6)
        assert ahead.rounds == 16
        seen = seen_of(profile)
        assert seen.rounds == 16 and seen.start_s > 0
        (pair,) = seen.groups[plan.groups[0].key].pairs
        ratios.append(ahead.half_widths[0] / math.sqrt(pair.of_round(max(cycles_of(profile)))))
    # Foreseen after four rounds against what all sixteen show of a round, times Student's quantile over the root of 16.
    assert sum(ratios) / len(ratios) == pytest.approx(2.131 / 4, rel=0.25)


def test_the_line_says_rounds_cycles_precision_and_time(conducted):
    run = search(conducted)
    run.begin(ScriptedLauncher(luck=0.03, noise=0.005, drift=0))
    _, ahead = run.watching.foreseen[0]
    line = foresight(ahead)
    assert line.startswith("plan: ") and "3 cycles" in line and "±" in line and "left" in line


def test_a_dry_run_says_what_an_earlier_profile_on_this_hardware_foresees(conducted, tmp_path):
    def foreseen(plan, folder=tmp_path, budget_s=None):
        return by_earlier_profiles(plan, folder, budget_s, lambda: plan.identity.hardware_sha256)

    run = search(conducted, precision_pct=None, rounds=8)
    profile = run.begin(ScriptedLauncher(luck=0.02, noise=0.02, drift=0))
    earlier = foreseen(run.plan)
    assert earlier.path == run.path and earlier.ahead.rounds == 8
    round_s = earlier.ahead.left_s / 8
    bounded = foreseen(run.plan, budget_s=3 * round_s).ahead
    assert bounded.rounds == 3 and bounded.half_widths[0] > earlier.ahead.half_widths[0]
    assert foreseen(run.plan, budget_s=round_s / 2).ahead.half_widths == [], "one round has no interval"
    longer = replace(run.plan, suite=replace(run.plan.suite, rounds=32))
    assert foreseen(longer).ahead.half_widths[0] < 0.7 * earlier.ahead.half_widths[0]
    report = plan_report(run.plan, TimeLeft(run.plan).estimate(), earlier)
    assert report.document["foreseen_by"] == str(run.path)
    assert len(report.document["foreseen_half_widths_pct"]) == 1
    # Another machine's, a run's of other cells or longer blocks, and what is no profile foresee nothing.
    steps = replace(run.plan.suite.plan, block_s=1.0)
    assert foreseen(replace(run.plan, suite=replace(run.plan.suite, plan=steps))) is None
    cells = [*run.plan.cells, replace(run.plan.cells[0], variant="other")]
    assert foreseen(replace(run.plan, cells=cells)) is None
    run.path.unlink()
    other = replace(profile, identity=replace(profile.identity, hardware_sha256="0" * 64))
    write_profile(tmp_path / "other.json", other, {})
    (tmp_path / "broken.json").write_text("{")
    assert foreseen(run.plan) is None
    assert foreseen(run.plan, tmp_path / "none") is None


def test_the_command_finds_the_profile_that_a_run_of_the_same_words_left_in_the_folder(tmp_path):
    (tmp_path / "program.py").write_text("def old(batch, device):\n    return lambda: 0\n\n\nnew = old\n")
    programs = (word for name in ("old", "new") for word in ("--program", str(tmp_path / f"program.py:{name}")))
    words = [*programs, "--out", str(tmp_path / "next.json")]
    running = begin(parse_request(words))
    running.run(Watching(), StopFlag(), start=ScriptedLauncher(luck=0.02, noise=0.02, drift=0).start)
    earlier = (tmp_path / "next.json").rename(tmp_path / "earlier.json")
    dry = json.loads(kit("run", *words, "--dry-run", "--json").stdout)
    assert (dry["foreseen_by"], len(dry["foreseen_half_widths_pct"])) == (str(earlier), 1)
