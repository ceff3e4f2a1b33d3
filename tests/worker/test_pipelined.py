"""A device on a clock of its own: what a step takes on host and device, and what a wait takes, are known."""

from itertools import repeat

import pytest

from kit.worker import device_events, pipelined
from kit.worker.device_events import timed_on_device
from kit.worker.pipelined import WAIT_SHARE, empty_wait_ns, run_pipelined, steps_per_wait


class Device:
    """Steps queue up behind each other; a wait ends `wait_ns` after the last of them."""

    def __init__(self, host_ns, work_ns, wait_ns):
        self.now = 0
        self.free = 0
        self.host_ns, self.work_ns, self.wait_ns = host_ns, work_ns, wait_ns

    def step(self, _batch):
        self.now += self.host_ns
        self.free = max(self.free, self.now) + self.work_ns

    def synchronize(self):
        self.now = max(self.now, self.free) + self.wait_ns

    def device_event(self):
        return Event(max(self.now, self.free))


class Event:
    def __init__(self, at_ns):
        self.at_ns = at_ns

    def elapsed_time(self, later):
        return (later.at_ns - self.at_ns) / 1e6


@pytest.fixture
def device(monkeypatch):
    def make(host_ns, work_ns, wait_ns):
        made = Device(host_ns, work_ns, wait_ns)
        for module in (pipelined, device_events):
            monkeypatch.setattr(module, "now_ns", lambda: made.now)
        return made

    return make


def together(machine):
    """How many steps go without a wait."""
    return steps_per_wait(machine, repeat(None), machine.host_ns + machine.work_ns + machine.wait_ns)


def test_a_step_that_fails_leaves_nothing_running(device):
    machine = device(20_000, 200_000, 30_000)

    def batches():
        yield from range(10)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_pipelined(machine, batches(), 100, 1.0)
    assert machine.free <= machine.now


def test_of_a_step_and_a_wait_that_fail_the_step_is_told(device):
    machine = device(1, 1, 1)
    machine.step = lambda _: 1 / 0
    machine.synchronize = [].pop
    with pytest.raises(ZeroDivisionError):
        run_pipelined(machine, repeat(None), 10, 1.0)


def test_an_empty_wait_is_without_what_was_queued(device):
    machine = device(20_000, 200_000, 30_000)
    machine.step(None)
    assert empty_wait_ns(machine) == 30_000


CASES = [(20_000, 200_000, 30_000), (20_000, 5_000, 30_000), (5_000, 50_000_000, 30_000), (100, 300, 40_000)]


@pytest.mark.parametrize("costs", CASES, ids=["device bound", "host bound", "long steps", "short steps"])
def test_throughput_is_that_of_steps_alone_to_within_the_share_that_waits_may_take(device, costs):
    machine = device(*costs)
    each = together(machine)
    ran = run_pipelined(machine, repeat(None), each, 0.125)
    alone_ns = max(costs[0], costs[1])
    assert alone_ns <= ran.duration_ns / ran.steps <= alone_ns * (1 + 2 * WAIT_SHARE)
    # A sensor's window is no shorter than asked for.
    assert run_pipelined(machine, repeat(None), each, 0.125, never_shorter=True).duration_ns >= 125_000_000


@pytest.mark.parametrize("never_shorter", [False, True])
def test_ranks_agree_a_few_times_a_block_as_each_time_the_next_group_waits_for_those_that_wake_up(
    device, never_shorter
):
    machine, asked = device(20_000, 200_000, 30_000), []

    def agree(value):
        asked.append(value)
        machine.free = max(machine.free, machine.now) + 50_000
        return value

    each = together(machine)
    ran = run_pipelined(machine, repeat(None), each, 0.125, agree, never_shorter=never_shorter)
    assert 200_000 <= ran.duration_ns / ran.steps <= 200_000 * (1 + 2 * WAIT_SHARE)
    assert len(asked) <= 3
    assert abs(ran.duration_ns - 125_000_000) <= each * 210_000


def test_a_block_whose_first_group_was_slow_is_filled_all_the_same(device):
    machine = device(20_000, 200_000, 30_000)
    machine.free = 60_000_000
    ran = run_pipelined(machine, repeat(None), 10, 0.125)
    assert abs(ran.duration_ns - 125_000_000) <= 10 * 210_000


@pytest.mark.parametrize(
    ("costs", "steps"),
    [((20_000, 200_000, 0), 10), ((0, 400_000_000, 100_000_000), 2)],
    ids=["as many as hide a step's start on the host", "a second of long steps"],
)
def test_no_more_steps_than_needed_go_without_a_wait(device, costs, steps):
    machine = device(*costs)
    assert together(machine) == steps
    assert run_pipelined(machine, repeat(None), 7, 0.0).steps == 7, "one group is run however short the time"


def test_events_see_the_work_and_the_host_what_is_around_it(device):
    machine = device(20_000, 200_000, 30_000)
    machine.free = machine.now
    timed = timed_on_device(machine, repeat(None))
    assert timed.steps == 100
    assert timed.host_ns == 200_500
    assert timed.device_ns == 200_200  # the first event lies before the first step is on its way


def test_a_stall_beside_one_group_is_no_difference_of_clocks(device):
    machine = device(20_000, 200_000, 30_000)
    synchronize, calls = machine.synchronize, []

    def stalled():
        calls.append(machine.now)
        machine.now += 50_000_000 * (len(calls) == 3)
        synchronize()

    machine.synchronize = stalled
    timed = timed_on_device(machine, repeat(None))
    assert timed.host_ns / timed.device_ns < 1.01
    assert len(calls) > 3


def test_steps_of_a_second_are_timed_on_the_device_once(device):
    assert timed_on_device(device(20_000, 10**9, 30_000), repeat(None)).steps == 1


def test_a_framework_without_events_has_none(device):
    machine = device(1, 1, 1)
    machine.device_event = lambda: None
    assert timed_on_device(machine, repeat(None)) is None
