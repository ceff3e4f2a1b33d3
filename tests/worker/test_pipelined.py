"""A device on a clock of its own: what a step takes on host and device, and what a wait takes, are known."""

from itertools import repeat

import pytest

from kit.worker import device_events, pipelined
from kit.worker.device_events import timed_on_device
from kit.worker.pipelined import WAIT_SHARE, run_pipelined, steps_per_wait


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

    @property
    def latency_ns(self):
        return self.host_ns + self.work_ns + self.wait_ns


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


CASES = [(20_000, 200_000, 30_000), (20_000, 5_000, 30_000), (5_000, 50_000_000, 30_000), (100, 300, 40_000)]


@pytest.mark.parametrize("costs", CASES, ids=["device bound", "host bound", "long steps", "short steps"])
def test_throughput_is_that_of_steps_alone_to_within_the_share_that_waits_may_take(device, costs):
    own = device(*costs)
    each = steps_per_wait(own, repeat(None), own.latency_ns)
    found = run_pipelined(own, repeat(None), each, 0.125)
    alone_ns = max(costs[0], costs[1])
    assert alone_ns <= found.duration_ns / found.steps <= alone_ns * (1 + 2 * WAIT_SHARE)


def test_no_more_steps_than_needed_go_without_a_wait(device):
    own = device(20_000, 200_000, 0)
    assert steps_per_wait(own, repeat(None), own.latency_ns) == 10  # a step's own start on the host, hidden after


def test_a_group_of_long_steps_ends_within_a_second(device):
    own = device(0, 400_000_000, 100_000_000)
    each = steps_per_wait(own, repeat(None), own.latency_ns)
    assert each * own.work_ns <= 1_000_000_000


def test_one_group_is_run_however_short_the_time(device):
    own = device(0, 1000, 0)
    assert run_pipelined(own, repeat(None), 7, 0.0).steps == 7


@pytest.mark.parametrize("costs", CASES)
def test_a_sensors_window_is_no_shorter_than_asked_for(device, costs):
    own = device(*costs)
    each = steps_per_wait(own, repeat(None), own.latency_ns)
    assert run_pipelined(own, repeat(None), each, 0.125, never_shorter=True).duration_ns >= 125_000_000


def test_events_see_the_work_and_the_host_what_is_around_it(device):
    own = device(20_000, 200_000, 30_000)
    own.free = own.now
    found = timed_on_device(own, repeat(None))
    assert found.host_ns == 250_000
    assert found.device_ns == 220_000  # the first event lies before the step is on its way


def test_a_framework_without_events_has_none(device):
    own = device(1, 1, 1)
    own.device_event = lambda: None
    assert timed_on_device(own, repeat(None)) is None
