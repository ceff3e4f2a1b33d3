"""A device's own event timers beside the host's clock, over the same steps: neither alone would show its error."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kit.backends.protocol import DeviceBatch, Runnable
from kit.clock import now_ns
from kit.profile.schema import DeviceEvents

# The group counts on which both clocks agree best: a stall of the host adds to its side alone.
GROUPS = 3


def timed_on_device(program: Runnable, batches: Iterator[DeviceBatch], steps: int) -> DeviceEvents | None:
    """Return the step by both clocks, of groups of `steps` with one wait; None: the framework has no events.

    A pair of events around each step would leave launch and return of its wait to the host's clock alone.
    """
    if program.device_event() is None:
        return None
    program.synchronize()
    groups = [_timed_group(program, batches, steps) for _ in range(GROUPS)]
    return min(groups, key=lambda group: abs(group.host_ns - group.device_ns))


def _timed_group(program: Runnable, batches: Iterator[DeviceBatch], steps: int) -> DeviceEvents:
    begin_ns, before = now_ns(), program.device_event()
    for batch in islice(batches, steps):
        program.step(batch)
    after = program.device_event()
    program.synchronize()
    host_ns = now_ns() - begin_ns
    assert before is not None
    assert after is not None
    return DeviceEvents(steps=steps, host_ns=host_ns / steps, device_ns=1e6 * before.elapsed_time(after) / steps)
