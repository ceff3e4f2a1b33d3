"""Cut blocks: others' counters alone decide whether one counts, and the ratio of two cells stays what it is.

Steps are simulated one by one: a neighbor comes and goes and slows two cells unlike, or the machine stands still.
"""

import math
import statistics
from random import Random

import numpy as np
import profile_builder as b
import pytest
from kit_process import invoke

from kit.compare.clean import count_blocks
from kit.compare.compare import compare_within
from kit.compare.metrics import METRICS
from kit.compare.ratios import log_ratios
from kit.compare.runs import group_samples
from kit.profile.schema import Blocks
from kit.report.headline_and_notes import note_line
from kit.runner.warm_up_and_blocks import Pace, block_segments

MS, S = b.MS, b.S
ROUNDS, CYCLES = 6, 8
STEP_NS = {"torch": 6 * MS, "jax": 4 * MS}
RATIO = 1.5
NEVER = 10**15


class Machine:
    """Steps take `STEP_NS`, more beside a neighbor, and more where the machine stands still for a while."""

    def __init__(self, draw, slowing, stalls_s):
        self.draw, self.slowing, self.stalls_s = draw, slowing, stalls_s
        self.now_ns, self.is_beside = 0, False
        self.turns_ns, self.stall_ns = self.later(8), self.later(stalls_s)

    def later(self, seconds):
        return self.now_ns + round(self.draw.expovariate(1 / seconds) * S) if seconds else NEVER

    def step_ns(self, name):
        if self.slowing and self.now_ns >= self.turns_ns:
            self.is_beside = not self.is_beside
            self.turns_ns = self.later(3 if self.is_beside else 8)
        step_ns = STEP_NS[name] * self.draw.lognormvariate(0, 0.02) * (self.slowing[name] if self.is_beside else 1)
        if self.now_ns >= self.stall_ns:
            step_ns += 2 * S
            self.stall_ns = self.later(self.stalls_s)
        self.now_ns += round(step_ns)
        return round(step_ns)

    def block(self, name, pace, *, cuts):
        """Return the times of the steps of a block, how many were planned, and how long the neighbor was there."""
        _, segment = block_segments(pace, 0.25, 0.02)
        limit_ns, beside_ns, times_ns = segment.limit_ns if cuts else NEVER, 0, []
        while len(times_ns) < segment.waits and sum(times_ns) <= limit_ns:
            times_ns.append(self.step_ns(name))
            beside_ns += self.is_beside * times_ns[-1]
        return times_ns, segment.waits, beside_ns


def measured(seed, *, cuts, slowing=None, stalls_s=0):
    """A profile of the two cells on such a machine."""
    draw, launches = Random(seed), {}
    for number in range(ROUNDS):
        machine = Machine(draw, slowing, stalls_s)
        paces = {name: Pace(STEP_NS[name]) for name in STEP_NS}
        blocks = {name: Blocks() for name in STEP_NS}
        for cycle in range(CYCLES):
            for name in draw.sample([*STEP_NS], 2):
                begin_ns = machine.now_ns
                times_ns, planned, beside_ns = machine.block(name, paces[name], cuts=cuts)
                paces[name], span_ns = Pace.of(np.array(times_ns)), sum(times_ns)
                own_ns = 2 * span_ns - beside_ns
                counters = {"process.cpu_ns": own_ns, "machine.busy_ns": own_ns + beside_ns, "machine.steal_ns": 0}
                blocks[name].extend(
                    Blocks(
                        cycle=[cycle],
                        begin_ns=[begin_ns],
                        span_ns=[span_ns],
                        lead_in=[0],
                        steps=[len(times_ns)],
                        duration_ns=[span_ns],
                        median_ns=[round(statistics.median(times_ns))],
                        planned_steps=[planned],
                        counters={counter: [value] for counter, value in counters.items()},
                    )
                )
        for name in STEP_NS:
            launches[name, number] = blocks[name]

    def change(launch):
        launch.blocks = launches[launch.cell_key.split("/")[1], launch.round]

    members = [b.member(name, step_ns / MS, change=change) for name, step_ns in STEP_NS.items()]
    return b.profile(b.group("g", *members), rounds=ROUNDS, cycles=CYCLES)


def log_ratio(built):
    """The mean over the rounds that count, as verdicts are made of it: what torch takes longer."""
    (group,), cells = built.groups, [result.cell for result in built.cells]
    table, _ = count_blocks(built.cells, CYCLES)
    samples = group_samples(built.suite, group, cells, table)
    jax, torch = sorted(samples)
    return statistics.mean(log_ratios(METRICS["step_ns"], samples[torch], samples[jax]).values())


WORLDS = {
    "a neighbor slows one cell 16-fold and the other 3-fold": {"slowing": {"torch": 16.0, "jax": 3.0}},
    "the machine stands still for 2 s at a time": {"stalls_s": 5},
    "both": {"slowing": {"torch": 3.0, "jax": 16.0}, "stalls_s": 10},
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_cutting_leaves_the_ratio_what_it_is(world):
    seeds = range(24)
    by_cuts = {cuts: [log_ratio(measured(seed, cuts=cuts, **world)) for seed in seeds] for cuts in (False, True)}
    for logs in by_cuts.values():
        error = statistics.stdev(logs) / math.sqrt(len(logs))
        assert statistics.mean(logs) == pytest.approx(math.log(RATIO), abs=max(0.001, 4 * error))
        assert statistics.median(logs) == pytest.approx(math.log(RATIO), abs=0.002), (
            "a stall in few cycles is in the mean"
        )
    assert sum(result.blocks.cut() for result in _launches(measured(0, cuts=True, **world))), "some are cut"


def _launches(built):
    return [launch for result in built.cells for launch in result.launches]


def test_a_cut_block_counts_as_others_left_it_alone_and_a_note_says_how_many_there_are(tmp_path):
    built = measured(1, cuts=True, stalls_s=2)
    cut = sum(launch.blocks.cut() for launch in _launches(built))
    comparison = compare_within("p", built)
    assert not [note for note in comparison.notes if note.what.code == "cycles_left_out"]
    (note,) = [note for note in comparison.notes if note.what.code == "blocks_cut"]
    assert (
        note_line(note)
        == f"{cut} of {2 * ROUNDS * CYCLES} blocks were cut: their steps took four times as long as planned"
    )
    shown = invoke("compare", str(b.write(tmp_path / "a.json", built)))
    assert note_line(note) in " ".join(shown.stdout.split())
