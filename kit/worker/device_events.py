"""A device's own event timers beside the host's clock, over the same steps: neither alone would show its error."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kit.backends.protocol import DeviceBatch, Runnable
from kit.clock import now_ns
from kit.profile.launch import DeviceEvents

# Events have a resolution of half a microsecond, and the group's one wait costs some: over so many steps both vanish.
STEPS = 100
SECONDS = 0.5
# Of three groups the one on which both clocks agree best: a stall of the host adds to its side, and to no device's.
GROUPS = 3


def timed_on_device(program: Runnable, batches: Iterator[DeviceBatch]) -> DeviceEvents | None:
    """Return the step by both clocks, of groups of STEPS or SECONDS with one wait; None: there are no events.

    A pair of events around each step would leave launch and return of its wait to the host's clock alone.
    """
    if program.device_event() is None:
        return None
    program.synchronize()
    begin_ns = now_ns()
    program.step(next(batches))
    program.synchronize()
    steps = max(1, min(STEPS, int(SECONDS * 1e9 / (now_ns() - begin_ns))))
    groups = [_timed_group(program, batches, steps) for _ in range(GROUPS)]
    return min(groups, key=lambda group: abs(group.host_ns - group.device_ns))


def _timed_group(program: Runnable, batches: Iterator[DeviceBatch], steps: int) -> DeviceEvents:
    """Return the step by both clocks, of so many steps with one wait."""
    begin_ns, before = now_ns(), program.device_event()
    for batch in islice(batches, steps):
        program.step(batch)
    after = program.device_event()
    program.synchronize()
    host_ns = now_ns() - begin_ns
    assert before is not None
    assert after is not None
    return DeviceEvents(steps=steps, host_ns=host_ns / steps, device_ns=1e6 * before.elapsed_time(after) / steps)
