"""How many steps a worker is asked for, against a device of known steps and waits: times are filled, k is found."""

import numpy as np
import pytest
from msgspec.structs import replace
from profile_builder import MS, S
from real_worker import cell

from kit.profile.schema import StepPlan
from kit.runner.warm_up_and_blocks import (
    GROUP_MAX_S,
    OVERRUN_MOST,
    STEPS_MAX,
    UNEVENNESS_MOST,
    WAIT_FRACTION,
    Pace,
    block_segments,
    event_steps,
    is_warm,
    long_segment,
    pace_ns,
    planned_warm_up_s,
    probe_segments,
    probed_pace,
    turns_of,
    warm_up_segment,
)


class Device:
    """Steps queue up behind each other; a wait ends `wait_ns` after the last of them."""

    def __init__(self, host_ns, work_ns, wait_ns):
        self.host_ns, self.work_ns, self.wait_ns = host_ns, work_ns, wait_ns
        self.step_ns = max(host_ns, work_ns)  # without a wait

    def run(self, segments):
        """The waits of each segment."""
        first_ns = min(self.host_ns, self.work_ns) + self.wait_ns
        return [np.full(waits, first_ns + per_wait * self.step_ns, np.int64) for waits, per_wait, _ in segments]

    def probed(self):
        pace = Pace(float(self.run([warm_up_segment(Pace(1.0))])[0][-1]))
        segments = probe_segments(pace)
        return probed_pace(pace, segments, self.run(segments))


DEVICES = {
    "device bound": Device(20_000, 200_000, 30_000),
    "host bound": Device(20_000, 5_000, 30_000),
    "long steps": Device(5_000, 50_000_000, 30_000),
    "short steps": Device(100, 300, 40_000),
}


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_so_many_steps_go_without_a_wait_that_it_vanishes_and_blocks_are_as_long_as_planned(device):
    pace = device.probed()
    for _ in range(2):
        segments = block_segments(pace, 1.0, 0.02)
        lead_in, waited, groups = segments
        assert lead_in.per_wait == waited.per_wait == 1 and groups.per_wait == pace.per_wait
        waits_ns = device.run(segments)
        step_ns = waits_ns[-1].sum() / groups.waits / groups.per_wait
        assert device.step_ns <= step_ns <= device.step_ns * (1 + 1.1 * WAIT_FRACTION)
        pace = pace.after(segments, waits_ns)
    # A quarter of the block shows the latency. A group is not cut, and two steps that are waited for are the least.
    longest_ns = float(max(waits_ns[-1].max(), 2 * waits_ns[1].max()))
    *latency_ns, groups_ns = [float(waits.sum()) for waits in waits_ns]
    assert sum(latency_ns) == pytest.approx(S / 4, abs=longest_ns)
    assert groups_ns == pytest.approx(0.75 * S, abs=longest_ns)


@pytest.mark.parametrize(
    ("device", "steps"),
    [(Device(0, 200_000, 30_000), 15), (Device(0, 200_000, 0), 1), (Device(0, 400 * MS, 100 * MS), 2)],
    ids=["a wait of a seventh", "no wait", "a second of long steps"],
)
def test_no_more_steps_than_needed_go_without_a_wait(device, steps):
    assert device.probed().per_wait == steps
    assert steps * device.step_ns <= GROUP_MAX_S * 1e9


def test_a_stall_beside_one_probe_decides_nothing():
    device = DEVICES["device bound"]
    pace = Pace(250_000.0)
    segments = probe_segments(pace)
    waits_ns = device.run(segments)
    for groups_ns in waits_ns:
        groups_ns[0] += 100 * MS
    assert probed_pace(pace, segments, waits_ns) == device.probed()


@pytest.mark.parametrize(
    ("step_ns", "lead_in", "timed"),
    [
        (1 * MS, 20, 230),
        (3 * MS, 7, 77),
        (1_000, 20_000, STEPS_MAX),
        (100 * MS, 1, 2),
        (10 * S, 1, 2),
    ],
)
def test_a_block_on_a_cpu_is_filled_at_its_pace_within_bounds(step_ns, lead_in, timed):
    segments = block_segments(Pace(step_ns), 0.25, 0.02)
    assert [(segment.waits, segment.per_wait) for segment in segments] == [(lead_in, 1), (timed, 1)]
    assert [segment.limit_ns for segment in segments] == [
        OVERRUN_MOST * lead_in * step_ns,
        OVERRUN_MOST * timed * step_ns,
    ]


def test_the_pace_at_the_end_counts_not_the_slow_beginning():
    assert pace_ns(np.array([50 * MS] * 5 + [MS] * 10)) == MS
    assert pace_ns(np.array([0] * 3)) == 1, "a clock that is too coarse asks for no endless block"
    segments = block_segments(Pace(MS), 0.25, 0.02)
    assert Pace(MS).after(segments, [np.array([50 * MS] * 20), np.array([2 * MS] * 230)]) == Pace(2 * MS)


@pytest.mark.parametrize("slowing", [1.0, 1.05, 0.95])
@pytest.mark.parametrize("pace", [Pace(1_000.0), Pace(2 * MS), Pace(10 * MS, 9 * MS, 5)])
def test_parts_of_a_long_block_fill_its_time_to_a_percent_though_the_pace_changes(pace, slowing):
    spent_ns, step_ns = 0.0, pace.pipelined_ns or pace.waited_ns
    while spent_ns < 12 * S:
        segment = long_segment(pace, 12 - spent_ns / S)
        assert segment.per_wait == pace.per_wait and segment.waits <= STEPS_MAX
        step_ns *= slowing if segment.waits * step_ns > S / 2 else 1
        spent_ns += segment.waits * segment.per_wait * step_ns
        pace = pace.after_groups(step_ns)
    assert 12 * S <= spent_ns <= 1.01 * 12 * S


PLAN = StepPlan(cycles=1, block_s=0.25, lead_in_s=0.02, warmup_s=1.0, warmup_steps=10, energy_s=0.0)
EARLY = replace(PLAN, warmup_least_s=0.1)
CELL = cell()


@pytest.mark.parametrize(
    ("spent_s", "steps", "fastest_s", "ends"),
    [
        (0.0, 0, None, False),
        (0.9, 500, 0.001, False),
        (1.0, 9, 0.1, False),
        (1.0, 10, 0.1, True),
        (0.2, STEPS_MAX, 1e-6, True),
        (39.0, 9, 1.0, False),
        (40.0, 9, 1.0, True),
        (4.0, 3, 0.001, True),
    ],
)
def test_a_warm_up_ends_after_its_time_and_its_least_steps_or_where_its_steps_became_slow(
    spent_s, steps, fastest_s, ends
):
    parts_ns = [] if fastest_s is None else [fastest_s * S]
    assert is_warm(PLAN, CELL, int(spent_s * S), steps, parts_ns) is ends


def warm_up_of(paces_ms, plan=EARLY, measured=CELL, part_s=0.1):
    """How many parts the warm-up of a cell has whose parts have these paces, the last one from then on."""
    parts_ns, spent_ns, steps = [], 0, 0
    while not is_warm(plan, measured, spent_ns, steps, parts_ns):
        parts_ns.append(paces_ms[min(len(parts_ns), len(paces_ms) - 1)] * MS)
        ran = max(1, round(part_s * S / parts_ns[-1]))
        spent_ns, steps = spent_ns + int(ran * parts_ns[-1]), steps + ran
    return len(parts_ns)


@pytest.mark.parametrize(
    ("paces_ms", "parts"),
    [
        ([2.0], 2),
        ([2.0, 1.95], 2),  # parts of a warm program differ by as much
        ([3.0, 2.5, 2.2, 2.0, 2.0], 5),
        ([3.0, 2.5, 2.8], 3),
        ([0.96**part for part in range(20)], 10),  # it goes on as long as it did before
        ([2.0, 2.4, 2.9], 2),
        ([300.0, 300.0, 300.0, 150.0], 4 + 1),
        ([0.001], 2),
    ],
)
def test_a_warm_up_ends_when_its_steps_are_no_longer_getting_faster(paces_ms, parts):
    assert warm_up_of(paces_ms) == parts
    assert warm_up_of(paces_ms, PLAN) >= parts


def test_a_users_program_has_ten_steps_as_it_may_compile_for_each_batch():
    program = replace(CELL, backend="program")
    assert warm_up_of([2.0], measured=program) == 2
    assert warm_up_of([50.0], measured=program) == 5 > warm_up_of([50.0])
    assert planned_warm_up_s(EARLY, program, 1.0) == 10.0


def test_an_accelerator_and_ranks_warm_up_for_their_whole_time():
    for measured in (replace(CELL, device="gpu"), replace(CELL, devices=2)):
        assert warm_up_of([2.0], measured=measured) == 10
        assert planned_warm_up_s(EARLY, measured, 0.2) == 2.0


@pytest.mark.parametrize(
    ("pace", "turns"),
    [
        (Pace(1_000.0), 5),
        (Pace(4 * MS), 5),
        (Pace(10 * MS), 3),
        (Pace(20 * MS), 1),
        (Pace(10 * S), 1),
        (Pace(4 * MS, unevenness=4.0), 1),
        (Pace(MS, MS, 5), 1),  # of an accelerator
    ],
)
def test_turns_are_short_where_steps_are_shorter(pace, turns):
    plan = replace(PLAN, turn_s=0.05, lead_in_s=0.01)
    assert turns_of(plan, pace) == turns
    assert turns_of(PLAN, pace) == 1
    segments = block_segments(pace, plan.block_s, plan.lead_in_s, turns)
    steps_ns = [pace.waited_ns * pace.unevenness] * 2 + [pace.pipelined_ns]
    assert [segment.limit_ns for segment in segments] == [
        turns * OVERRUN_MOST * segment.steps * step_ns for segment, step_ns in zip(segments, steps_ns, strict=False)
    ]


@pytest.mark.parametrize(("step_ns", "steps"), [(MS, 100), (7 * MS, 14), (3 * S, 1), (1, STEPS_MAX)])
def test_a_warm_up_is_asked_for_in_parts_of_a_tenth_of_a_second(step_ns, steps):
    assert warm_up_segment(Pace(step_ns)) == (steps, 1, OVERRUN_MOST * steps * step_ns)


@pytest.mark.parametrize(("step_ns", "steps"), [(MS, 100), (50 * MS, 10), (3 * S, 1)])
def test_events_time_half_a_second_at_most(step_ns, steps):
    assert event_steps(Pace(step_ns)) == steps
    assert probe_segments(Pace(step_ns))[1].steps * step_ns <= max(9, 9 * step_ns / S) * S


def test_a_program_that_stalls_by_itself_is_planned_with_its_stalls_and_within_bounds():
    def run(segment, at):
        """Every thirtieth step takes 60 ms, the others 2 ms."""
        waits_ns = np.array([60 * MS if (at + number) % 30 == 29 else 2 * MS for number in range(segment.waits)])
        return waits_ns[: 1 + np.searchsorted(waits_ns.cumsum(), segment.limit_ns, side="right")]

    pace, at, cut = Pace.of(np.array([2 * MS] * 10)), 0, []
    for _ in range(6):
        segments, waits_ns = block_segments(pace, 0.25, 0.02), []
        for segment in segments:
            waits_ns.append(run(segment, at))
            at += waits_ns[-1].size
        cut.append(waits_ns[-1].size < segments[-1].waits)
        pace = pace.after(segments, waits_ns)
        assert pace.waited_ns == 2 * MS and segments[-1].waits == 115
    assert not any(cut)
    assert 1.5 < pace.unevenness < 3
    assert Pace.of(np.array([MS] * 20 + [1000 * MS] + [MS] * 20)).unevenness == UNEVENNESS_MOST
    assert Pace.of(np.array([16 * MS] * 10)).unevenness == 1, "what is slow throughout is no stall"
