"""How long a run still takes, told by workers whose clock is scripted: against what it then took."""

import re

import pytest
from profile_builder import S, sensor
from scripted_launcher import NO_DEVICE_MEMORY, Death, ScriptedLauncher, Watching

from kit.runner import progress
from kit.runner import round as round_module
from kit.runner.interrupt import StopFlag
from kit.runner.progress import RunProgress
from kit.runner.rounds_left import RepeatsToCome
from kit.runner.running import RunUnderWay
from kit.runner.time_left import TimeLeft
from kit.suites.groups import plan_bundles

ENERGY = sensor("rapl.package-0", "energy", "J", update_period_ns=10**6)


class Timed(Watching):
    """Notes after each event how much was left, and the time of it."""

    def __init__(self, plan, launcher):
        super().__init__()
        self.launcher, self.time = launcher, TimeLeft(plan, now=lambda: launcher.now_ns)
        self.notes = [self.note()]
        self.at_round = []

    def note(self):
        return self.launcher.now_ns, self.time.estimate()

    def round_begins(self, number, shared):
        self.time.round_begins(number, shared)
        self.at_round.append(len(self.notes))

    def begins_anew(self, lost_ns):
        self.time.begins_anew(lost_ns)

    def starting(self, worker):
        self.time.starting(worker)
        self.notes.append(self.note())

    def warming_up(self, cell, step_s):
        self.time.warming_up(cell, step_s)
        self.notes.append(self.note())

    def block_done(self, cell, blocks, left):
        self.time.block_done(cell, blocks, left)
        self.notes.append(self.note())

    def cycle_done(self, clean, planned, others, *, is_repeated):
        super().cycle_done(clean, planned, others, is_repeated=is_repeated)
        self.time.cycle_done(clean, planned)
        self.notes.append(self.note())

    def round_done(self, number, launches, repeats):
        self.time.round_done(repeats)
        self.notes.append(self.note())


def timed(conducted, launcher=None, **fields):
    run, launcher = conducted(**fields), launcher or ScriptedLauncher()
    watching = Timed(run.plan, launcher)
    RunUnderWay.begin(run.path, run.plan).run(watching, StopFlag(), start=launcher.start)
    return watching, launcher.now_ns


def test_after_the_first_round_it_is_what_the_rounds_took(conducted):
    watching, end_ns = timed(conducted, backends=["torch", "jax"], rounds=4)
    # Scripted starts take a second, not the five of a real one: the constants say too much.
    begin_ns, before = watching.notes[0]
    assert before.seconds > 1.3 * (end_ns - begin_ns) / S
    for at_ns, left in watching.notes[watching.at_round[1] :]:
        assert left.seconds == pytest.approx((end_ns - at_ns) / S, abs=2.5)
    assert watching.notes[-1][1].seconds == 0
    assert not before.is_least


LONG_STEPS = [
    ({"torch": 6000.0}, {}),
    ({"torch": 900.0, "jax": 2000.0}, {"backends": ["torch", "jax"]}),
    ({"torch": 6000.0}, {"tasks": ["train", "infer"], "cycles": 2}),
]


@pytest.mark.parametrize(("step_ms", "fields"), LONG_STEPS)
def test_steps_of_seconds_are_known_from_the_first_ones(conducted, step_ms, fields):
    launcher = ScriptedLauncher(step_ms=step_ms, drift=0.0)
    watching, end_ns = timed(conducted, launcher, **({"backends": ["torch"], "rounds": 2} | fields))
    (before_ns, before), rest = watching.notes[0], watching.notes[: watching.at_round[1]]
    assert before.seconds < (end_ns - before_ns) / S / 5
    known = [left.seconds for _, left in rest]
    assert max(known) > 5 * before.seconds
    # In its last cycle every cell has made blocks.
    for at_ns, left in rest[-4:]:
        assert left.seconds == pytest.approx((end_ns - at_ns) / S, rel=0.3)


@pytest.mark.parametrize(("step_ms", "fields"), LONG_STEPS)
def test_a_run_says_so_before_its_first_block_where_it_takes_longer_than_announced(conducted, capsys, step_ms, fields):
    run, printed = conducted(**({"backends": ["torch"], "rounds": 2} | fields)), []
    with RunProgress(run.plan) as watching:
        block_done = watching.block_done

        def at_block(*block):
            printed.append(capsys.readouterr().err)
            block_done(*block)

        watching.block_done = at_block
        launcher = ScriptedLauncher(step_ms=step_ms, drift=0.0)
        RunUnderWay.begin(run.path, run.plan).run(watching, StopFlag(), start=launcher.start)
    assert re.search(r"^this takes longer than announced: about \d+ (seconds|minutes) left$", printed[0], re.MULTILINE)
    assert all("longer than announced" not in lines for lines in printed[4:]), "not again and again"


def test_what_is_announced_is_not_said_again_where_it_holds(conducted, capsys):
    run = conducted(backends=["torch", "jax"], rounds=2)
    with RunProgress(run.plan) as watching:
        RunUnderWay.begin(run.path, run.plan).run(watching, StopFlag(), start=ScriptedLauncher().start)
    assert "longer than announced" not in capsys.readouterr().err


def test_a_neighbor_that_makes_cycles_repeat_is_known_from_the_first_of_them(conducted):
    launcher = ScriptedLauncher(others=comes_and_goes, drift=0.0)
    watching, end_ns = timed(conducted, launcher, backends=["torch", "jax"], rounds=1, cycles=40)
    ran = len(watching.cycles)
    assert 1.4 * 40 < ran < 2 * 40
    (begin_ns, before), (at_ns, left) = watching.notes[0], watching.notes[len(watching.notes) // 2]
    taken_s = (end_ns - begin_ns) / S
    assert (at_ns - begin_ns) / S + left.seconds == pytest.approx(taken_s, rel=0.35)
    assert left.seconds > before.seconds / 2


@pytest.mark.parametrize(("noise", "precision_pct"), [(0.05, 1.5), (0.1, 2.0)])
def test_a_search_for_a_precision_foresees_its_rounds(conducted, noise, precision_pct):
    launcher = ScriptedLauncher(luck=noise, drift=0.0)
    watching, end_ns = timed(
        conducted, launcher, backends=["torch", "jax"], rounds=8, precision_pct=precision_pct, cycles=2
    )
    rounds = len(watching.at_round)
    assert rounds > 24, "eight are the first look"
    for number in (8, rounds // 2, rounds - 8):
        at_ns, left = watching.notes[watching.at_round[number]]
        assert left.is_least
        assert 0.4 < left.seconds / ((end_ns - at_ns) / S) < 2.5


def test_a_budget_bounds_what_is_said_to_be_left(conducted):
    run, now_ns = conducted(backends=["torch"], rounds=8, precision_pct=0.1), 0
    time = TimeLeft(run.plan, budget_s=100.0, now=lambda: now_ns)
    shared = plan_bundles(run.plan.cells, run.plan.groups, run.plan.suite.process_axes)
    for number in range(2):
        time.round_begins(number, shared)
        now_ns += 15 * S
        time.round_done(RepeatsToCome(rounds=150))
    # Of the budget 70 s are left: five rounds begin in them, and the last is finished.
    assert time.estimate().seconds == pytest.approx(5 * 15)
    assert not time.estimate().is_least


def test_before_a_run_a_budget_bounds_its_rounds_with_their_fits(conducted):
    run = conducted(backends=["torch"], tasks=["train", "fit"], rounds=8)
    round_s = TimeLeft(run.plan).estimate().seconds / 8
    for budget, rounds in ((0.1, 1), (2.5, 3), (20, 8)):
        bounded = TimeLeft(run.plan, budget_s=budget * round_s, now=lambda: 0).estimate()
        assert bounded.seconds == pytest.approx(rounds * round_s)


def stays(at_s):
    return 1.0


def comes_and_goes(at_s):
    return 1.0 if at_s % 2 < 0.5 else 0.0


# The round beside a neighbour that stays is the only one that repeats; the other neighbour disturbs every round.
@pytest.mark.parametrize("others", [stays, comes_and_goes])
def test_later_rounds_repeat_cycles_as_the_first_unless_its_neighbour_stays(conducted, others):
    watching, end_ns = timed(conducted, ScriptedLauncher(others=others), backends=["torch", "jax"], rounds=4, cycles=24)
    at_ns, left = watching.notes[watching.at_round[1]]
    assert left.seconds == pytest.approx((end_ns - at_ns) / S, rel=0.05)


def test_later_rounds_do_not_try_again_what_did_not_fit_in_the_first(conducted, monkeypatch):
    # In its last cycle a worker has no memory on the board beside the others: the round begins anew.
    full = Death("jax", "block", nth=19, why=NO_DEVICE_MEMORY, alone=True)
    launcher = ScriptedLauncher(deaths=[full])
    monkeypatch.setattr(round_module, "now_ns", lambda: launcher.now_ns)
    watching, end_ns = timed(conducted, launcher, devices=["gpu"], backends=["torch", "jax"], rounds=4, cycles=20)
    at_ns, left = watching.notes[watching.at_round[1]]
    assert left.seconds == pytest.approx((end_ns - at_ns) / S, rel=0.05)


def test_a_fit_is_known_once_its_first_stretch_has_run(conducted):
    watching, end_ns = timed(conducted, backends=["torch"], tasks=["train", "fit"], rounds=3, fit_rounds=1)
    assert watching.notes[0][1].is_least
    at_ns, last = watching.notes[watching.at_round[1]]
    assert not last.is_least
    assert last.seconds == pytest.approx((end_ns - at_ns) / S, abs=2.5)


def test_what_goes_on_counts_the_rounds_that_are_left(conducted):
    run = conducted(backends=["torch"], rounds=4)
    whole, rest = (TimeLeft(run.plan, done).estimate().seconds for done in (0, 3))
    assert rest == pytest.approx(whole / 4)


# Two starts, two compilations and eight blocks a round; of the first it is not known how long the rest takes.
@pytest.mark.parametrize(("every_s", "lines"), [(0.0, 12), (1e9, 0)])
def test_off_a_terminal_there_is_a_line_when_half_a_minute_is_over(conducted, monkeypatch, capsys, every_s, lines):
    monkeypatch.setattr(progress, "LINE_EVERY_S", every_s)
    run = conducted(backends=["torch", "jax"], rounds=2)
    with RunProgress(run.plan) as watching:
        RunUnderWay.begin(run.path, run.plan).run(watching, StopFlag(), start=ScriptedLauncher().start)
    first, *others = capsys.readouterr().err.splitlines()
    assert "2 cells in 1 group, 2 rounds of 4 cycles, about" in first
    timed = [line for line in others if line.endswith(" left")]
    assert len(timed) == lines
    assert all(line.startswith("round 2 of 2") and "mlp train" in line for line in timed)
    shown = [line for line in others if "mlp train" in line]
    assert len(shown) == 2 * lines
    assert sum("building" in line for line in shown) == lines // 3
    assert len(others) - len(shown) == 2


def test_beside_a_neighbour_lines_say_what_is_repeated_and_rounds_what_was_left_out(conducted, capsys):
    run = conducted(backends=["torch", "jax"], rounds=1)
    launcher = ScriptedLauncher(others=comes_and_goes)
    with RunProgress(run.plan) as watching:
        RunUnderWay.begin(run.path, run.plan).run(watching, StopFlag(), start=launcher.start)
    lines = capsys.readouterr().err
    assert "other programs use 50 % of the CPUs: cycle repeated (" in lines
    assert "of 4 clean)" in lines
    disturbed, ran = re.search(r"(\d) of (\d) cycles disturbed", lines).groups()
    assert int(disturbed) == int(ran) - 4 > 0


@pytest.mark.parametrize(("energy_rounds", "blocks_s"), [("all", 4 * (2 * 10.4 + 6)), ("last", 2 * 10.4 + 6)])
def test_long_blocks_and_idle_are_known_beforehand_and_take_as_long_anywhere(conducted, energy_rounds, blocks_s):
    fields = {"backends": ["torch", "jax"], "rounds": 4, "sensors": [ENERGY], "energy_rounds": energy_rounds}
    without, with_joules = (conducted(**fields, energy_s=seconds).plan for seconds in (0.0, 10.4))
    more_s = TimeLeft(with_joules).estimate().seconds - TimeLeft(without).estimate().seconds
    assert more_s == pytest.approx(blocks_s)
    now_ns = 0
    time = TimeLeft(with_joules, now=lambda: now_ns)
    shared = plan_bundles(with_joules.cells, with_joules.groups, with_joules.suite.process_axes)
    for number in range(2):
        time.round_begins(number, shared)
        now_ns += (5 + (2 * 10.4 + 6) * (energy_rounds == "all")) * S
        time.round_done(RepeatsToCome())
    # Two rounds, each of 5 s and what its joules take.
    assert time.estimate().seconds == pytest.approx(2 * 5 + blocks_s * (2 / 4 if energy_rounds == "all" else 1))
