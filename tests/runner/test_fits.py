"""Fits run alone from their first to their last step, in as many rounds as they are repeated."""

from itertools import groupby

import msgspec
from scripted_launcher import Death, ScriptedLauncher, launches_of

from kit.profile.fields import reason


def test_a_fit_is_not_interrupted_by_others(conducted):
    run = conducted(backends=["torch", "jax"], tasks=["fit"], rounds=2)
    profile = run.begin(ScriptedLauncher(drift=0, epoch_updates=1201))
    blocks = [key for what, key in run.launcher.calls if what == "block"]
    # Stretches of a second and what is left, at 2 ms an update.
    assert [len(list(row)) for _, row in groupby(blocks)] in ([3] * 4, [3, 6, 3])
    for backend in ("torch", "jax"):
        for launch in launches_of(profile, backend, "fit"):
            assert (launch.blocks.cycle, launch.blocks.lead_in) == ([0, 1, 2], [0, 0, 0])
            assert sum(launch.blocks.steps) == 1200, "the first step is the first update"
            assert (launch.fit.updates, len(launch.fit.reference_ns)) == (1201, 4)
            assert (launch.turns, launch.turns_reason) == ("sequential", reason("fit_runs_alone"))


def test_a_fit_is_cut_where_an_epoch_ends_and_after_so_many_updates_as_were_asked_for(conducted):
    run = conducted(backends=["torch"], tasks=["fit"], rounds=1)
    steps = msgspec.structs.replace(run.plan.suite.plan, epochs=3, fit_steps=701)
    run.plan = msgspec.structs.replace(run.plan, suite=msgspec.structs.replace(run.plan.suite, plan=steps))
    (launch,) = launches_of(run.begin(ScriptedLauncher(drift=0, epoch_updates=300)), "torch", "fit")
    assert launch.blocks.steps == [299, 300, 101]
    assert (launch.fit.epochs, launch.fit.updates, launch.fit.is_part) == (3, 701, True)


def test_a_fit_of_one_update_is_refused_as_its_first_step_is_never_timed(conducted):
    run = conducted(backends=["torch"], tasks=["train", "fit"], share=["task"], rounds=1)
    profile = run.begin(ScriptedLauncher(epoch_updates=1))
    (failed,) = launches_of(profile, "torch", "fit")
    assert "one update" in failed.failure.reason.values["message"]
    assert launches_of(profile, "torch")[0].failure is None


def test_fits_are_repeated_in_the_first_rounds_and_steps_keep_their_data(conducted):
    run = conducted(backends=["torch"], tasks=["train", "fit"], share=["task"], rounds=4, fit_rounds=2)
    profile = run.begin()
    assert [launch.round for launch in launches_of(profile, "torch", "fit")] == [0, 1]
    assert [launch.round for launch in launches_of(profile, "torch", "train")] == [0, 1, 2, 3]
    started = [(spec.seed, spec.fit_number, len(spec.cells)) for spec in run.launcher.specs]
    assert started == [(0, 0, 2), (0, 1, 2), (0, 2, 1), (0, 3, 1)]
    assert not profile.interrupted


def test_a_fit_that_fails_leaves_the_steps_of_its_process(conducted):
    run = conducted(backends=["torch"], tasks=["train", "fit"], share=["task"], rounds=2)
    # Four blocks of training come first.
    profile = run.begin(ScriptedLauncher(deaths=[Death("torch", "block", nth=5, alone=True)]))
    (failed,) = launches_of(profile, "torch", "fit")
    assert len(failed.blocks.cycle) == 1
    assert failed.failure is not None
    assert [launch.failure for launch in launches_of(profile, "torch", "train")] == [None, None]


def test_a_cell_that_two_parts_of_a_sweep_share_is_built_once(conducted):
    run = conducted(backends=["torch"], batches=[1, 2, 3, 4, 5, 6], compare=["batch"], share=["batch"], rounds=1)
    profile = run.begin()
    built, concluded = ([key for what, key in run.launcher.calls if what == verb] for verb in ("build", "conclude"))
    assert sorted(built) == sorted(concluded) == sorted({cell.key for cell in profile.cells})
    # A part's cells are given back before the next part's are built, all but the one that both have.
    order = [(what, key) for what, key in run.launcher.calls if what in ("build", "conclude")]
    assert [what for what, _ in order] == ["build"] * 4 + ["conclude"] * 3 + ["build"] * 2 + ["conclude"] * 3
    assert len({launch.process for cell in profile.cells for launch in cell.launches}) == 1
