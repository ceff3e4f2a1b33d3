"""How many rounds a run has: a number, until differences are precise, until time is up; and resumed from anywhere."""

import os
import signal

import numpy as np
import pytest
from profile_builder import S
from scripted_launcher import Death, ScriptedLauncher

from kit.compare.runs import run_of
from kit.compare.table import times_ns
from kit.errors import KitError
from kit.profile.fields import reason
from kit.profile.store import read_profile, read_steps
from kit.profile.unfinished import folder_of
from kit.runner import rounds_left
from kit.runner.interrupt import StopFlag


def rounds_of(profile):
    return {cell.key: [launch.round for launch in cell.launches] for cell in profile.cells}


def launches_by_name(profile):
    return {(cell.key, launch.round): launch for cell in profile.cells for launch in cell.launches}


def log_ratios(profile, a, b):
    by_backend = {cell.cell.backend: cell.launches for cell in profile.cells}

    pairs = zip(by_backend[a], by_backend[b], strict=True)
    times = [[times_ns(launch.blocks) for launch in pair] for pair in pairs]
    return [float(np.median(np.log(np.divide(mine, yours)))) for mine, yours in times]


def test_the_profile_on_disk_is_the_one_returned_with_every_step(conducted):
    run = conducted(rounds=3)
    profile = run.begin()
    assert read_profile(run.path) == profile
    steps = read_steps(run.path, profile)
    assert len(steps) == 9
    for launch in [launch for result in profile.cells for launch in result.launches]:
        timed = sum(launch.blocks.lead_in) + sum(launch.blocks.steps)
        (name,) = [name for name in steps if name.startswith(f"r{launch.round} {launch.cell_key} ")]
        assert len(steps[name]) == 1 + launch.warmup_steps + timed
    assert not folder_of(run.path).exists()
    assert run.watching.rounds == [(0, 3), (1, 3), (2, 3)]


def test_a_worker_that_cannot_be_started_costs_no_round_that_is_done(conducted):
    class Refusing(ScriptedLauncher):
        def start(self, spec, stop):
            if len(self.specs) == 4:
                raise KitError("no engine answers; start it")
            return super().start(spec, stop)

    run = conducted(rounds=3)
    with pytest.raises(KitError, match="no engine answers; start it, then resume with `kit run --resume"):
        run.begin(Refusing())
    assert {len(result.launches) for result in read_profile(run.path).cells} == {1}
    assert {len(result.launches) for result in run.go_on().cells} == {3}


@pytest.mark.parametrize(("deaths", "rounds"), [([], {8}), ([Death("jax", "block", start=2)], {8, 3})])
def test_a_search_ends_at_its_first_look_and_does_not_wait_for_a_cell_that_failed(conducted, deaths, rounds):
    narrow = conducted(precision_pct=1.0, rounds=8, backends=["torch", "jax"])
    profile = narrow.begin(ScriptedLauncher(noise=0.001, drift=0, deaths=deaths))
    assert {len(kept) for kept in rounds_of(profile).values()} == rounds


def test_a_search_goes_on_while_differences_are_wide_and_then_stops(conducted):
    wide = conducted(precision_pct=1.0, rounds=8, backends=["torch", "jax"], cycles=2)
    profile = wide.begin(ScriptedLauncher(luck=0.01, drift=0, seed=5))
    (count,) = {len(rounds) for rounds in rounds_of(profile).values()}
    assert count > 8
    logs = np.array(log_ratios(profile, "torch", "jax"))
    # Half the interval, by the normal quantile, within a tenth: the search ended as soon as it was narrow.
    half = 1.96 * logs.std(ddof=1) / np.sqrt(count)
    assert half == pytest.approx(np.log(1.01), rel=0.2)


def test_a_group_that_is_precise_gets_no_more_rounds(conducted):
    run = conducted(precision_pct=1.0, rounds=8, tasks=["train", "infer"], backends=["torch", "jax"], cycles=2)

    class Uneven(ScriptedLauncher):
        def start(self, spec, stop):
            self.luck = 0.02 if spec.cells[0].task == "train" else 0.0001
            return super().start(spec, stop)

    rounds = {key.split("/")[3]: len(kept) for key, kept in rounds_of(run.begin(Uneven(noise=0.001, drift=0))).items()}
    assert rounds["infer"] == 8
    assert rounds["train"] > 8


def test_a_lone_cell_is_measured_until_its_step_is_precise(conducted):
    run = conducted(precision_pct=2.0, rounds=8, backends=["torch"], cycles=2)
    (rounds,) = rounds_of(run.begin(ScriptedLauncher(luck=0.05, drift=0))).values()
    assert 8 < len(rounds) < 40


def test_past_the_budget_no_round_begins_and_the_run_can_go_on(conducted):
    run = conducted(rounds=3)
    profile = run.begin(budget_s=1e-9)
    assert profile.interrupted
    assert set(map(tuple, rounds_of(profile).values())) == {(0,)}
    profile = run.go_on(budget_s=60)
    assert not profile.interrupted
    assert set(map(tuple, rounds_of(profile).values())) == {(0, 1, 2)}


def test_a_search_whose_budget_ends_after_its_first_look_is_whole(conducted):
    run = conducted(precision_pct=0.01, rounds=8, backends=["torch", "jax"], cycles=1)
    for finished in range(1, 8):
        assert (run.go_on if finished > 1 else run.begin)(budget_s=1e-9).interrupted
    assert not run.go_on(budget_s=1e-9).interrupted and run.run.ended_by_budget
    assert not folder_of(run.path).exists()


@pytest.mark.parametrize("block", range(1, 36, 5))
def test_a_run_interrupted_anywhere_ends_with_the_same_cells_and_rounds(conducted, block):
    run = conducted(rounds=3, tasks=["train", "infer"], backends=["torch", "jax"], cycles=3)
    with pytest.raises(KeyboardInterrupt):
        run.begin(at_block=run.interrupt_at(block))
    assert run.launcher.alive == []
    interrupted = read_profile(run.path)
    assert interrupted.interrupted
    # A round of a group has 6 blocks; each is on disk before the next begins.
    before = launches_by_name(interrupted)
    assert len(before) == (block - 1) // 6 * 2
    profile = run.go_on()
    assert not profile.interrupted
    assert profile.id == interrupted.id
    assert set(map(tuple, rounds_of(profile).values())) == {(0, 1, 2)}
    after = launches_by_name(profile)
    assert all(after[name] == launch for name, launch in before.items()), "what had finished is not measured anew"
    assert run.watching.blocks == 36 - 3 * len(before)


@pytest.mark.parametrize("lost", [lambda file: file.unlink(), lambda file: file.write_bytes(file.read_bytes()[:99])])
def test_a_round_with_a_torn_launch_is_measured_again_as_a_whole(conducted, lost):
    run = conducted(rounds=4, cycles=1)
    with pytest.raises(KeyboardInterrupt):
        run.begin(at_block=run.interrupt_at(10))
    victim = sorted(folder_of(run.path).glob("r0001-*"))[0]
    lost(victim)
    before = launches_by_name(read_profile(run.path))
    profile = run.go_on()
    assert set(map(tuple, rounds_of(profile).values())) == {(0, 1, 2, 3)}
    anew = {name[1] for name, launch in launches_by_name(profile).items() if before.get(name) != launch}
    # All workers of the torn round anew, as they are paired; no other that was whole.
    assert anew == {1, 3}
    assert len(read_steps(run.path, profile)) == 12


def test_a_cell_that_failed_before_the_interrupt_is_not_tried_again(conducted):
    run = conducted(rounds=3, cycles=1)
    with pytest.raises(KeyboardInterrupt):
        run.begin(ScriptedLauncher(deaths=[Death("torch", "prepare")]), at_block=run.interrupt_at(3))
    profile = run.go_on()
    assert {key.split("/")[1]: rounds for key, rounds in rounds_of(profile).items()} == {
        "torch": [0],
        "tensorflow": [0, 1, 2],
        "jax": [0, 1, 2],
    }
    assert run.launcher.starts["torch", "default"] == 0


def test_a_launch_that_is_lost_with_a_host_is_made_again_by_a_resumed_run(conducted):
    run, gone = conducted(rounds=3, cycles=1), reason("closed_its_pipes", rank=1, host="n2")
    profile = run.begin(ScriptedLauncher(deaths=[Death("torch", "block", start=1, why=gone)]))
    assert profile.interrupted, "its folder is kept"
    failed = {name[1] for name, launch in launches_by_name(profile).items() if launch.failure is not None}
    assert (failed, set(map(tuple, rounds_of(profile).values()))) == ({1}, {(0, 1, 2)}), "later rounds try it again"
    profile = run.go_on()
    assert not profile.interrupted
    assert [launch.failure for launch in launches_by_name(profile).values()] == [None] * 9


@pytest.mark.parametrize(
    "raised",
    [
        reason("exception", type="ValueError", message="no", rank=1, host="n2"),
        reason("signal", signal="SIGSEGV", rank=1, host="n2"),
        reason("signal", signal="SIGKILL", rank=1),
    ],
    ids=["raises", "crashes", "ends on the first host"],
)
def test_what_a_rank_itself_fails_with_is_the_cells_own_failure(conducted, raised):
    profile = conducted(rounds=3, cycles=1).begin(ScriptedLauncher(deaths=[Death("torch", "block", why=raised)]))
    assert not profile.interrupted
    assert sorted(map(len, rounds_of(profile).values())) == [1, 3, 3]


def clean_of(profile):
    """Per round, how many cycles ran, and how many are clean."""
    (rounds,) = run_of("p", profile).rounds.by_group.values()
    return {number: (of_round.ran, of_round.clean) for number, of_round in rounds.items()}


def beside(*busy, **fields):
    """Workers beside a neighbour that uses a CPU from the first to the second number of seconds of each pair."""
    return ScriptedLauncher(others=lambda at_s: float(any(low <= at_s < high for low, high in busy)), **fields)


def test_disturbed_cycles_are_measured_again_in_their_round(conducted):
    # Two starts and warm-ups: turns begin at 4 s; two cells of 0.25 s make a cycle of half a second.
    run = conducted(rounds=1, backends=["torch", "jax"], cycles=4)
    profile = run.begin(beside((5.0, 5.5), (6.0, 6.7)))
    (ran, clean) = clean_of(profile)[0]
    assert clean == 4
    assert ran in (6, 7)
    assert run.watching.cycles[-1][:2] == (4, 4)
    assert sum(others is not None for _, _, others in run.watching.cycles) == ran - 4
    assert {tuple(launch.blocks.cycle) for cell in profile.cells for launch in cell.launches} == {tuple(range(ran))}


def test_a_round_without_enough_clean_cycles_is_measured_again_at_the_end(conducted):
    run = conducted(rounds=3, backends=["torch", "jax"], cycles=4)
    # From before the first turn until after the last one that the first round may have.
    profile = run.begin(beside((0.0, 9.0)))
    rounds = clean_of(profile)
    assert rounds[0][0] == 8, "twice the plan at most"
    assert rounds[0][1] < 3
    assert sorted(rounds) == [0, 1, 2, 3]
    assert all(rounds[number] == (4, 4) for number in (1, 2, 3))
    assert [repeats.rounds for repeats in run.watching.repeats[1:]] == [1, 1, 0]
    assert not profile.interrupted
    assert not folder_of(run.path).exists()


@pytest.mark.parametrize(("budget_s", "rounds"), [(None, 5), (60, 8)])
def test_at_most_half_as_many_rounds_are_measured_again_or_as_a_budget_allows(conducted, budget_s, rounds):
    run = conducted(rounds=3, backends=["torch"], cycles=4)

    class EarlyNeighbour(ScriptedLauncher):
        """Takes a CPU in the first five processes' rounds, but for one clean cycle in each."""

        def start(self, spec, stop):
            begin_s, number = self.now_ns / S, sum(self.starts.values())
            self.others = lambda at_s: float(number < 5 and not begin_s + 2.2 <= at_s < begin_s + 2.5)
            return super().start(spec, stop)

    profile = run.begin(EarlyNeighbour(drift=0), budget_s=budget_s)
    assert len(clean_of(profile)) == rounds
    assert not profile.interrupted


def test_beside_a_neighbour_that_never_stops_a_run_ends_with_what_it_has(conducted):
    run = conducted(rounds=3, backends=["torch", "jax"], cycles=4)
    profile = run.begin(beside((0.0, 1e9)))
    assert clean_of(profile) == {0: (8, 0), 1: (4, 0), 2: (4, 0)}, "what never came once is not waited for again"
    assert not profile.interrupted
    assert profile.cells[0].p50_ns is not None


def test_a_search_for_a_precision_counts_only_rounds_that_count(conducted):
    run = conducted(precision_pct=1.0, rounds=8, backends=["torch", "jax"], cycles=4)
    profile = run.begin(beside((0.0, 9.0), noise=0.001, drift=0))
    assert sorted(clean_of(profile)) == list(range(9))


def test_percentiles_are_of_the_cycles_that_count(conducted):
    run = conducted(rounds=2, backends=["torch"], cycles=4)

    class Slowed(ScriptedLauncher):
        def machine(self):
            return 10.0 if self.others(self.now_ns / S) else 1.0

    profile = run.begin(Slowed(noise=0, others=lambda at_s: float(3.2 <= at_s < 3.7)))
    (cell,) = profile.cells
    assert (cell.p50_ns, cell.p95_ns) == (2_000_000, 2_000_000)
    median_of_all_ns, p95_of_all_ns, _ = cell.all_cycles_ns
    assert (median_of_all_ns, p95_of_all_ns) == (2_000_000, 20_000_000)


def test_a_neighbour_that_always_takes_a_little_is_seen_while_the_run_goes_on(conducted):
    run = conducted(rounds=1, backends=["torch"], cycles=4)
    # 8 % of two CPUs: in no block more than a tenth.
    profile = run.begin(ScriptedLauncher(others=lambda at_s: 0.16))
    assert clean_of(profile) == {0: (8, 0)}
    assert all(others is not None for _, _, others in run.watching.cycles[4:])


def test_a_budget_ends_no_run_of_many_rounds_before_its_time(conducted, monkeypatch):
    monkeypatch.setattr(rounds_left, "ROUNDS_MAX", 3)
    run = conducted(rounds=5, backends=["torch"], cycles=1)
    assert sorted(clean_of(run.begin(budget_s=60))) == [0, 1, 2, 3, 4]


def test_a_round_whose_launches_were_lost_is_not_measured_again_for_others(conducted):
    shared = [Death("torch", "block", start=1, nth=0)]
    run = conducted(rounds=3, backends=["torch"], tasks=["train", "infer"], share=["task"], cycles=4)
    profile = run.begin(ScriptedLauncher(deaths=shared))
    assert {launch.round for cell in profile.cells for launch in cell.launches} == {0, 1, 2}


def test_a_hang_up_that_nohup_has_a_process_ignore_ends_no_run():
    before, stop = signal.signal(signal.SIGHUP, signal.SIG_IGN), StopFlag()
    with stop.deferring_interrupts():
        os.kill(os.getpid(), signal.SIGHUP)
    signal.signal(signal.SIGHUP, before)
    assert not stop.requested
