"""A round: who starts, who is awake, whose turn it is. The scripted launcher refuses two workers awake at once."""

from collections import Counter

import pytest
from scripted_launcher import ScriptedLauncher

from kit.profile.cell import Variant


def turns_of(launcher, backends):
    """Order of the blocks of each cycle, as letters."""
    blocks = [key.split("/")[1] for what, key in launcher.calls if what == "block"]
    return [tuple(blocks[at : at + len(backends)]) for at in range(0, len(blocks), len(backends))]


BACKENDS = ["jax", "tensorflow", "torch"]


def test_every_cycle_has_every_worker_once_in_an_order_of_its_own(conducted):
    run = conducted(cycles=12, rounds=4)
    run.begin()
    turns = turns_of(run.launcher, BACKENDS)
    assert len(turns) == 4 * 12
    assert all(sorted(cycle) == BACKENDS for cycle in turns)
    # Of six orders each comes up in 48 cycles; which worker is first leaves no pattern.
    assert len(set(turns)) == 6
    assert min(Counter(cycle[0] for cycle in turns).values()) >= 8


def test_workers_start_in_random_order_and_each_is_warm_before_any_block(conducted):
    run = conducted(cycles=2, rounds=12)
    run.begin()
    starts = [spec.prepare.backend for spec in run.launcher.specs]
    assert len({tuple(starts[at : at + 3]) for at in range(0, 36, 3)}) > 2
    what = [what for what, _ in run.launcher.calls]
    assert what[:15] == ["prepare", "build"] * 3 + ["warm_up"] * 3 + ["block"] * 6
    assert what[15:21] == ["conclude"] * 3 + ["finish"] * 3


@pytest.mark.parametrize(("seed", "same"), [(0, True), (1, False)])
def test_the_order_follows_from_the_seed(conducted, tmp_path, seed, same):
    first = conducted(cycles=6, rounds=1)
    first.begin()
    (tmp_path / "again").mkdir()
    again = conducted(cycles=6, rounds=1, seed=seed)
    again.path = tmp_path / "again" / "run.json"
    again.begin()
    assert (again.launcher.calls == first.launcher.calls) is same


def test_every_launch_has_its_blocks_without_the_lead_in(conducted):
    run = conducted(cycles=5, rounds=2)
    profile = run.begin(ScriptedLauncher(step_ms={"torch": 4.0}, drift=0.0))
    assert [len(cell.launches) for cell in profile.cells] == [2, 2, 2]
    for cell in profile.cells:
        expected = 4.0 if cell.cell.backend == "torch" else 2.0
        for launch in cell.launches:
            blocks = launch.blocks
            assert blocks.cycle == [*range(5)]
            # 20 ms at least, and what is left of 250.
            assert all(20 <= steps * expected <= 20 + 1.1 * expected for steps in blocks.lead_in)
            assert blocks.steps == pytest.approx([230 / expected] * 5, rel=0.06)
            assert blocks.median_ns == pytest.approx([expected * 1e6] * 5, rel=0.06)
            assert blocks.duration_ns == [
                steps * median for steps, median in zip(blocks.steps, blocks.median_ns, strict=True)
            ]
            assert (launch.turns, launch.turns_reason, launch.failure) == ("blocks", None, None)
    assert run.launcher.most_alive == 3
    assert run.launcher.alive == []


def test_round_one_of_every_group_comes_before_round_two_of_any(conducted):
    run = conducted(tasks=["train", "infer"], rounds=2, cycles=1, backends=["torch", "jax"])
    run.begin()
    tasks = [key.split("/")[3] for what, key in run.launcher.calls if what == "block"]
    assert [set(tasks[at : at + 2]) for at in range(0, 8, 2)] == [{"train"}, {"infer"}] * 2


def test_shared_processes_start_once_a_round_and_serve_both_groups(conducted):
    run = conducted(tasks=["train", "infer"], share=["task"], rounds=2)
    profile = run.begin()
    assert len(run.launcher.specs) == 2 * 3
    assert [len(cell.launches) for cell in profile.cells] == [2] * 6
    assert len({(launch.round, launch.process) for cell in profile.cells for launch in cell.launches}) == 6


def test_variants_are_started_as_they_say(conducted):
    run = conducted(backends=["torch"], variants=["old", "new"], rounds=1)
    profile = run.begin(ScriptedLauncher(step_ms={"new": 6.0}, drift=0.0))
    started = sorted((spec.variant for spec in run.launcher.specs), key=lambda variant: variant.name)
    assert started == [Variant(name="new"), Variant(name="old")]
    steps = {cell.cell.variant: cell.launches[0].blocks.median_ns[0] / 1e6 for cell in profile.cells}
    assert steps == pytest.approx({"old": 2.0, "new": 6.0}, rel=0.06)
