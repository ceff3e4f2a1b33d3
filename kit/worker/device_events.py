"""A device's own event timers beside the host's clock, over the same steps: neither alone would show its error."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from statistics import median

from kit.backends.protocol import DeviceBatch, Runnable
from kit.clock import now_ns
from kit.profile.launch import DeviceEvents

# Events have a resolution of half a microsecond: over so many steps the median is finer.
STEPS = 100
SECONDS = 0.5


def timed_on_device(program: Runnable, batches: Iterator[DeviceBatch]) -> DeviceEvents | None:
    """Return the median step by both clocks, over STEPS steps or SECONDS; None: the framework has no events."""
    if program.device_event() is None:
        return None
    host_ns, device_ns = list[int](), list[float]()
    end_ns = now_ns() + round(SECONDS * 1e9)
    program.synchronize()
    for batch in islice(batches, STEPS):
        begin_ns, before = now_ns(), program.device_event()
        program.step(batch)
        after = program.device_event()
        program.synchronize()
        host_ns.append(now_ns() - begin_ns)
        assert before is not None
        assert after is not None
        device_ns.append(1e6 * before.elapsed_time(after))
        if now_ns() > end_ns:
            break
    return DeviceEvents(steps=len(host_ns), host_ns=median(host_ns), device_ns=median(device_ns))
