"""A worker that dies fails its launch with its reason, and nobody else's."""

import pytest
from scripted_launcher import DIED, Death, ScriptedLauncher, launches_of

from kit.runner.round_worker import SHARED_PROCESS_ENDED


@pytest.mark.parametrize(
    ("death", "blocks", "phase"),
    [
        (Death("torch", "prepare", start=1), 0, "import"),
        (Death("torch", "load", start=1, alone=True), 0, "data"),
        (Death("torch", "build", start=1), 0, "build"),
        (Death("torch", "first_step", start=1, alone=True), 0, "first_step"),
        (Death("torch", "warm_up", start=1, nth=3, alone=True), 0, "warmup"),
        (Death("torch", "block", start=1, nth=2), 2, "steady"),
        (Death("torch", "block", start=1, nth=2, alone=True), 2, "steady"),
        # After preparing, building, the warm-up and two blocks.
        (Death("torch", "stop", start=1, nth=5), 2, "steady"),
        (Death("torch", "conclude", start=1, alone=True), 4, "parity"),
        (Death("torch", "finish", start=1), 4, "finish"),
    ],
)
def test_it_keeps_what_it_had_and_the_others_go_on(conducted, death, blocks, phase):
    run = conducted(rounds=3)
    profile = run.begin(ScriptedLauncher(deaths=[death]))
    first, failed = launches_of(profile, "torch")
    assert first.failure is None
    assert failed.round == 1
    assert (failed.failure.reason, failed.failure.phase, failed.failure.stderr_tail) == (DIED, phase, "last words")
    assert len(failed.blocks.median_ns) == blocks
    # It gets no more launches; the others are whole.
    assert run.launcher.starts["torch", "default"] == 2
    for other in ("tensorflow", "jax"):
        assert [launch.failure for launch in launches_of(profile, other)] == [None] * 3
        assert [len(launch.blocks.cycle) for launch in launches_of(profile, other)] == [4] * 3
    assert [launch.cell_key for launch in run.run.failed] == [failed.cell_key]
    assert run.launcher.alive == []


def test_a_run_whose_every_cell_fails_ends(conducted):
    run = conducted(rounds=3)
    deaths = [Death(backend, "prepare") for backend in ("tensorflow", "torch", "jax")]
    profile = run.begin(ScriptedLauncher(deaths=deaths))
    assert [[launch.failure.reason for launch in cell.launches] for cell in profile.cells] == [[DIED]] * 3
    assert not profile.interrupted
    assert len(run.run.failed) == 3


SHARED = {"tasks": ["train", "infer"], "share": ["task"], "rounds": 3}


def test_in_a_shared_process_the_cell_at_fault_fails_and_the_other_gets_its_own(conducted):
    run = conducted(**SHARED)
    # In the second block of the first of the two groups, training.
    profile = run.begin(ScriptedLauncher(deaths=[Death("jax", "block", nth=1)]))
    (failed,) = launches_of(profile, "jax", "train")
    assert failed.failure.reason == DIED
    innocent = launches_of(profile, "jax", "infer")
    assert [launch.failure and launch.failure.reason.code for launch in innocent] == [SHARED_PROCESS_ENDED, None, None]
    assert innocent[0].failure.reason.values == {"cell": failed.cell_key}
    alone = [spec for spec in run.launcher.specs if spec.prepare.backend == "jax"][1:]
    assert [[cell.task for cell in spec.cells] for spec in alone] == [["infer"]] * 2
    assert [launch.cell_key for launch in run.run.failed] == [failed.cell_key]
    for task in ("train", "infer"):
        assert [launch.failure for launch in launches_of(profile, "torch", task)] == [None] * 3


def test_a_program_that_fails_leaves_the_others_of_its_process_whole(conducted):
    run = conducted(**SHARED)
    profile = run.begin(ScriptedLauncher(deaths=[Death("jax", "block", nth=1, alone=True)]))
    (failed,) = launches_of(profile, "jax", "train")
    assert (failed.failure.reason, len(failed.blocks.cycle)) == (DIED, 1)
    assert [launch.failure for launch in launches_of(profile, "jax", "infer")] == [None] * 3


def test_what_a_shared_process_had_finished_stands(conducted):
    run = conducted(**SHARED)
    # Training has its four blocks; then the process dies in inference.
    profile = run.begin(ScriptedLauncher(deaths=[Death("jax", "block", nth=5)]))
    trained = launches_of(profile, "jax", "train")
    assert [launch.failure for launch in trained] == [None] * 3
    assert len(trained[0].blocks.cycle) == 4
    assert [mark.code for mark in trained[0].notes] == ["process_ended_early"]
    (failed,) = launches_of(profile, "jax", "infer")
    assert failed.failure.reason == DIED


def test_a_cell_whose_first_round_was_lost_with_its_process_proves_itself_in_the_next(conducted):
    run = conducted(**SHARED)
    profile = run.begin(ScriptedLauncher(deaths=[Death("jax", "block", nth=1)]))
    for backend, proving in (("jax", [1]), ("torch", [0])):
        launches = launches_of(profile, backend, "infer")
        assert [of.round for of in launches if any(phase.name == "parity" for phase in of.phases)] == proving


def test_a_cell_that_crashes_while_it_concludes_is_blamed_itself(conducted):
    # Two groups, each with the first batch as its baseline; with this seed it runs the last block of the first group.
    batches = [8, 16, 32, 64, 128]
    run = conducted(backends=["torch"], batches=batches, share=["batch"], compare=["batch"], cycles=1, seed=2)
    crash = Death("torch", "conclude")
    launches = {cell.cell.batch: cell.launches for cell in run.begin(ScriptedLauncher(deaths=[crash])).cells}
    concluded = next(key for verb, key in run.launcher.calls if verb == "conclude")
    assert "b16" in concluded
    assert [launch.cell_key for launch in run.run.failed] == [concluded]
    assert {batch: len({launch.round for launch in of}) for batch, of in launches.items()} == {
        8: 3, 16: 1, 32: 3, 64: 3, 128: 3
    }  # fmt: skip


def test_a_process_that_dies_of_no_cell_in_particular_fails_all_of_its_cells(conducted):
    run = conducted(**SHARED)
    profile = run.begin(ScriptedLauncher(deaths=[Death("jax", "prepare")]))
    for task in ("train", "infer"):
        (failed,) = launches_of(profile, "jax", task)
        assert failed.failure.reason == DIED
