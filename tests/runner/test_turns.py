"""Blocks that are taken in turns: what they add up to, in which order, and what ends them early."""

from itertools import pairwise

import pytest
from msgspec.structs import replace
from profile_builder import S
from scripted_launcher import ScriptedLauncher, plan_of, suite

from kit.compare.comparability import facts_of
from kit.profile.cell import Variant
from kit.profile.instruments import SensorReport
from kit.profile.store import read_profile, read_steps, timed_steps

VARIANTS = ["base", "next", "other"]


class Noting(ScriptedLauncher):
    """Notes the worker of each turn."""

    def start(self, spec, stop):
        worker, asked = super().start(spec, stop), []
        self.turns = getattr(self, "turns", asked)
        ask = worker.ask

        def noting(request, limit_s):
            begin_ns = self.now_ns
            answer = ask(request, limit_s)
            if worker.name_of(request) == "block" and request.is_block:
                self.turns.append((spec.variant.name, request.begins_block, begin_ns, self.now_ns))
            return answer

        worker.ask = noting
        return worker


def in_turns(conducted, launcher=None, *, cycles=4, rounds=1, **fields):
    run = conducted(cycles=cycles, rounds=rounds, **{"backends": ["torch"], "variants": VARIANTS} | fields)
    steps = replace(run.plan.suite.plan, turn_s=0.05, lead_in_s=0.01)
    run.plan = replace(run.plan, suite=replace(run.plan.suite, plan=steps))
    return run, run.begin(launcher or Noting(drift=0.0))


def test_a_block_is_all_its_turns_together(conducted):
    run, profile = in_turns(conducted)
    assert read_profile(run.path) == profile
    raw = read_steps(run.path, profile)
    for result in profile.cells:
        (launch,) = result.launches
        blocks = launch.blocks
        assert blocks.turn_count == [5] * 4
        assert blocks.block_of_windows() == [block for block in range(4) for _ in range(5)]
        assert all(end <= begin for (_, end), (begin, _) in pairwise(blocks.windows()))
        assert sum(end - begin for begin, end in blocks.windows()) == sum(blocks.span_ns)
        assert blocks.begin_ns == [blocks.windows()[5 * block][0] for block in range(4)]
        # A turn has 10 ms of lead-in and 40 ms of steps, which a fresh pace plans.
        assert all(5 * 5 <= lead_in <= 5 * 6 for lead_in in blocks.lead_in)
        assert all(5 * 18 <= steps <= 5 * 22 for steps in blocks.steps)
        assert blocks.steps == blocks.planned_steps
        (name,) = [name for name in raw if result.key in name]
        timed_ns = timed_steps(launch, raw[name])
        assert timed_ns.sum() == sum(blocks.duration_ns), "the lead-in of every turn is left out"
        kept = blocks.chosen([True, False, True, False])
        assert kept.turn_count == [5, 5] and kept.windows() == blocks.windows()[:5] + blocks.windows()[10:15]


def test_turns_of_a_cycle_alternate_and_every_second_order_is_the_one_before_reversed(conducted):
    run, _ = in_turns(conducted, cycles=12)
    turns = run.launcher.turns
    orders = [tuple(name for name, *_ in turns[at : at + 3]) for at in range(0, len(turns), 3)]
    assert len(orders) == 12 * 5
    assert all(sorted(order) == VARIANTS for order in orders)
    cycles = [orders[at : at + 5] for at in range(0, 60, 5)]
    assert all(second == first[::-1] for first, second in zip(orders[::2], orders[1::2], strict=False))
    assert len(set(orders)) == 6
    # Weights are put back at the begin of a block, not of each turn.
    assert [begins for _, begins, *_ in turns] == [at % 15 < 3 for at in range(len(turns))]
    assert len({tuple(cycle) for cycle in cycles}) > 6


@pytest.mark.parametrize(("step_ms", "turns"), [(2.0, 5), (10.0, 3), (100.0, 1), (700.0, 1), (0.001, 5)])
def test_the_cell_with_the_longest_steps_decides_the_number_of_turns(conducted, tmp_path, step_ms, turns):
    launcher = Noting(step_ms={"next": step_ms}, drift=0.0)
    _, profile = in_turns(conducted, launcher)
    assert {turn for result in profile.cells for turn in result.launches[0].blocks.turn_count} == {turns}


def test_cells_of_unlike_frameworks_have_one_turn_a_block(conducted):
    _, profile = in_turns(conducted, backends=["torch", "jax"], variants=())
    assert {turn for result in profile.cells for turn in result.launches[0].blocks.turn_count} == {1}


@pytest.mark.parametrize(("status", "turns"), [("measured", 1), ("unavailable", 5)])
def test_beside_a_sensor_of_energy_a_block_is_one_turn(conducted, status, turns):
    sensor = SensorReport(
        name="rapl.package", quantity="energy", unit="J", scope="package", source="x", status=status, counter=True
    )
    _, profile = in_turns(conducted, sensors=[sensor])
    assert {turn for result in profile.cells for turn in result.launches[0].blocks.turn_count} == {turns}


@pytest.mark.parametrize(
    ("setting", "turns"),
    [
        ({"env": {"PYTHONPATH": "/new"}}, 5),
        ({"env": {"OMP_NUM_THREADS": "1"}}, 1),
        ({"env": {"PATH": "/new/bin"}}, 1),
        ({"env": {"OMP_WAIT_POLICY": "active"}}, 1),
        ({"python": "/new/bin/python"}, 1),
        ({"image": "new"}, 1),
    ],
)
def test_variants_of_other_threads_or_another_interpreter_have_one_turn_a_block(conducted, setting, turns):
    run = conducted(cycles=2, rounds=1, backends=["torch"], variants=["base", "next"])
    steps = replace(run.plan.suite.plan, turn_s=0.05, lead_in_s=0.01)
    variants = [Variant(name="base"), Variant(name="next", **setting)]
    run.plan = replace(run.plan, suite=replace(run.plan.suite, plan=steps, variants=variants))
    profile = run.begin(Noting(drift=0.0))
    assert {turn for result in profile.cells for turn in result.launches[0].blocks.turn_count} == {turns}


def test_a_cell_that_nobody_alternates_with_has_one_turn_a_block_and_its_profile_says_so(conducted):
    _, lone = in_turns(conducted, variants=[])
    assert {turn for result in lone.cells for turn in result.launches[0].blocks.turn_count} == {1}
    _, several = in_turns(conducted)
    assert [" in turns of " in facts_of(profile)[0]["plan"] for profile in (lone, several)] == [False, True]


def test_a_stall_ends_a_cycle_for_all_its_cells_and_no_turn_is_lost(conducted):
    class Stalling(Noting):
        def machine(self):
            # The second turn of everyone in the first cycle takes two seconds.
            stalled = len(getattr(self, "turns", [])) in (3, 4, 5)
            return 100.0 if stalled else 1.0

    _, profile = in_turns(conducted, Stalling(drift=0.0, noise=0.0))
    counts = [result.launches[0].blocks.turn_count for result in profile.cells]
    # The next block is planned by the pace of the stall; then all is as before.
    assert counts == [[2, 1, 5, 5]] * 3
    for result in profile.cells:
        blocks = result.launches[0].blocks
        assert blocks.cut() == 1 and blocks.steps[0] < blocks.planned_steps[0] == blocks.planned_steps[3]
        # Four times a quarter of a second, and the first step of a turn, which the worker makes ten times as long.
        assert blocks.span_ns[0] < (1 + 2 + 0.4) * S


def test_a_plan_without_turns_is_as_before(conducted):
    run = conducted(cycles=3, rounds=1)
    profile = run.begin()
    assert {tuple(result.launches[0].blocks.turn_count) for result in profile.cells} == {(1, 1, 1)}
    assert plan_of(suite()).suite.plan.turn_s == 0
